"""DP-Sniper's lower bound exceeds the truth in at most alpha of all runs.

As a bound of 0 would do as well, the share of runs that show most of the truth is given too. With
``--corpus``, all mechanisms of the corpus whose largest loss on the claim's inputs is known.
Exit status 1 if a share is above alpha + 2 standard errors.

Run with ``python -m benchmarks.dpsniper_coverage [--corpus] [--jobs 2]``.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from statistics import median

from joblib import Parallel, delayed

from benchmarks.cases import CORPUS
from benchmarks.common import progress, table
from benchmarks.type_one import BOUNDARY
from pytest_dp import audit

ALPHA = 0.05
MOST = 0.8
"""Share of the truth that counts as most of it."""

CASES = {case.name: case for case in CORPUS}
FEW = ("Laplace", "TruncatedGeometric", "NoisyMax1", "SVT1", "OneTimeRAPPOR")
"""These at ε₀ = 1, where few samples show something, and two of `benchmarks.type_one`."""
EXACT = ("randomised response", "geometric")


def known() -> tuple[str, ...]:
    """The mechanisms of the corpus whose largest loss is known."""
    return tuple(name for name, case in CASES.items() if math.isfinite(case.truth(0.1)))


def lower_bound(name: str, eps0: float, max_samples: int, seed: int) -> float:
    if name in CASES:
        mechanism, keywords = CASES[name].vectorized, CASES[name].keywords(eps0, many=True)
    else:
        mechanism, inputs = BOUNDARY[name]
        keywords = {"eps": "eps", "params": {"eps": eps0}, "vectorized": "size", **inputs}
    return audit(
        mechanism,
        **keywords,
        method="dpsniper",
        alpha=ALPHA,
        max_samples=max_samples,
        max_seconds=3600,
        seed=seed,
        n_jobs=1,
    ).eps_lower


def allowed(runs: int) -> float:
    return ALPHA + 2 * math.sqrt(ALPHA * (1 - ALPHA) / runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", action="store_true", help="all of known truth, at ε₀ = 0.1")
    parser.add_argument("--seeds", type=int, help="for each (1,000 in all; 200 with --corpus)")
    parser.add_argument("--max-samples", type=int, help="40,000; 50,000 with --corpus")
    parser.add_argument("--only", nargs="+", choices=[*CASES, *EXACT])
    parser.add_argument("--jobs", type=int, default=2, help="audits at the same time")
    options = parser.parse_args()

    names = options.only or (known() if options.corpus else FEW + EXACT)
    seeds = options.seeds or (200 if options.corpus else math.ceil(1000 / len(names)))
    max_samples = options.max_samples or (50_000 if options.corpus else 40_000)
    eps0 = 0.1 if options.corpus else 1.0
    rows, kept, all_above = [], True, 0
    with Parallel(n_jobs=options.jobs, batch_size=5) as parallel:
        for name in names:
            start = time.perf_counter()
            bounds = parallel(
                delayed(lower_bound)(name, eps0, max_samples, seed) for seed in range(seeds)
            )
            # Proven to be at least the largest loss on the claim's inputs.
            truth = CASES[name].truth(eps0) if name in CASES else eps0
            above = sum(bound > truth for bound in bounds)
            most = sum(bound > MOST * truth for bound in bounds)
            all_above += above
            kept &= above <= allowed(seeds) * seeds or not options.corpus
            row = [name, f"{truth:.4g}", f"{above}/{seeds}", f"{above / seeds:.1%}"]
            rows.append(
                [*row, f"{most / seeds:.0%}", f"{median(bounds):.4f}", f"{max(bounds):.4f}"]
            )
            progress(f"{rows[-1]} in {time.perf_counter() - start:.0f} s")
    runs = seeds * len(names)
    kept &= all_above <= allowed(runs) * runs
    header = ["mechanism", "true ε", "bounds above it", "share", f"above {MOST} of it"]
    print(table([*header, "median bound", "largest"], rows))
    print(
        f"\nε₀ = {eps0}, alpha = {ALPHA}, {max_samples:,} samples each. Above the truth: "
        f"{all_above} of {runs:,} bounds ({all_above / runs:.2%}). "
        f"Allowed (5 % + 2 s.e.): {allowed(runs):.2%}"
        + (f", for each mechanism {allowed(seeds):.2%}." if options.corpus else ".")
    )
    sys.exit(not kept)


if __name__ == "__main__":
    main()
