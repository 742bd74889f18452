"""The distribution of a mechanism's outputs on one input, as far as it is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pytest_dp.arrays import Floats, Ints
from pytest_dp.outputs.hashing import hashes
from pytest_dp.outputs.leaves import opaque_types
from pytest_dp.outputs.table import tabulate
from pytest_dp.randomness.branching import Weight

NO_EQUALITY = "output without value equality"


class NotExact(Exception):  # noqa: N818  a way out, not an error
    """A mechanism cannot be enumerated; the message says why."""


@dataclass(frozen=True)
class Distribution:
    """Outputs, no two of them equal, and what is known of their probabilities."""

    outcomes: tuple[Any, ...]
    """One of each set of equal outputs."""
    marks: Ints
    """Their hashes (`pytest_dp.outputs.hashing`), which are those of equal outputs."""
    weights: tuple[Weight, ...]
    """Lower bounds on their probabilities."""
    residual: float
    """The probability of outputs that were not enumerated."""
    rounding: float
    """Relative error of any of the weights; 0 where all are fractions."""
    runs: int
    """Of the mechanism."""
    only_integers: bool = True
    """Whether all numbers in outputs are whole: others may differ by rounding alone."""

    @cached_property
    def probabilities(self) -> Floats:
        """The weights as floats."""
        return np.array([float(weight) for weight in self.weights])


def grouped(
    outputs: Sequence[Any], weights: Sequence[Weight], residual: Weight, rounding: float, runs: int
) -> Distribution:
    """The distribution of the outputs of paths, of which some may be equal.

    Raises NotExact if outputs cannot be compared by value.
    """
    table = tabulate(list(outputs))
    if opaque_types(table.levels):
        raise NotExact(NO_EQUALITY)
    marks = hashes(table)
    total: dict[int, Weight] = {}
    outcomes: dict[int, Any] = {}
    for mark, output, weight in zip(marks.tolist(), outputs, weights, strict=True):
        total[mark] = total.get(mark, 0) + weight
        outcomes.setdefault(mark, output)
    return Distribution(
        tuple(outcomes.values()),
        np.array(list(outcomes), np.int64),
        tuple(total.values()),
        float(residual),
        rounding,
        runs,
        bool((table.numbers[np.isfinite(table.numbers)] % 1 == 0).all()),
    )
