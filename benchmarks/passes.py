"""What passes cost: mechanisms at most at their claims, with runs, CPU seconds and targets.

Targets: .25 CPU s where the loss is known on all pairs, and 100 runs there if a call takes over 10
ms; .35 CPU s for others with one number; 25 CPU s for a library of 40 claims; 20 s for ten claims
on OpenDP. The first audit of a process loads libraries, and is left out.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.common import progress, table
from pytest_dp import audit

KEPT = 1 / (1 + math.e)
_MATRIX = np.random.default_rng(0).random((300, 300))


def trained(x: Any, rng: Any) -> Any:
    weights = _MATRIX
    for _ in range(150):
        weights = np.tanh(weights @ _MATRIX / 300)
    return x + 0 * weights.sum() + rng.laplace()


def sparse_vector(x: Any, rng: Any) -> Any:
    threshold = 1 + rng.laplace(scale=4)
    answers = [x + rng.laplace(scale=8) > threshold for _ in range(5)]
    return next((k for k, above in enumerate(answers) if above), None)


def frame(x: Any, rng: Any) -> Any:
    import pandas as pd

    rows = pd.DataFrame({"key": np.arange(30_000) % 97, "value": 1.0})
    sums = [rows.assign(key=rows["key"] + k).groupby("key")["value"].sum() for k in range(12)]
    return x + 0 * float(sums[0].iloc[0]) + rng.laplace()


@dataclass(frozen=True)
class Case:
    """A mechanism with its claim."""

    name: str
    mechanism: Callable[..., Any]
    claim: dict[str, Any] = field(default_factory=lambda: {"eps": 1.0})
    known: bool = True
    slow: bool = False


CASES = [
    Case("Laplace count", lambda x, rng: x + rng.laplace()),
    Case("randomised response", lambda x, rng: bool(x) ^ (rng.random() < KEPT)),
    Case(
        "geometric",
        lambda x, rng: x + rng.geometric(1 - math.exp(-1)) - rng.geometric(1 - math.exp(-1)),
    ),
    Case("Gaussian, mu", lambda x, rng: x + rng.normal(), {"mu": 1.0}),
    Case("Gaussian, eps and delta", lambda x, rng: x + rng.normal(), {"eps": 1.0, "delta": 0.127}),
    Case("Gaussian, rho", lambda x, rng: x + rng.normal(), {"rho": 0.5}),
    Case("five answers", lambda x, rng: x + rng.laplace(scale=5, size=5)),
    Case("sparse vector of five", sparse_vector),
    Case("clipped", lambda x, rng: np.clip(x + rng.laplace(), 0, 1)),
    Case("rounded", lambda x, rng: round(x + rng.laplace())),
    Case("by random.gauss", lambda x: x + random.gauss(0, 1), {"mu": 1.0}),
    Case("two exponentials", lambda x: x + random.expovariate(1) - random.expovariate(1)),
    Case("logistic", lambda x, rng: x + rng.logistic()),
    Case("sum of two", lambda x, rng: x + rng.laplace(scale=1) + rng.laplace(scale=0.5)),
    Case("mixed", lambda x, rng: {"n": x + rng.laplace(), "fair": bool(rng.random() < 0.5)}),
    Case(
        "vectorised",
        lambda x, rng, size: x + rng.laplace(size=size),
        {"eps": 1.0, "vectorized": "size"},
    ),
    Case("64 answers", lambda x, rng: x + rng.laplace(scale=64, size=64)),
    Case("choice of four", lambda x, rng: (x + rng.choice(4, p=[0.475, 0.175, 0.175, 0.175])) % 4),
    Case(
        "noisy maximum",
        lambda x, rng: int(np.argmax(np.array([x, 0.5, 0.2]) + rng.laplace(scale=2, size=3))),
    ),
    Case("dictionary", lambda x, rng: {k: x + rng.laplace(scale=4) for k in "abcd"}),
    Case("gamma noise", lambda x, rng: x + rng.gamma(1) - rng.gamma(1), known=False),
    Case(
        "lognormal factor",
        lambda x, rng: (1 + x) * rng.lognormal(sigma=1) + 30 * rng.laplace(),
        known=False,
    ),
    Case("data frame, 30 ms", frame, slow=True),
    Case("trainer, 200 ms", trained, slow=True),
]


def opendp_cases() -> list[Case]:
    """Ten measurements; none without OpenDP."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return []
    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    scales = [1.0 + k / 10 for k in range(10)]
    made = [dp.m.make_laplace(*space, scale=scale) for scale in scales]
    return [
        Case(
            f"OpenDP, scale {scale:.1f}",
            lambda x, m=m: m(float(x)),
            {"eps": 1 / scale},
            known=False,
        )
        for scale, m in zip(scales, made, strict=True)
    ]


def measured(case: Case) -> tuple[Any, float, float]:
    """The result of an audit, its CPU seconds and seconds."""
    started, spent = time.perf_counter(), time.process_time()
    result = audit(case.mechanism, pairs=[(0, 1)], seed=1, n_jobs=1, **case.claim)
    return result, time.process_time() - spent, time.perf_counter() - started


def row(case: Case) -> list[str]:
    """A row of the table."""
    result, cpu, seconds = measured(case)
    progress(f"{case.name}: {result.strength or result.verdict}")
    if case.slow:
        target, met = "100 runs, 20 s", result.samples <= 100 and seconds <= 20
    else:
        least = 0.25 if case.known else 0.35
        target, met = f"{least} CPU s", cpu <= least
    grade = result.strength or result.verdict
    caught = f"{result.resolution:.3g}"
    cells = [f"{result.samples:,}", f"{cpu:.2f}", f"{seconds:.1f}", grade, caught, target]
    return [case.name, *cells, "yes" if met else "no"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of the names of mechanisms")
    parser.add_argument("--opendp", action="store_true", help="ten claims on OpenDP as well")
    parser.add_argument("--library", action="store_true", help="40 claims of a library as well")
    options = parser.parse_args()
    measured(CASES[0])
    header = ["mechanism", "runs", "CPU s", "seconds", "grade", "catch from", "target", "met"]
    print(table(header, [row(case) for case in CASES if options.only in case.name]))
    if options.opendp:
        parts = [measured(case) for case in opendp_cases()]
        cpu, seconds = sum(part[1] for part in parts), sum(part[2] for part in parts)
        print(f"\nOpenDP, {len(parts)} claims: {cpu:.1f} CPU s, {seconds:.1f} s (target: 20 s)")
    if options.library:
        quick = [case for case in CASES if case.known and not case.slow]
        spent = sum(measured(case)[1] for case in (quick + quick)[:40])
        print(f"\na library of {len((quick + quick)[:40])} claims: {spent:.1f} CPU s (target: 25)")


if __name__ == "__main__":
    main()
