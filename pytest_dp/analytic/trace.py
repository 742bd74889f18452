"""One run of a mechanism, as it is traced: its draws, and the conditions on the way that it goes.

A draw of which something was decided is restricted to intervals; conditions on several draws at
once are kept as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np

from pytest_dp.analytic.laws import Law
from pytest_dp.randomness.branching import Path

Interval = tuple[float, float]
"""Open on the left, closed on the right; only of integers that makes a difference."""
MAX_CONDITIONS = 1_000
"""Comparisons of several draws in one run."""
EVERYWHERE: tuple[Interval, ...] = ((-math.inf, math.inf),)


@dataclass(frozen=True, slots=True)
class Condition:
    """That a sum of draws is above 0.

    Attributes
    ----------
    terms : mapping of int to float
        What each draw, by its number, is multiplied by.
    constant : float
        What is added.
    """

    terms: Mapping[int, float]
    constant: float


class Trace:
    """What is known of a run.

    Parameters
    ----------
    path : Path
        Which way to go, wherever it may go several.
    refuse : callable
        Gives up, for the reason that it is told.
    of_ufunc, of_function : callable
        What numpy does with numbers that are traced.

    Attributes
    ----------
    laws : list of Law
        Of the draws.
    allowed : dict of int to intervals
        Where draws are that were decided upon; others may be anywhere.
    conditions : list of Condition
        On several draws each.
    """

    def __init__(
        self,
        path: Path,
        refuse: Callable[[str], NoReturn],
        of_ufunc: Callable[..., Any],
        of_function: Callable[..., Any],
    ) -> None:
        self.path, self.refuse = path, refuse
        self.of_ufunc, self.of_function = of_ufunc, of_function
        self.laws: list[Law] = []
        self.allowed: dict[int, tuple[Interval, ...]] = {}
        self.conditions: list[Condition] = []

    def new(self, law: Law) -> int:
        """The number of a new draw."""
        self.laws.append(law)
        return len(self.laws) - 1

    def cells(self, draw: int, cuts: Sequence[float]) -> list[tuple[Interval, ...]]:
        """Where a draw may be, cut into pieces; some of them may be empty."""
        edges = [-math.inf, *cuts, math.inf]
        allowed = self.allowed.get(draw, EVERYWHERE)
        return [
            tuple(
                (max(low, left), min(high, right))
                for left, right in allowed
                if max(low, left) < min(high, right)
            )
            for low, high in pairwise(edges)
        ]

    def probability(self, draw: int, intervals: Sequence[Interval]) -> float:
        """Of a draw to be in any of them, whatever was decided."""
        law = self.laws[draw]
        return math.fsum(
            math.exp(float(law.log_between(np.array(low), np.array(high))))
            for low, high in intervals
        )

    def restrict(self, draw: int, choices: Sequence[tuple[Interval, ...]]) -> int:
        """Decide in which of several places a draw is, and which was chosen."""
        weights = [self.probability(draw, choice) for choice in choices]
        total = math.fsum(weights)
        if not total > 0:
            self.refuse("it goes a way of which the probability is too small for floats")
        chosen = self.path.choose([weight / total for weight in weights])
        self.allowed[draw] = choices[chosen]
        return chosen

    def compare(self, terms: Mapping[int, float], constant: float) -> bool:
        """Decide whether a sum of several draws is above 0."""
        if len(self.conditions) >= MAX_CONDITIONS:
            self.refuse(f"it compares draws more than {MAX_CONDITIONS:,} times")
        above = self.path.choose([0.5, 0.5]) == 0
        sign = 1.0 if above else -1.0
        self.require({draw: sign * by for draw, by in terms.items()}, sign * constant)
        return above

    def require(self, terms: Mapping[int, float], constant: float) -> None:
        """Go on only where a sum of draws is above 0."""
        self.conditions.append(Condition(terms, constant))
