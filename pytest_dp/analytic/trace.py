"""The trace of a run: its draws, and the conditions on them that lead to the path that it takes.

A comparison of one draw with constants restricts it to intervals; a comparison of several draws is
recorded as a condition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.random import Generator

from pytest_dp.analytic.laws import Law
from pytest_dp.randomness.branching import Path
from pytest_dp.randomness.stand_ins import Instrument

Interval = tuple[float, float]
"""Open on the left, closed on the right; this makes a difference only for integers."""
MAX_CONDITIONS = 1_000
"""Comparisons of several draws in one run. With a larger limit, fewer mechanisms are refused, and
loops that wait for a draw end later. Chosen by hand."""
PLAIN_DRAWS = 64
"""Numbers among which one is looked for that agrees with what a refused run has decided. By
hand."""
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
    """What is known of the draws of a run.

    Parameters
    ----------
    path : Path
        Chooses the answer of each comparison.
    instrument : Instrument
        Is refused what cannot be traced.
    of_ufunc, of_function : callable
        What functions of numpy do with traced numbers.

    Attributes
    ----------
    laws : list of Law
        Of the draws, by their numbers.
    allowed : dict of int to intervals
        Where draws lie on this path; others may be anywhere.
    conditions : list of Condition
        On several draws each.
    """

    def __init__(
        self,
        path: Path,
        instrument: Instrument,
        of_ufunc: Callable[..., Any],
        of_function: Callable[..., Any],
    ) -> None:
        self.path, self.instrument = path, instrument
        self._plain: dict[int, float] = {}
        self.of_ufunc, self.of_function = of_ufunc, of_function
        self.laws: list[Law] = []
        self.allowed: dict[int, tuple[Interval, ...]] = {}
        self.conditions: list[Condition] = []

    def refuse(self, reason: str) -> NoReturn:
        """Give up what is being traced."""
        self.instrument.refuse(reason)

    def plain(self, draw: int) -> float:
        """The value of a draw in a run that is refused: one that is allowed, if that can be had."""
        if draw not in self._plain:
            values = self.laws[draw].draws(self.instrument.plain(Generator), PLAIN_DRAWS).tolist()
            allowed = self.allowed.get(draw, EVERYWHERE)
            fitting = (x for x in values if any(low < x <= high for low, high in allowed))
            self._plain[draw] = next(fitting, values[0])
        return self._plain[draw]

    def new(self, law: Law) -> int:
        """Add a draw, and return its number."""
        self.laws.append(law)
        return len(self.laws) - 1

    def cells(self, draw: int, cuts: Sequence[float]) -> list[tuple[Interval, ...]]:
        """Where a draw may be, between cuts; these cells may be empty."""
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
        """That a draw lies in any of the intervals, whatever is allowed on this path."""
        law = self.laws[draw]
        return math.fsum(
            math.exp(float(law.log_between(np.array(low), np.array(high))))
            for low, high in intervals
        )

    def restrict(self, draw: int, choices: Sequence[tuple[Interval, ...]]) -> int:
        """Decide in which of several sets of intervals a draw lies; returns its number."""
        weights = [self.probability(draw, choice) for choice in choices]
        total = math.fsum(weights)
        if not total > 0:
            self.refuse("it goes a way of which the probability is too small for floats")
        number = self.path.choose([weight / total for weight in weights])
        self.allowed[draw] = choices[number]
        return number

    def compare(self, terms: Mapping[int, float], constant: float) -> bool:
        """Decide whether a sum of several draws is above 0."""
        if len(self.conditions) >= MAX_CONDITIONS:
            self.refuse(f"it compares draws more than {MAX_CONDITIONS:,} times")
        above = self.path.choose([0.5, 0.5]) == 0
        sign = 1.0 if above else -1.0
        self.require({draw: sign * by for draw, by in terms.items()}, sign * constant)
        return above

    def require(self, terms: Mapping[int, float], constant: float) -> None:
        """Add the condition that a sum of draws is above 0."""
        self.conditions.append(Condition(terms, constant))
