"""DP-Sniper's 20 mechanisms: our lower bounds against the published ones, at 1 % of the samples.

Published: 53.5 M samples for each ordered pair of inputs (2 x 10.7 M to train, 10.7 M for the
threshold, 2 x 10.7 M to compare the attacks) and 2 x 200 M for the bound.

Run with ``python -m benchmarks.dpsniper_bounds [--seeds 3] [--scale 1] [--only SVT3 ...]``.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from statistics import median

from benchmarks.cases import CORPUS, MORE_VALUES, Case
from benchmarks.common import count, cpu_seconds, progress, table
from pytest_dp import audit

EPS0, ALPHA = 0.1, 0.1
SHARE = 0.01
REACHED, ABOVE = -0.003, 0.01
"""Our median bound less the published one: what counts as reached, and as clearly above."""


@dataclass(frozen=True, slots=True)
class Published:
    """The better of the two classifiers, if sound, and the ordered pairs it was searched on."""

    bound: float
    pairs: int

    @property
    def samples(self) -> float:
        return self.pairs * 53.5e6 + 400e6


PUBLISHED = {
    "Laplace": Published(0.0976, 4),
    "TruncatedGeometric": Published(0.1156, 4),
    "NoisyHist1": Published(0.0978, 4),
    "NoisyHist2": Published(4.602, 4),
    "NoisyMax1": Published(0.0925, 16),
    "NoisyMax2": Published(0.0979, 16),
    "NoisyMax3": Published(0.2488, 16),
    "NoisyMax4": Published(0.353, 16),
    "SVT1": Published(0.0858, 16),
    "SVT2": Published(0.0859, 16),
    "SVT3": Published(0.182, 16),
    "SVT4": Published(0.1696, 16),
    "SVT5": Published(1.761, 16),
    "SVT6": Published(0.272, 16),
    "RAPPOR": Published(0.293, 4),
    "OneTimeRAPPOR": Published(0.600, 4),
    "LaplaceParallel": Published(0.0350, 4),
    "SVT34Parallel": Published(0.262, 16),
    "PrefixSum": Published(0.577, 16),
    "NumericalSVT": Published(0.0345, 16),
}


def trial(case: Case, max_samples: int, seed: int) -> tuple[float, int, float]:
    """Lower bound, samples and processor seconds of one audit."""
    start = cpu_seconds()
    result = audit(
        case.vectorized,
        **case.keywords(EPS0, many=True),
        method="dpsniper",
        alpha=ALPHA,
        max_samples=max_samples,
        max_seconds=3600,
        seed=seed,
        n_jobs=1,
    )
    return result.eps_lower, result.samples, cpu_seconds() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies max_samples")
    parser.add_argument("--only", nargs="+", choices=PUBLISHED, default=list(PUBLISHED))
    options = parser.parse_args()

    trial(CORPUS[0], 10_000, 0)  # the first audit of a process pays for imports
    rows, reached, above, audits, too_high = [], [], [], 0, []
    for case in CORPUS + MORE_VALUES:
        name = case.name.split(",")[0]
        if name not in options.only:
            continue
        published = PUBLISHED[name]
        max_samples = round(SHARE * published.samples * options.scale)
        trials = [trial(case, max_samples, seed) for seed in range(options.seeds)]
        bounds, samples, seconds = zip(*trials, strict=True)
        truth, middle = case.truth(EPS0), median(bounds)
        audits += len(bounds)
        too_high += [f"{case.name} {bound:.4f} > {truth:.4f}" for bound in bounds if bound > truth]
        gain = middle - published.bound
        if gain >= REACHED:
            reached.append(case.name)
        if gain > ABOVE:
            above.append(case.name)
        good = sum(bound >= published.bound + REACHED for bound in bounds)
        rows.append(
            [
                case.name,
                f"{truth:.4g}" if case.at_least is None else f"<= {truth:.4g}",
                f"{published.bound:.4g}",
                f"{middle:.4f}",
                f"{min(bounds):.4f}",
                f"{good}/{len(bounds)}",
                "clearly above" if gain > ABOVE else "reached" if gain >= REACHED else "below",
                published.pairs,
                count(max(samples)),
                f"{max(samples) / published.samples:.2%}",
                f"{median(seconds):.1f}",
            ]
        )
        progress(f"{rows[-1]}")

    header = ["mechanism", "true ε", "published", "ours, median", "min", "seeds that reach it"]
    header += ["verdict", "ordered pairs", "samples", "of published", "CPU s"]
    print(table(header, rows))
    own = {case.name for case in CORPUS}
    summary = []
    for what, names in (("reach the published bound", reached), ("are clearly above it", above)):
        # A row with more values counts for the mechanism of that name.
        wider = {name.split(",")[0] for name in names}
        summary.append(f"{len(own & set(names))} {what} ({len(wider)} if the last rows count)")
    print(
        f"\nε₀ = {EPS0}, alpha = {ALPHA}, {options.seeds} seeds, scale {options.scale:g}, n_jobs=1."
        f' "Reached": the median is at least the published bound - {-REACHED};\n"clearly above": '
        f"more than {ABOVE} above it. The last rows let RAPPOR choose among five values, where the "
        f"published search had two.\nOf {len(options.only)} mechanisms, {', '.join(summary)}.\n"
        f"Bounds above the truth: {len(too_high)} of {audits} (alpha allows a tenth). "
        + "; ".join(too_high)
    )


if __name__ == "__main__":
    main()
