"""Audits with all that they found, to compare before and after a change that should change none.

Each line is one audit: verdict, bounds, e-value or p-value, samples, and the counterexample. A
refactoring that keeps behaviour keeps every line.

Run with ``python -m benchmarks.recorded > before.txt`` and, after the change, ``diff`` another run
with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.cases import CORPUS
from benchmarks.common import progress
from pytest_dp import Sequential, audit
from pytest_dp.basics.errors import PytestDPError

SAMPLES = 20_000
METHODS = {"sequential": {}, "statdp": {}, "dpsniper": {"alpha": 0.01}}


def count(records: list[int], rng: np.random.Generator) -> float:
    return len(records) + rng.laplace(scale=0.6)


def labels(records: list[int], rng: np.random.Generator) -> dict[str, Any]:
    noise = rng.laplace(scale=2.0)
    return {"sum": sum(records) + noise, "count": 2 * len(records) + noise, "kind": "clinic"}


def legacy(records: list[int]) -> list[int]:
    return [len(records) + int(np.random.geometric(0.6)) - int(np.random.geometric(0.6))]


def raises(records: list[int], rng: np.random.Generator) -> float:
    if rng.random() < 0.2:
        raise ValueError(f"no budget left for {len(records)}")
    return float(rng.laplace())


def text(records: list[int], rng: np.random.Generator) -> str:
    return "ab"[int(rng.random() < 0.5 + 0.2 * (len(records) % 2))] * 3


PLAIN: tuple[Callable[..., Any], ...] = (count, labels, legacy, raises, text)
PAIRS = {"pairs": [([1, 0, 1], [1, 0]), ([1], [])]}


def audits() -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    """Name, mechanism and keywords of each."""
    for method, more in METHODS.items():
        for case in CORPUS[::2]:
            keywords = case.keywords(1.0, many=True)
            yield f"{case.name} {method}", case.vectorized, {**keywords, **more, "method": method}
        for mechanism in PLAIN:
            keywords = {"eps": 1.0, **PAIRS, **more, "method": method}
            yield f"{mechanism.__name__} {method}", mechanism, keywords
    for mechanism in PLAIN:
        keywords = {"eps": 1.0, **PAIRS, "method": Sequential(coupled=False)}
        yield f"{mechanism.__name__} independent", mechanism, keywords


def main() -> None:
    for name, mechanism, keywords in audits():
        progress(name)
        try:
            result = audit(mechanism, **keywords, max_samples=SAMPLES, seed=5, n_jobs=1)
        except PytestDPError as error:
            print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}")
            continue
        found = result.counterexample
        shown = (
            ""
            if found is None
            else f" {found.d1!r} {found.d2!r} {found.event} {found.counts} {found.runs}"
        )
        print(
            f"{name}: {result.verdict} {result.eps_lower:.12g} p={result.p_value} "
            f"e={result.e_value} {result.resolution:.12g} {result.samples}{shown}"
        )


if __name__ == "__main__":
    main()
