"""A real bug in a released library, and two correct mechanisms of released libraries.

diffprivlib 0.6.6 gives no noise to the second-degree coefficient of `LinearRegression` if the
lower bound of the data is 0 (its issue 105). On the records (1, 0), (10, 0) the slope is then
Laplace noise divided by exactly 101, on (1, 0), (0, 0) divided by exactly 1: the true loss is
ln 101 = 4.62 for a claim of 1.

Run with ``python -m benchmarks.diffprivlib_bug [--seeds 3]``.
"""

from __future__ import annotations

import argparse
import math
import sys
import time

import numpy as np
import opendp.prelude as dp
from diffprivlib.accountant import BudgetAccountant
from diffprivlib.mechanisms import Laplace
from diffprivlib.models import LinearRegression

from benchmarks.common import count, progress, table
from pytest_dp import audit

RECORDS = [(1, 0), (10, 0)], [(1, 0), (0, 0)]
dp.enable_features("contrib")
_opendp_laplace = dp.m.make_laplace(
    dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=1.0
)


def slope(records, eps, rng):
    x, y = np.array(records, dtype=float).T
    model = LinearRegression(
        epsilon=eps,
        bounds_X=(0, 10),
        bounds_y=(0, 10),
        fit_intercept=False,
        random_state=np.random.RandomState(rng.bit_generator),
        accountant=BudgetAccountant(),
    )
    return model.fit(x[:, None], y).coef_[0]


def diffprivlib_laplace(answer, eps):
    return Laplace(epsilon=eps, sensitivity=1).randomise(answer)


def opendp_laplace(answer):
    return _opendp_laplace(answer)


CASES = {
    "diffprivlib LinearRegression": (
        slope,
        {"eps": "eps", "params": {"eps": 1.0}, "neighbors": "replace_one", "pairs": [RECORDS]},
        "violated",
    ),
    "diffprivlib Laplace": (
        diffprivlib_laplace,
        {"eps": "eps", "params": {"eps": 1.0}, "pairs": [(0.0, 1.0)]},
        "no violation",
    ),
    "OpenDP Laplace": (opendp_laplace, {"eps": 1.0, "pairs": [(0.0, 1.0)]}, "no violation"),
}


def by_hand(runs: int) -> str:
    """The loss of the slope on ``|slope| < t``, sampled and in closed form."""
    samples = []
    for records in RECORDS:
        rng = np.random.default_rng(1)
        samples.append(np.abs([slope(records, 1.0, rng) for _ in range(runs)]))
    # A third of eps is spent on the first-degree coefficient, whose sensitivity is 100.
    scale = 100 / (1 / 3)
    rows = []
    for t in (3.0, 1.0, 0.3):
        p, q = (-math.expm1(-t * sum(x * x for x, _ in records) / scale) for records in RECORDS)
        a, b = ((sample < t).sum() for sample in samples)
        observed = f"{math.log(a / b):.2f}" if a and b else "inf"
        rows.append([f"abs(slope) < {t:g}", f"{a}/{runs}", f"{b}/{runs}", observed])
        rows[-1] += [f"{p:.4f}", f"{q:.4f}", f"{math.log(p / q):.2f}"]
    header = ["event", "on D", "on D'", "loss", "exact on D", "exact on D'", "exact loss"]
    return table(header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=5_000, help="slopes a side, sampled by hand")
    options = parser.parse_args()
    print(by_hand(options.runs) + f"\n\nTrue loss of the slope: ln 101 = {math.log(101):.3f}\n")
    rows, right = [], True
    for name, (mechanism, keywords, expected) in CASES.items():
        for seed in range(options.seeds):
            start = time.perf_counter()
            result = audit(mechanism, **keywords, seed=seed)
            seconds = time.perf_counter() - start
            right &= result.verdict == expected
            event = str(result.counterexample.event) if result.counterexample else ""
            row = [name, seed, result.verdict, f"{result.eps_lower:.2f}", event]
            rows.append([*row, count(result.samples), f"{seconds:.1f}"])
            progress(str(rows[-1]))
    header = ["mechanism, claim eps = 1", "seed", "verdict", "eps at least", "event"]
    print(table([*header, "samples", "seconds"], rows))
    sys.exit(not right)


if __name__ == "__main__":
    main()
