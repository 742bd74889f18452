"""How often a mechanism exactly at its claim is rejected; at most alpha is allowed.

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


def trial(name: str, eps: float, max_samples: int, method: str, seed: int) -> tuple[str, int]:
    mechanism, inputs = BOUNDARY[name]
    result = audit(
        mechanism,
        eps="eps",
        params={"eps": eps},
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
    for name in BOUNDARY:
        start = time.perf_counter()
        trials = Parallel(n_jobs=options.jobs, batch_size=10)(
            delayed(trial)(name, options.eps, options.max_samples, options.method, seed)
            for seed in range(options.audits)
        )
        verdicts, samples = zip(*trials, strict=True)
        share = verdicts.count("violated") / options.audits
        unclear = verdicts.count("inconclusive")
        kept &= share <= allowed
        rows.append([name, f"{share:.2%}", f"{allowed:.2%}", unclear, count(median(samples))])
        progress(f"{rows[-1]} in {time.perf_counter() - start:.0f} s")
    header = ["mechanism at its claim", "rejected", "allowed (5 % + 2 s.e.)", "inconclusive"]
    print(table([*header, "median samples"], rows))
    print(f"\n{options.audits} audits each, ε = {options.eps}, alpha = {ALPHA}.")
    sys.exit(not kept)


if __name__ == "__main__":
    main()
