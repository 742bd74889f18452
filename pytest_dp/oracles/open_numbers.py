"""Numbers of an enumeration: linear functions of one draw, which comparisons narrow down.

A comparison with a number cuts the draw in two; each part is a path, whose probability follows from
the law. A number may depend on the draw that all share (`shared_draw`) as well: then its constant
differs between the nodes at which that is given.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.oracles.branching import (
    MAX_OUTCOMES,
    NEGLIGIBLE,
)
from pytest_dp.oracles.deferred import (
    COMBINED,
    HELD,
    NO_SUM,
    Deferred,
    Function,
    is_plain_number,
    operators,
)
from pytest_dp.running.laws import Law

LINEAR = 1e-9
"""Relative error of sums of draws."""
COMPARED_TWICE = "draws are compared with each other in more than one way"
MANY_VALUES = "a draw is rounded to one of very many values"
MAX_CHANCES = 1 << 14
"""Probabilities that are kept. With fewer, runs that compare alike compute them again."""
MAX_HALVINGS = 200
"""Of an interval in which a monotone function is solved, down to neighbouring floats. Fewer: small
probabilities lose digits."""


class OpenDraw:
    """A draw that is above `low`, and at most `high`, at each node of the shared one."""

    def __init__(self, law: Law) -> None:
        self.law = law
        self.low: Any = -math.inf
        self.high: Any = math.inf

    def chance(self, low: Any, high: Any) -> Any:
        """Return how likely it is above `low`, and at most `high`, given its bounds."""
        bounds = self.low, self.high, low, high
        is_known = all(isinstance(bound, float) for bound in bounds)
        return _chance_of(self.law, *bounds) if is_known else _chance(self.law, *bounds)

    def split(self, cut: Any, *, above: bool) -> None:
        """Note that it is above a cut, or not."""
        within = np.minimum(np.maximum(cut, self.low), self.high)
        if above:
            self.low = within
        else:
            self.high = within

    def ends(self) -> tuple[Any, Any]:
        """Return the ends of all but a negligible part of it."""
        first, last = _bulk_of(self.law)
        return np.maximum(self.low, first), np.minimum(self.high, last)

    def values(self) -> tuple[int, int]:
        """Return the smallest and the largest value of a draw of whole numbers."""
        low, high = max(self.low, -1.0), min(self.high, self.law.parameter - 1)
        return int(low) + 1, int(high)


class OpenNumber(Deferred):
    """A number that depends on the shared draw, and perhaps on another one.

    ``at(x)`` is its value where the other draw is x, at each node: a linear function of x.
    `is_whole` says whether it is an int.
    """

    __slots__ = ("at", "draw", "is_whole")
    instrument: Any

    def __init__(
        self,
        instrument: Any,
        at: Callable[[Any], Any],
        draw: OpenDraw | None,
        *,
        is_whole: bool = False,
    ) -> None:
        super().__init__(instrument)
        self.at, self.draw, self.is_whole = at, draw, is_whole

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int if self.is_whole else float

    def _is_lattice(self) -> bool:
        return self.draw is not None and self.draw.law.lattice

    def _plain(self) -> Any:
        """Return a number as in a real run, which is not enumerated any more."""
        at = 0.0
        if self.draw is not None:
            at = (
                self.draw.values()[0]
                if self._is_lattice()
                else float(np.mean(sum(self.draw.ends()) / 2))
            )
        return int(self.at(at)) if self.is_whole else float(np.mean(self.at(at)))

    def value(self, reason: str) -> Any:
        """Return its value on one of several paths, where it has few; else refuse."""
        draw = self.draw
        if draw is not None and draw.law.lattice:
            first, last = draw.values()
            if last - first < MAX_OUTCOMES:
                return self._step(lambda value: value)
        self.instrument.note(reason)
        return self._plain()

    __hash__ = Deferred.__hash__

    def combined(self, other: Any, function: Function) -> Any:
        if is_plain_number(other):
            is_whole = self.is_whole and isinstance(function(1, other), int | np.integer)
            other = other if is_whole else float(other)
            if not _is_linear(lambda x: function(x, other)):
                return function(self.value(NO_SUM), other)
            return OpenNumber(
                self.instrument, lambda x: function(self.at(x), other), self.draw, is_whole=is_whole
            )
        if type(other) is not OpenNumber:
            return NotImplemented
        if self.draw and other.draw and self.draw is not other.draw:
            if other._is_lattice():  # noqa: SLF001
                return function(self, other.value(COMBINED))
            if self._is_lattice():
                return function(self.value(COMBINED), other)
            self.instrument.refuse(self.instrument.not_shared)
        at: Callable[[Any], Any] = lambda x: function(self.at(x), other.at(x))  # noqa: E731
        if not _is_linear(at):
            self.instrument.refuse(NO_SUM)
        return OpenNumber(self.instrument, at, self.draw or other.draw)

    def by_value(self, other: Any, function: Function) -> Any:
        """Return a function of its value, where it has few."""
        return function(self.value(f"{function.__name__.strip('_')} of a draw"), other)

    def __floordiv__(self, other: Any) -> Any:
        if self._is_lattice():
            return self._step(lambda value: value // other)
        return float(math.floor(self / other))

    def __rshift__(self, other: Any) -> Any:
        return self // (1 << other)

    def __mod__(self, other: Any) -> Any:
        return self - other * (self // other)

    _, __rfloordiv__ = operators(operator.floordiv, "by_value")
    _, __rmod__ = operators(operator.mod, "by_value")

    def __neg__(self) -> Any:
        return 0 - self

    def __eq__(self, other: object) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        if not is_plain_number(other) and type(other) is not OpenNumber:
            return False
        difference = self - other
        if type(difference) is not OpenNumber:
            return difference == 0
        if difference._is_lattice():
            return bool(difference >= 0 and difference <= 0)
        return not any(map(np.any, difference._parts()))  # else with probability 0

    def __converted__(self, kind: type) -> Any:
        return self if kind is float and not self.is_whole else kind(self)

    def __trunc__(self) -> Any:
        return self._round(math.trunc, lambda k: np.where(k > 0, k, k - 1))

    def __floor__(self) -> Any:
        return self._round(math.floor, lambda k: k)

    def __ceil__(self) -> Any:
        return self._round(math.ceil, lambda k: k - 1)

    def __round__(self, digits: int | None = None) -> Any:
        if self._is_lattice():
            return self if self.is_whole else round(self.value(HELD), digits)
        scale = 10.0 ** (digits or 0)
        whole = (self * scale)._round(round, lambda k: k - 0.5)  # noqa: SLF001
        return whole if digits is None else round(whole / scale, digits)

    def round(self, decimals: int = 0, out: Any = None) -> Any:  # noqa: ARG002
        """Round as numpy does."""
        return np.float64(self.__round__(decimals))

    def _round(self, function: Callable[[Any], int], start: Callable[[Floats], Floats]) -> Any:
        """Return it rounded to k, on a path where it is between start(k) and start(k + 1)."""
        if self.is_whole:
            return self
        if self._is_lattice():
            return self._step(function)
        draw, instrument = self.draw, self.instrument
        if draw is None or instrument.is_over():
            instrument.note(NO_SUM)
            return function(self._plain())
        with np.errstate(all="ignore"):
            ends = [np.asarray(self.at(end), float) for end in draw.ends()]
        low, high = float(np.min(ends)), float(np.max(ends))
        if np.size(ends[0]) > 1 or not high - low < MAX_OUTCOMES:
            instrument.note(MANY_VALUES)
            return function(self._plain())
        whole = np.arange(math.floor(low) - 1, math.floor(high) + 3, dtype=float)
        cuts, upwards = self._cuts(start(whole))
        below, above = (cuts[:-1], cuts[1:]) if upwards else (cuts[1:], cuts[:-1])
        chances = draw.chance(below[:, None], above[:, None])
        outside = draw.chance(-math.inf, float(cuts.min()))
        outside = outside + draw.chance(float(cuts.max()), math.inf)
        picked = instrument.pick(np.vstack([chances, np.atleast_2d(outside)]))
        if picked == len(chances):
            instrument.give_up()
        draw.low = np.maximum(draw.low, below[picked])
        draw.high = np.minimum(draw.high, above[picked])
        return int(whole[picked])

    def _parts(self) -> tuple[Any, Any]:
        """Return the constant of a linear number, and its factor of the draw, at each node."""
        constants = self.at(0.0)
        return constants, self.at(1.0) - constants

    def _cuts(self, levels: Any) -> tuple[Any, bool]:
        """Return which draws give these values, and whether larger ones give larger values."""
        constants, by = self._parts()
        upwards = bool(np.all(by > 0))
        if not upwards and not np.all(by < 0):
            self.instrument.refuse(COMPARED_TWICE)
        return (levels - constants) / by, upwards

    def is_above(self, *, equal: bool) -> bool:
        instrument, draw = self.instrument, self.draw
        by = operator.ge if equal else operator.gt
        if instrument.is_over():
            return bool(by(self._plain(), 0))
        if draw is not None and draw.law.lattice:
            return self._holds(draw, lambda value: bool(by(value, 0)))
        if draw is None or not np.any(self._parts()[1]):
            constants = self.at(0.0)
            instrument.mark(constants)
            above = 1.0 * by(constants, 0)
            return bool(instrument.fork(above, 1.0 - above))
        cut, upwards = self._cuts(0.0)
        if not instrument.is_exact:
            for place in (*draw.law.edges, draw.low, draw.high):
                instrument.mark(cut - place)
        return self._split(draw, cut, upwards=upwards)

    def _step(self, function: Callable[[Any], Any]) -> Any:
        """Return a monotone function of a whole draw, on one of a path for each of its values."""
        draw = self.draw
        assert draw is not None
        while not self.instrument.is_over():
            values = draw.values()
            first, middle, last = (
                function(self.at(k)) for k in (values[0], sum(values) // 2, values[1])
            )
            if first == last:
                return first
            by = operator.lt if middle == max(first, last) else operator.le
            self._holds(draw, partial(_compares, function, by, middle))
        return function(self._plain())

    def _holds(self, draw: OpenDraw, condition: Callable[[Any], bool]) -> bool:
        """Return whether a number of a whole draw meets a condition, which changes once."""
        low, high = draw.values()
        at_low, at_high = condition(self.at(low)), condition(self.at(high))
        if at_low == at_high:
            return at_low
        while high - low > 1:
            middle = (low + high) // 2
            is_low = condition(self.at(middle)) == at_low
            low, high = (middle, high) if is_low else (low, middle)
        return self._split(draw, float(low), upwards=at_high)

    def _split(self, draw: OpenDraw, cut: Any, *, upwards: bool) -> bool:
        """Return whether the draw is on the side of a cut where the number is above 0."""
        over, below = draw.chance(cut, math.inf), draw.chance(-math.inf, cut)
        holds: bool = self.instrument.fork(*((over, below) if upwards else (below, over)))
        draw.split(cut, above=holds == upwards)
        return holds


def _compares(function: Callable[[Any], Any], by: Function, other: Any, value: Any) -> bool:
    return bool(by(function(value), other))


def _is_linear(function: Callable[[float], Any]) -> bool:
    """Return whether a function is linear that is so where it is at three points, such as x + c."""
    try:
        with np.errstate(all="ignore"):
            at_0, at_1, at_3 = (function(x) for x in (0.0, 1.0, 3.0))
            by = at_1 - at_0
            off = abs(at_3 - at_0 - 3 * by)
    except ArithmeticError:  # as of 1 / 0
        return False
    return bool(np.all(off <= LINEAR * (abs(at_0) + abs(by))))


def solve_rising(function: Callable[[Any], Any], levels: Any, low: float, high: float) -> Any:
    """Return where an increasing function gets to levels, between two ends."""
    lows, highs = np.full(np.shape(levels), low), np.full(np.shape(levels), high)
    for _ in range(MAX_HALVINGS):
        middle = lows + (highs - lows) / 2
        if ((middle <= lows) | (middle >= highs)).all():
            break
        reached = np.asarray(function(middle), float) >= levels
        lows, highs = np.where(reached, lows, middle), np.where(reached, middle, highs)
    return highs[()]


def _chance(law: Law, first: Any, last: Any, low: Any, high: Any) -> Floats:
    given = law.log_between(first, last)
    part = law.log_between(np.maximum(low, first), np.minimum(high, last))
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(given), np.exp(part - given), 0.0)


@lru_cache(MAX_CHANCES)
def _chance_of(law: Law, first: float, last: float, low: float, high: float) -> float:
    return float(_chance(law, first, last, low, high))


@cache
def _bulk_of(law: Law) -> tuple[Floats, Floats]:
    """Return the ends of all but a negligible part of a law."""
    least, (first, last) = math.log(NEGLIGIBLE), law.reach
    low = solve_rising(law.log_below, least, first, last)
    return low, solve_rising(lambda x: -law.log_above(x), -least, first, last)
