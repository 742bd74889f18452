"""How often a mechanism exactly at its claim is rejected; at most alpha is allowed.

A test that never rejects would pass, so the same mechanisms are also audited at half as much again.

Run with ``python -m benchmarks.type_one [--audits 1000] [--jobs 2]``.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from statistics import median

from joblib import Parallel, delayed

from benchmarks import vectorized
from benchmarks.common import count, progress, table
from pytest_dp import audit, values

ALPHA = 0.05
_DATASETS = {"inputs": [[1, 0, 1], [1, 0]], "neighbors": "add_remove_one"}
BOUNDARY = {
    "Laplace": (vectorized.noisy_count, _DATASETS),
    "randomised response": (vectorized.randomized_response, {"inputs": values([0, 1])}),
    "geometric": (vectorized.geometric_count, _DATASETS),
}
"""Mechanisms that lose exactly `eps`, each on many events."""


ABOVE = 1.5
"""Loss over claim of the mechanisms that ought to be rejected."""


def trial(
    name: str, eps: float, ratio: float, max_samples: int, method: str, seed: int
) -> tuple[str, int]:
    """Verdict and samples of one audit of a mechanism that loses `ratio` times its claim."""
    mechanism, inputs = BOUNDARY[name]
    result = audit(
        mechanism,
        eps=eps,
        params={"eps": ratio * eps},
        **inputs,
        vectorized="size",
        alpha=ALPHA,
        max_samples=max_samples,
        method=method,
        seed=seed,
        n_jobs=1,
    )
    return result.verdict, result.samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2, help="audits at the same time")
    parser.add_argument("--eps", type=float, default=1.0)
    parser.add_argument("--max-samples", type=int, default=40_000)
    parser.add_argument("--method", default="statdp")
    options = parser.parse_args()

    allowed = ALPHA + 2 * math.sqrt(ALPHA * (1 - ALPHA) / options.audits)
    rows, kept = [], True
    with Parallel(n_jobs=options.jobs, batch_size=10) as parallel:

        def verdicts(name: str, ratio: float, audits: int) -> tuple[list[str], float]:
            trials = parallel(
                delayed(trial)(name, options.eps, ratio, options.max_samples, options.method, seed)
                for seed in range(audits)
            )
            return [verdict for verdict, _ in trials], median(samples for _, samples in trials)

        for name in BOUNDARY:
            start = time.perf_counter()
            found, samples = verdicts(name, 1.0, options.audits)
            share = found.count("violated") / options.audits
            kept &= share <= allowed
            few = max(1, options.audits // 10)
            above = verdicts(name, ABOVE, few)[0].count("violated") / few
            row = [name, f"{share:.2%}", f"{allowed:.2%}", found.count("inconclusive")]
            rows.append([*row, count(samples), f"{above:.0%}"])
            progress(f"{rows[-1]} in {time.perf_counter() - start:.0f} s")
    header = ["mechanism at its claim", "rejected", "allowed (5 % + 2 s.e.)", "inconclusive"]
    print(table([*header, "median samples", f"rejected at {ABOVE} x the claim"], rows))
    print(
        f"\n{options.audits:,} audits each (a tenth in the last column), "
        f"ε = {options.eps}, alpha = {ALPHA}."
    )
    sys.exit(not kept)


if __name__ == "__main__":
    main()
