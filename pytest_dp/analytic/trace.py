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

from pytest_dp.limits import MANY, THOUSAND
from pytest_dp.randomness.branching import Path
from pytest_dp.randomness.laws import Law
from pytest_dp.randomness.stand_ins import Instrument

Interval = tuple[float, float]
"""Open on the left, closed on the right; this makes a difference only for integers."""
EVERYWHERE: tuple[Interval, ...] = ((-math.inf, math.inf),)


@dataclass(frozen=True, slots=True)
class Condition:
    """That a sum of draws, each by its number times a factor, and a constant is above 0."""

    terms: Mapping[int, float]
    constant: float


class Trace:
    """What is known of the draws of a run.

    The path chooses the answer of each comparison, and the instrument is refused what cannot be
    traced. `laws` are those of the draws, by their numbers. `allowed` says where draws lie on this
    path; others may be anywhere. Each of `conditions` is on several draws. `of_ufunc` and
    `of_function` say what functions of numpy do with traced numbers.
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
            values = self.laws[draw].draws(self.instrument.plain(Generator), MANY).tolist()
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
        if len(self.conditions) >= THOUSAND:
            self.refuse(f"it compares draws more than {THOUSAND:,} times")
        above = self.path.choose([0.5, 0.5]) == 0
        sign = 1.0 if above else -1.0
        self.require({draw: sign * by for draw, by in terms.items()}, sign * constant)
        return above

    def require(self, terms: Mapping[int, float], constant: float) -> None:
        """Add the condition that a sum of draws is above 0."""
        self.conditions.append(Condition(terms, constant))
