"""Open numbers: linear functions of a draw, of which each comparison of a run decides one more bit.

A comparison with a number cuts the draw in two. Each part is a path of its own, whose probability
follows from the law of the draw.

Where draws are compared with each other, as in sparse vectors, the first draw with a density is
*shared*: it takes the values of the nodes of a quadrature, each path has a weight for each node,
and its probability is their sum. Given the shared draw, a comparison of another draw with it is one
with a number. So an open number may depend on the shared draw as well: its constant is an array
then, with a value for each node.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.oracles.branching import MAX_OUTCOMES, Branching, Path
from pytest_dp.oracles.deferred import COMPARED, NO_SUM, Deferred, Function, is_plain_number
from pytest_dp.running.laws import INTEGERS, Law

LINEAR = 1e-9
"""Relative error of sums of draws."""
COMPARED_TWICE = "draws are compared with each other in more than one way"
MANY_VALUES = "a draw is rounded to one of very many values"
MAX_CHANCES = 1 << 14
"""Probabilities that are kept. With fewer, runs that compare alike compute them again."""
NODES = 16
"""Of Gauss-Legendre on each panel. With fewer, digits are lost where many draws are compared."""
WIDEST, COARSE = 2.0, 10.0
"""Width of panels in scales of the shared draw, in the last and the first round. Wider ones lose
digits."""
MAX_MARKS = 200
"""Points at which panels end. With more, each comparison takes longer."""
MAX_BRANCHES = 256
"""Values of a whole draw that are each a path; more are split by comparisons. Larger: more
paths."""
MAX_WHOLE = 1 << 53
"""Whole numbers of which one is drawn. More are no floats."""
QUADRATURE_ROUNDINGS = 1000
"""Rounding errors of choices that the error of the quadrature counts as."""


class OpenDraw:
    """A draw of which a run knows that it is above `low`, and at most `high`.

    Both are numbers, or arrays with a value for each node of the shared draw.
    """

    def __init__(self, law: Law) -> None:
        self.law = law
        self.low: Any = -math.inf
        self.high: Any = math.inf

    def probabilities_at(self, cut: Any) -> tuple[Any, Any]:
        """Return how likely the draw is above a number, and at most the number, given its bounds.

        Numbers, or arrays with a value for each node; 0 at nodes where no draw meets the bounds.
        """
        try:
            return _cached_probabilities(self.law, self.low, self.high, cut)
        except TypeError:  # arrays are no keys of a cache
            return _probabilities(self.law, self.low, self.high, cut)

    def narrow(self, cut: Any, *, above: bool) -> None:
        """Make a number the lower bound of the draw if it is above the number, else the upper."""
        within = np.minimum(np.maximum(cut, self.low), self.high)
        if above:
            self.low = within
        else:
            self.high = within

    def likely_range(self) -> tuple[Any, Any]:
        """Return bounds between which the draw lies, except with a negligible probability."""
        first, last = self.law.reach
        return np.maximum(self.low, first), np.minimum(self.high, last)


def _probabilities(law: Law, low: Any, high: Any, cut: Any) -> tuple[Floats, Floats]:
    """Return the probabilities above `cut`, and at most `cut`, of a draw between two bounds."""
    within = np.clip(cut, low, high)
    given, above, below = (
        law.log_between(*ends) for ends in ((low, high), (within, high), (low, within))
    )
    with np.errstate(invalid="ignore"):
        possible = np.isfinite(given)
        return (
            np.where(possible, np.exp(above - given), 0.0),
            np.where(possible, np.exp(below - given), 0.0),
        )


@lru_cache(MAX_CHANCES)
def _cached_probabilities(law: Law, low: float, high: float, cut: float) -> tuple[float, float]:
    """Return `_probabilities` of plain numbers, which are kept."""
    above, below = _probabilities(law, low, high, cut)
    return float(above), float(below)


class OpenNumber(Deferred):
    """A linear function of a draw, and of the shared draw, whose value no comparison has fixed.

    ``at(x)`` is its value if the draw is x: a number, or an array with a value for each node.
    `draw` is None for a function of the shared draw alone.
    """

    __slots__ = ("at", "draw")
    instrument: Enumeration

    def __init__(
        self, instrument: Enumeration, at: Callable[[Any], Any], draw: OpenDraw | None
    ) -> None:
        super().__init__(instrument)
        self.at, self.draw = at, draw

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int if self._is_whole() else float

    def _is_whole(self) -> bool:
        """Return whether it is a function of a draw of whole numbers."""
        return self.draw is not None and self.draw.law.lattice

    __hash__ = Deferred.__hash__

    def _plain(self) -> float:
        """Return a plain number, with which a refused run goes on."""
        at = 0.0 if self.draw is None else float(np.mean(sum(self.draw.likely_range()) / 2))
        return float(np.mean(self.at(at)))

    def value(self, reason: str) -> float:
        """Refuse the run for a reason, and return a plain number: nothing is raised in it."""
        self.instrument.note(reason)
        return self._plain()

    def combine(self, other: Any, function: Function) -> Any:
        """Return a function of this number and another; NotImplemented for other objects.

        A function that is not linear refuses the run, and is computed of a plain number. Raises
        CannotInstrument for two draws neither of which is shared.
        """
        if not is_plain_number(other) and type(other) is not OpenNumber:
            return NotImplemented
        if is_plain_number(other):
            number, other_draw = float(other), None
            at: Callable[[Any], Any] = lambda x: function(self.at(x), number)  # noqa: E731
        else:
            other_draw = other.draw
            at = lambda x: function(self.at(x), other.at(x))  # noqa: E731
        if self.draw and other_draw and self.draw is not other_draw:
            self.instrument.refuse(self.instrument.not_shared)
        if not _is_linear(at):
            return function(self.value(NO_SUM), other)
        return OpenNumber(self.instrument, at, self.draw or other_draw)

    def __floordiv__(self, other: Any) -> Any:
        return float(math.floor(self / other))

    def __mod__(self, other: Any) -> Any:
        return self - other * (self // other)

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
        if difference._is_whole():
            return bool(difference >= 0 and difference <= 0)
        return not any(map(np.any, difference._constant_and_factor()))  # else with probability 0

    def __floor__(self) -> Any:
        """Return the largest whole number at most it, by comparisons that halve its range.

        Refuses whole draws, and more than `MAX_OUTCOMES` values.
        """
        if self.draw is None or self._is_whole() or self.instrument.is_over():
            return math.floor(self.value(NO_SUM))
        with np.errstate(all="ignore"):
            ends = [np.asarray(self.at(end), float) for end in self.draw.likely_range()]
        low, high = math.floor(np.min(ends)), math.floor(np.max(ends)) + 1
        if high - low > MAX_OUTCOMES:
            return math.floor(self.value(MANY_VALUES))
        if self < low or self >= high:  # with a negligible probability
            self.instrument.give_up()
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self >= middle else (low, middle)
        return low

    def __ceil__(self) -> Any:
        return -math.floor(-self)

    def __trunc__(self) -> Any:
        return math.floor(self) if self > 0 else math.ceil(self)

    def __round__(self, digits: int | None = None) -> Any:
        scale = 10.0 ** (digits or 0)
        whole = math.floor(self * scale + 0.5)  # ties have probability 0
        return whole if digits is None else round(whole / scale, digits)

    def round(self, decimals: int = 0, out: Any = None) -> Any:  # noqa: ARG002
        """Return it rounded, as a float of numpy."""
        return np.float64(self.__round__(decimals))

    def _constant_and_factor(self) -> tuple[Any, Any]:
        """Return the constant of a linear number, and its factor of the draw."""
        constants = self.at(0.0)
        return constants, self.at(1.0) - constants

    def is_above(self, *, equal: bool) -> bool:
        """Return whether it is above 0 (`equal`: at least 0) on this path, and narrow its draw.

        In a refused run, compares a plain number.
        """
        instrument, draw = self.instrument, self.draw
        by = operator.ge if equal else operator.gt
        if instrument.is_over():
            return bool(by(self._plain(), 0))
        constants, factors = self._constant_and_factor()
        if draw is None or not np.any(factors):
            instrument.mark_kinks(constants)
            is_true = 1.0 * by(constants, 0)
            return instrument.decide(is_true, 1.0 - is_true)
        upwards = bool(np.all(factors > 0))
        if not upwards and not np.all(factors < 0):
            instrument.refuse(COMPARED_TWICE)
        cut = -constants / factors
        if self._is_whole():
            nearest = np.rint(cut)
            cut = nearest - (by(self.at(nearest), 0) == upwards)
        for place in (*draw.law.edges, draw.low, draw.high):
            instrument.mark_kinks(cut - place)
        above, below = draw.probabilities_at(cut)
        holds = instrument.decide(*((above, below) if upwards else (below, above)))
        draw.narrow(cut, above=holds == upwards)
        return holds


def _is_linear(function: Callable[[float], Any]) -> bool:
    """Return whether a function is linear, by its values at three points; False if one has none."""
    try:
        with np.errstate(all="ignore"):
            at_0, at_1, at_3 = (function(x) for x in (0.0, 1.0, 3.0))
            by = at_1 - at_0
            off = abs(at_3 - at_0 - 3 * by)
    except ArithmeticError:  # as of 1 / 0
        return False
    return bool(np.all(off <= LINEAR * (abs(at_0) + abs(by))))


class Enumeration(Branching):
    """An instrument that answers draws by open numbers; if `shared`, the first is the shared draw.

    The first round of runs with a shared draw shows where integrands have kinks, the `marks`. They
    are `found` for the second round, whose probabilities are exact.
    """

    def __init__(self, *, shared: bool = False, found: Enumeration | None = None) -> None:
        self.marks: set[float] = set() if found is None else found.marks
        self._marks_kinks = shared and found is None
        self._shared = shared
        self._rules: dict[Law, tuple[Floats, Floats]] = {}
        super().__init__()

    @property
    def not_shared(self) -> str:
        """The reason to refuse two draws that are compared."""
        return COMPARED_TWICE if self._shared else COMPARED

    def start(self, path: Path) -> None:
        super().start(path)
        self._nodes: Floats | None = None
        self._weights: Any = 1.0  # of the path, with a value for each node if a draw is shared

    def value_of(self, law: Law) -> Any:
        """Return an open number for a draw; the first is the shared draw if there is one."""
        if self._shared and self._nodes is None:
            if law not in self._rules:
                widest = COARSE if self._marks_kinks else WIDEST
                self._rules[law] = _quadrature(law, self.marks, widest)
            nodes, self._weights = self._rules[law]
            self._nodes = nodes
            self.inexact += QUADRATURE_ROUNDINGS
            return OpenNumber(self, lambda _: nodes, None)
        return OpenNumber(self, lambda x: x, OpenDraw(law))

    def integer(self, count: int, low: int = 0) -> Any:
        """Return one of `count` whole numbers from `low` on; an open number if these are many.

        Raises CannotInstrument for more than `MAX_WHOLE`.
        """
        if count <= MAX_BRANCHES:
            return super().integer(count, low)
        if count > MAX_WHOLE:
            self.refuse(f"one of {count:.0e} whole numbers")
        return OpenNumber(self, lambda x: low + x, OpenDraw(Law(INTEGERS, count)))

    def decide(self, yes: Any, no: Any) -> bool:
        """Choose a branch of the run: return whether a comparison with these probabilities is true.

        `yes` and `no` are numbers, or arrays with a value for each node. If only one result is
        possible, there is no branch. Raises CannotInstrument if the path is too rare.
        """
        weights = self._weights * yes, self._weights * no
        shares = [float(np.sum(each)) for each in weights]
        if self._nodes is not None and any(shares):
            shares = [share / sum(shares) for share in shares]
        if not any(shares):
            self.give_up()
        holds = self.choose(shares) == 0 if all(shares) else shares[0] > 0
        if self._nodes is not None:
            self._weights = weights[0] if holds else weights[1]
        return holds

    def mark_kinks(self, values: Any) -> None:
        """Add to `marks` where values, which are linear in the shared draw, are 0.

        Only in the first round of runs. Raises CannotInstrument if they are not linear, or there
        are too many marks.
        """
        nodes = self._nodes
        if not self._marks_kinks or nodes is None or np.shape(values) != nodes.shape:
            return
        if not np.isfinite(values).all():
            return
        slope = (values[-1] - values[0]) / (nodes[-1] - nodes[0])
        line = values[0] + slope * (nodes - nodes[0])
        if not (np.abs(values - line) <= LINEAR * np.abs(values).max()).all():
            self.refuse(NO_SUM)
        if slope:
            zero = nodes[0] - values[0] / slope
            if nodes[0] < zero < nodes[-1]:
                self.marks.add(round(zero, 9))
        if len(self.marks) > MAX_MARKS:
            self.refuse(COMPARED_TWICE)


def _quadrature(law: Law, marks: set[float], widest: float) -> tuple[Floats, Floats]:
    """Return the nodes of a quadrature over a law, and their weights, which sum to 1.

    `marks` are ends of its panels, and `widest` the greatest width of a panel.
    """
    low, high = law.reach
    edges = sorted({low, high, *(mark for mark in (*law.edges, *marks) if low < mark < high)})
    panels = [
        np.linspace(left, right, max(1, math.ceil((right - left) / widest)) + 1)[:-1]
        for left, right in itertools.pairwise(edges)
    ]
    ends = np.concatenate([*panels, [high]])
    at, by = np.polynomial.legendre.leggauss(NODES)
    half = np.diff(ends)[:, None] / 2
    nodes = (ends[:-1, None] + half + half * at).ravel()
    weights = np.exp(law.log_density(nodes)) * (half * by).ravel()
    return nodes, weights / weights.sum()
