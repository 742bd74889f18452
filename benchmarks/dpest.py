"""The mechanisms of DPEST's comparison: `pytest_dp.estimate` beside what DPEST printed.

    python -m benchmarks.dpest

All claim eps0 = 0.1. The inputs are those of StatDP's patterns, or the two values that are given.
Seconds are wall-clock time for all pairs of a mechanism, theirs as published; ours with what is
known held against 800 real runs, and without.
"""

from __future__ import annotations

import math
import time
from itertools import combinations

import numpy as np

from benchmarks import mechanisms, truth
from pytest_dp import estimate

EPS0 = 0.1


def _patterns(n, relation="all_queries"):
    return [(list(d1), list(d2)) for d1, d2 in truth.patterns(n, relation)]


def _svt(threshold, **more):
    return {"eps": EPS0, "threshold": threshold, **more}


TABLE = [
    ("TruncatedGeometric", mechanisms.truncated_geometric, [(k, k + 1) for k in range(5)],
     {"eps": EPS0}, (0.1312, 23.92), math.log1p(2.0**-3)),
    ("PrefixSum", mechanisms.prefix_sum, _patterns(10), {"eps": EPS0}, (math.inf, 123.84), 1.0),
    ("SVT1", mechanisms.svt1, _patterns(10), _svt(0.5, c=1), (0.0920, 276.45),
     truth.svt_loss(1, EPS0, 0.5)),
    ("SVT3", mechanisms.svt3, _patterns(10), _svt(1, c=1), (math.inf, 47.02), 0.5),
    ("SVT5", mechanisms.svt5, _patterns(10), _svt(1), (math.inf, 24.79), math.inf),
    ("OneTimeRAPPOR", mechanisms.one_time_rappor, [(0, 1)], {}, (0.6005, 0.01),
     truth.rappor_loss(0.95)),
    ("OneTimeRAPPOR, 5 values", mechanisms.one_time_rappor, list(combinations(range(5), 2)), {},
     (None, None), 8 * math.log(0.525 / 0.475)),
    ("Laplace", mechanisms.laplace, [(0.0, 1.0)], {"eps": EPS0}, (None, None), EPS0),
    ("LaplaceParallel", mechanisms.laplace_parallel, [(0.0, 1.0)], {"eps": EPS0}, (None, None),
     EPS0),
    ("NoisyHist1", mechanisms.histogram, _patterns(5, "one_query"), {"eps": EPS0}, (None, None),
     EPS0),
    ("NoisyHist2", mechanisms.histogram_inverted, _patterns(5, "one_query"), {"eps": EPS0},
     (None, None), 1 / EPS0),
]  # fmt: skip


def _shown(value, digits=6):
    return "-" if value is None else f"{value:.{digits}g}"


def main():
    estimate(mechanisms.laplace, pairs=[(0.0, 1.0)], params={"eps": EPS0})  # what is imported once
    print(f"{'mechanism':24}{'theirs':>8}{'s':>8}{'truth':>10}{'ours':>10}{'s':>7}  no check  mode")
    for name, mechanism, pairs, params, (theirs, seconds), true in TABLE:
        started = time.perf_counter()
        found = estimate(mechanism, pairs=pairs, params=params, seed=1)
        took = time.perf_counter() - started
        started = time.perf_counter()
        estimate(mechanism, pairs=pairs, params=params, seed=1, check=False)
        alone = time.perf_counter() - started
        agrees = found.value == true or abs(found.value - true) <= 5e-5 * true
        print(
            f"{name:24}{_shown(theirs, 4):>8}{_shown(seconds):>8}{_shown(true):>10}"
            f"{_shown(found.value):>10}{took:7.2f}{alone:9.2f}  {found.mode}"
            f"{'' if agrees else '  WRONG'}",
            flush=True,
        )


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
