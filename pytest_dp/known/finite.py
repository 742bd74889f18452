"""Numbers with few values, which depend on the parts of the line that some draws are in.

A comparison of one draw with constants is such a number: it is decided only if the mechanism asks.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from pytest_dp.known.domains import ByLaw, Evenly, LazyDraw, float_of, number_of
from pytest_dp.known.monotone import is_draw
from pytest_dp.known.trace import (
    EVERYWHERE,
    Combined,
    Function,
    Trace,
    is_constant,
    operators,
    simplest,
)
from pytest_dp.limits import MAX_WORK


class Finite(Combined):
    """One of few values, depending on the parts of the line that some draws are in.

    `cuts` has for each draw the points between the parts, increasing. `values` has one for each
    combination of parts, those of the last draw varying fastest.
    """

    __slots__ = ("cuts", "values")

    def __init__(
        self, trace: Trace, cuts: Mapping[int, tuple[float, ...]], values: Sequence[Any]
    ) -> None:
        super().__init__(trace)
        self.cuts, self.values = cuts, values

    def plain(self) -> Any:
        """The value where its draws are, as in a real run."""
        return self.value_at(self.trace.plain)

    def value_at(self, value_of: Callable[[int], float]) -> Any:
        """The value where its draws have some values."""
        number = 0
        for draw, cuts in self.cuts.items():
            number = number * (len(cuts) + 1) + bisect_left(cuts, value_of(draw))
        return self.values[number]

    def simple(self) -> Any:
        """A constant, if by what was decided before only one value is possible."""
        if not self.cuts.keys() & self.trace.allowed.keys():
            return self
        parts = [
            [self.trace.probability(draw, cell) > 0 for cell in self.trace.cells(draw, cuts)]
            for draw, cuts in self.cuts.items()
        ]
        possible = {
            (type(value), value)
            for value, combination in zip(self.values, product(*parts), strict=True)
            if all(combination)
        }
        return next(iter(possible))[1] if len(possible) == 1 else self

    def decided(self) -> Any:
        """One of its values from here on; the mechanism is run once for each of them."""
        if self.cuts.keys() & self.trace.cut_off:
            self._refuse("a rounded draw, which has endless values, decides what it does")
        if len(self.cuts) == 1:
            ((draw, cuts),) = self.cuts.items()
            places: dict[Any, tuple[Any, ...]] = {}
            for value, cell in zip(self.values, self.trace.cells(draw, cuts), strict=True):
                places[value] = places.get(value, ()) + cell
            return list(places)[self.trace.restrict(draw, list(places.values()))]
        number = 0
        for draw, cuts in self.cuts.items():
            cells = self.trace.cells(draw, cuts)
            number = number * len(cells) + self.trace.restrict(draw, cells)
        return self.values[number]

    def with_cuts(self, cuts: Mapping[int, tuple[float, ...]]) -> list[Any]:
        """Its values by finer parts, of more draws."""
        lengths = [len(self.cuts[draw]) + 1 for draw in self.cuts]
        parts = []  # of each draw, the coarse parts that its fine parts are in
        for draw, fine in cuts.items():
            coarse = self.cuts.get(draw, ())
            parts.append([bisect_right(coarse, start) for start in (-math.inf, *fine)])
        order = list(cuts)
        positions = [order.index(draw) for draw in self.cuts]
        values = []
        for combination in product(*parts):
            number = 0
            for position, length in zip(positions, lengths, strict=True):
                number = number * length + combination[position]
            values.append(self.values[number])
        return values

    def map(self, function: Callable[[Any], Any]) -> Any:
        return Finite(self.trace, self.cuts, tuple(map(function, self.values))).simple()

    def combined(self, other: Any, function: Function) -> Any:
        other = simplest(other)
        if isinstance(other, Finite):
            return joined(self.trace, function, self, other)
        if is_draw(other):
            return function(self.decided(), other)
        if is_constant(other):
            return self.map(lambda value: function(value, other))
        return NotImplemented

    __and__, __rand__ = operators(operator.and_)
    __or__, __ror__ = operators(operator.or_)
    __xor__, __rxor__ = operators(operator.xor)
    __lt__, __gt__ = operators(operator.lt)
    __le__, __ge__ = operators(operator.le)

    def __bool__(self) -> bool:
        truth = self.map(bool)
        return bool(truth.decided()) if isinstance(truth, Finite) else bool(truth)

    def __invert__(self) -> Any:
        return self.map(lambda value: not value if isinstance(value, bool | np.bool_) else ~value)

    def __neg__(self) -> Any:
        return self.map(operator.neg)

    def __abs__(self) -> Any:
        return self.map(abs)

    def __converted__(self, kind: type) -> Any:
        return self.map(kind)

    def through(self, function: Callable[[Any], Any], lowest: float | None) -> Any:  # noqa: ARG002
        return self.map(function)

    def __int__(self) -> int:
        return int(self.decided())

    __index__ = __trunc__ = __int__

    def __float__(self) -> float:
        return float(self.decided())

    def __round__(self, digits: int | None = None) -> Any:
        return self.map(lambda value: round(value, digits))

    def __eq__(self, other: object) -> Any:
        return True if other is self else self.combined(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return False if other is self else self.combined(other, operator.ne)


def all_cuts(numbers: Iterable[Finite]) -> dict[int, tuple[float, ...]]:
    """By draw, the points at which any of several numbers changes."""
    cuts: dict[int, tuple[float, ...]] = {}
    for number in numbers:
        for draw, points in number.cuts.items():
            cuts[draw] = tuple(sorted({*cuts.get(draw, ()), *points}))
    return cuts


def combinations_of(cuts: Mapping[int, tuple[float, ...]]) -> int:
    """How many combinations of parts of the line draws have between their cuts."""
    return math.prod(len(points) + 1 for points in cuts.values())


def joined(trace: Trace, function: Callable[..., Any], *numbers: Finite) -> Any:
    """A function of several numbers."""
    cuts = all_cuts(numbers)
    if combinations_of(cuts) > MAX_WORK // 2:
        trace.refuse(f"a value depends on more than {(MAX_WORK // 2):,} combinations of draws")
    values = [number.with_cuts(cuts) for number in numbers]
    return Finite(trace, cuts, tuple(map(function, *values))).simple()


class TracedDraw(LazyDraw):
    """A draw of a trace, for functions of it: their comparisons are numbers with few values."""

    __slots__ = ("_number", "_trace")

    def __init__(self, trace: Trace, number: int) -> None:
        law = trace.laws[number]
        super().__init__(Evenly(0, 0) if law.lattice else ByLaw(law), trace.instrument)
        self._trace, self._number = trace, number

    def possible(self) -> tuple[int, int]:
        """If none is, the number of one far out in a tail."""
        if self.instrument.is_over():
            number = self._number_of(self._trace.plain(self._number))
            return number, number
        law = self._trace.laws[self._number]
        allowed = self._trace.allowed.get(self._number, EVERYWHERE)
        low, high = law.reach
        above, upto = allowed[0][0], min(high, allowed[-1][1])
        start = self._number_of(low)
        if above >= low:
            start = math.floor(above) + 1 if self.is_whole else number_of(above) + 1
        return start, max(self._number_of(upto), start)

    def _number_of(self, value: float) -> int:
        return math.floor(value) if self.is_whole else number_of(value)

    def _cut_before(self, number: int) -> float:
        return number - 0.5 if self.is_whole else float_of(number - 1)

    def split(self, condition: Callable[[Any], Any], at_start: bool) -> Any:
        number = self.first_other(condition, at_start, *self.possible())
        cuts = {self._number: (self._cut_before(number),)}
        return Finite(self._trace, cuts, (at_start, not at_start)).simple()

    def few_values(self, function: Callable[[Any], Any]) -> Any:
        """Beyond where its tails are negligible, the last value before."""
        number, last = self.possible()
        cuts: list[float] = []
        values, end = [function(self.domain.value(number))], function(self.domain.value(last))
        while values[-1] != end:
            if len(cuts) > MAX_WORK // 2:
                self._trace.refuse(f"a rounded draw has more than {MAX_WORK // 2:,} values")
            number = self.first_other(function, values[-1], number, last)
            cuts.append(self._cut_before(number))
            values.append(function(self.domain.value(number)))
        if not cuts:
            return end
        if math.inf in map(abs, self._trace.laws[self._number].support):
            self._trace.cut_off.add(self._number)
        return Finite(self._trace, {self._number: tuple(cuts)}, values).simple()

    def parted(self, function: Callable[[Any], Any]) -> bool:
        value = self.few_values(function)
        if isinstance(value, Finite):
            value.decided()
        return True
