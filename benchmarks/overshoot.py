"""How much longer an audit of a claim that is just kept takes than to where it may stop.

Ten mechanisms exactly at their claim, each audited twice with the same random numbers: as it is,
and without looking into doubts, so that it ends as soon as its margin is reached. The ratio of runs
is the overshoot; the median over mechanisms should be at most 1.3.

Run with ``python -m benchmarks.overshoot [--seeds 5]``.
"""

from __future__ import annotations

import argparse
from statistics import median
from unittest.mock import patch

from benchmarks.common import progress, table
from benchmarks.resolution import CASES, audited

TEN = (
    *("Laplace", "3 answers moved", "10 answers moved", "histogram of 10", "response of 2"),
    *("geometric", "4 bits", "(1, 0.05), response", "mu, Gaussian", "rho, Gaussian"),
)


def runs(name: str, seed: int) -> int:
    case = CASES[name]
    return audited(case, case.claimed, 400_000, True, seed).samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=CASES, default=TEN)
    options = parser.parse_args()
    rows, ratios = [], []
    for name in options.only:
        spent = [runs(name, seed) for seed in range(options.seeds)]
        with patch("pytest_dp.auditors.betting_audit.BettingAudit._is_in_doubt", lambda _: False):
            least = [runs(name, seed) for seed in range(options.seeds)]
        over = [one / other for one, other in zip(spent, least, strict=True)]
        ratios.append(median(over))
        rows.append([name, f"{median(least):,}", f"{median(spent):,}", f"{ratios[-1]:.2f}"])
        rows[-1] += [f"{sum(spent) / sum(least):.2f}"]
        progress(f"{rows[-1]}")
    print(table(["mechanism", "could stop at", "stops at", "median ratio", "of all"], rows))
    print(f"\nmedian overshoot: {median(ratios):.2f} (asked: at most 1.3)")


if __name__ == "__main__":
    main()
