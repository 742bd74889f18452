"""DP-Sniper at a reduced effort: our bounds and processor time against the published tool's.

The published tool was measured three times on two cores, with 8 M samples for 4 ordered pairs of
inputs and 20 M for 16. We get a fraction of those.

Run with ``python -m benchmarks.dpsniper_reduced [--seeds 5] [--share 0.35] [--only SVT3 ...]``.
"""

from __future__ import annotations

import argparse
from statistics import median

from benchmarks.cases import CORPUS
from benchmarks.common import count, progress, table
from benchmarks.dpsniper_bounds import ALPHA, EPS0, trial

MEASURED = {
    "Laplace": (8e6, 14, (0.086, 0.096, 0.080)),
    "NoisyHist1": (8e6, 15, (0.077, 0.075, 0.072)),
    "NoisyMax1": (20e6, 28, (0.071, 0.069, 0.070)),
    "NoisyMax3": (20e6, 29, (0.252, 0.235, 0.229)),
    "SVT1": (20e6, 38, (0.026, 0.007, 0.068)),
    "SVT3": (20e6, 45, (0.090, 0.153, 0.148)),
    "OneTimeRAPPOR": (8e6, 21, (0.598, 0.596, 0.574)),
    "PrefixSum": (20e6, 33, (0.477, 0.491, 0.500)),
    "TruncatedGeometric": (8e6, 14, (0.095, 0.093, 0.094)),
}
"""Samples, processor seconds and bounds of the published tool."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--share", type=float, default=0.35, help="of the tool's samples")
    parser.add_argument("--only", nargs="+", choices=MEASURED, default=list(MEASURED))
    options = parser.parse_args()

    cases = {case.name: case for case in CORPUS}
    trial(cases["Laplace"], 10_000, 0)  # the first audit of a process pays for imports
    rows, above, above_best, faster = [], 0, 0, 0
    for name in options.only:
        their_samples, their_seconds, theirs = MEASURED[name]
        trials = [
            trial(cases[name], round(options.share * their_samples), seed)
            for seed in range(options.seeds)
        ]
        bounds, samples, seconds = zip(*trials, strict=True)
        above += median(bounds) > median(theirs)
        above_best += median(bounds) > max(theirs)
        faster += max(seconds) < their_seconds
        rows.append(
            [
                name,
                f"{cases[name].truth(EPS0):.4g}",
                " ".join(f"{bound:.3f}" for bound in theirs),
                f"{median(bounds):.4f}",
                f"{min(bounds):.4f}",
                count(their_samples),
                count(max(samples)),
                their_seconds,
                f"{median(seconds):.1f}",
            ]
        )
        progress(f"{rows[-1]}")
    header = ["mechanism", "true ε", "their bounds", "ours, median", "min", "their samples", "ours"]
    print(table([*header, "their CPU s", "ours, median"], rows))
    print(
        f"\nε₀ = {EPS0}, alpha = {ALPHA}, {options.seeds} seeds, {options.share:.3g} of their "
        f"samples. Of {len(rows)}, our median is above their median on {above}, above the best of "
        f"their three on {above_best}, and our slowest run takes less CPU time on {faster}."
    )


if __name__ == "__main__":
    main()
