"""The non-private means of DP-Auditorium, beside the sequential MMD test (arXiv 2509.07055).

Add/remove: values are clipped to [0, 1], the sum is divided by the count, and Laplace noise of
scale 1 / (share eps count) is added; share is 1/2 if a count is noised, with scale 1 / (share eps),
and else 1. Variant 1 uses the raw count in both places; variant 2 divides by a noised one (at least
1), and scales the noise by the raw one. The published pair is not known; here it is one record of 1
against two at the extremes, [1] and [1, 0]. The last rows are Laplace noise that loses 1.3 times
its claim, which the MMD test cannot see.

Run with ``python -m benchmarks.sequential_means [--seeds 20]``.
"""

from __future__ import annotations

import argparse
import math
import sys
from statistics import median

import numpy as np

from benchmarks import vectorized
from benchmarks.common import cpu_seconds, progress, table
from pytest_dp import Sequential, audit

ALPHA = 0.05
EPS = (0.01, 0.1)
PAIR = ([1.0], [1.0, 0.0])
PUBLISHED = {(1, 0.01): 331, (1, 0.1): 920, (2, 0.01): 192, (2, 0.1): 770}


def raw_count_mean(values, eps, rng, size):
    values = np.clip(values, 0, 1)
    return values.mean() + rng.laplace(scale=1 / (eps * len(values)), size=size)


def half_noised_mean(values, eps, rng, size):
    values = np.clip(values, 0, 1)
    noisy = np.maximum(len(values) + rng.laplace(scale=2 / eps, size=size), 1)
    return values.sum() / noisy + rng.laplace(scale=2 / (eps * len(values)), size=size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()

    cells = [
        (f"mean, variant {k}", mean, PAIR, eps, eps, PUBLISHED[k, eps])
        for k, mean in ((1, raw_count_mean), (2, half_noised_mean))
        for eps in EPS
    ]
    cells += [
        ("Laplace, 1.3 x", vectorized.laplace, (0.0, 1.0), eps, 1.3 * eps, "blind")
        for eps in (*EPS, 1.0)
    ]
    rows, all_found = [], True
    for name, mechanism, pair, claim, eps, published in cells:
        row = [name, claim, published]
        for coupled in (True, False):
            taken, before = [], cpu_seconds()
            for seed in range(options.seeds):
                result = audit(
                    mechanism,
                    eps=claim,
                    params={"eps": eps},
                    pairs=[pair],
                    vectorized="size",
                    alpha=ALPHA,
                    max_samples=20_000_000,
                    max_seconds=3600,
                    method=Sequential(coupled=coupled),
                    seed=seed,
                    n_jobs=1,
                )
                taken.append(result.bet_samples // 2 if result.violated else math.inf)
            all_found &= math.inf not in taken
            seconds = (cpu_seconds() - before) / options.seeds
            row += [f"{median(taken):,.0f}", f"{max(taken):,.0f}", f"{seconds:.1f}"]
        rows.append(row)
        progress(f"{row}")
    header = ["mechanism", "claim", "MMD test", "coupled, median", "max", "CPU s"]
    print(table([*header, "independent, median", "max", "CPU s"], rows))
    print(f"\nPairs of outputs to detection, alpha = {ALPHA}, {options.seeds} seeds.")
    sys.exit(not all_found)


if __name__ == "__main__":
    main()
