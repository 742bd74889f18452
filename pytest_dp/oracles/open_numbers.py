"""Numbers of an enumeration: linear functions of one draw, which comparisons narrow down.

A comparison with a number cuts the draw in two; each part is a path, whose probability follows from
the law.

Where draws are compared with each other, as in sparse vectors, the first draw with a density is the
shared one: it is given at the nodes of a quadrature, each path has a weight for each node, and its
probability is their sum. Given the shared draw, a comparison of another draw with it is one with a
number. So a number may depend on the shared draw as well: then its constant differs between nodes.
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
from pytest_dp.oracles.branching import (
    MAX_OUTCOMES,
    NEGLIGIBLE_WEIGHT,
    Branching,
    Path,
)
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
"""Of panels, in scales of the shared draw; and in the round that shows where integrands have kinks.
Wider ones lose digits, narrower ones take longer."""
MAX_MARKS = 200
"""Points at which panels end. With more, each comparison takes longer."""
MAX_BRANCHES = 256
"""Values of a whole draw that are enumerated one by one; more are split by comparisons alone.
Larger: paths multiply; smaller: what is computed from such draws is not known."""
MAX_WHOLE = 1 << 53
"""Whole numbers of which one is drawn. More are no floats."""
QUADRATURE_ROUNDINGS = 1000
"""Rounding errors of choices that the error of the quadrature counts as."""


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
        first, last = self.law.reach
        return np.maximum(self.low, first), np.minimum(self.high, last)


class OpenNumber(Deferred):
    """A number that depends on the shared draw, and perhaps on another one.

    ``at(x)`` is its value where the other draw is x, at each node: a linear function of x.
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
        return self.draw is not None and self.draw.law.lattice

    def _plain(self) -> float:
        """Return a number as in a real run, which is not enumerated any more."""
        at = 0.0 if self.draw is None else float(np.mean(sum(self.draw.ends()) / 2))
        return float(np.mean(self.at(at)))

    def value(self, reason: str) -> Any:
        """Refuse, and return a plain number."""
        self.instrument.note(reason)
        return self._plain()

    __hash__ = Deferred.__hash__

    def combined(self, other: Any, function: Function) -> Any:
        if is_plain_number(other):
            other = float(other)
            if not _is_linear(lambda x: function(x, other)):
                return function(self.value(NO_SUM), other)
            return OpenNumber(self.instrument, lambda x: function(self.at(x), other), self.draw)
        if type(other) is not OpenNumber:
            return NotImplemented
        if self.draw and other.draw and self.draw is not other.draw:
            self.instrument.refuse(self.instrument.not_shared)
        at: Callable[[Any], Any] = lambda x: function(self.at(x), other.at(x))  # noqa: E731
        if not _is_linear(at):
            self.instrument.refuse(NO_SUM)
        return OpenNumber(self.instrument, at, self.draw or other.draw)

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
        return not any(map(np.any, difference._parts()))  # else with probability 0

    def __trunc__(self) -> Any:
        return self._round(math.trunc, lambda k: np.where(k > 0, k, k - 1))

    def __floor__(self) -> Any:
        return self._round(math.floor, lambda k: k)

    def __ceil__(self) -> Any:
        return self._round(math.ceil, lambda k: k - 1)

    def __round__(self, digits: int | None = None) -> Any:
        scale = 10.0 ** (digits or 0)
        whole = (self * scale)._round(round, lambda k: k - 0.5)  # noqa: SLF001
        return whole if digits is None else round(whole / scale, digits)

    def round(self, decimals: int = 0, out: Any = None) -> Any:  # noqa: ARG002
        """Round as numpy does."""
        return np.float64(self.__round__(decimals))

    def _round(self, function: Callable[[Any], int], start: Callable[[Floats], Floats]) -> Any:
        """Return it rounded to k, on a path where it is between start(k) and start(k + 1)."""
        draw, instrument = self.draw, self.instrument
        if draw is None or self._is_whole() or instrument.is_over():
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
        if draw is None or not np.any(self._parts()[1]):
            constants = self.at(0.0)
            instrument.mark(constants)
            above = 1.0 * by(constants, 0)
            return bool(instrument.fork(above, 1.0 - above))
        cut, upwards = self._cuts(0.0)
        if self._is_whole():
            nearest = np.rint(cut)
            cut = nearest - (by(self.at(nearest), 0) == upwards)
        if not instrument.is_exact:
            for place in (*draw.law.edges, draw.low, draw.high):
                instrument.mark(cut - place)
        return self._split(draw, cut, upwards=upwards)

    def _split(self, draw: OpenDraw, cut: Any, *, upwards: bool) -> bool:
        """Return whether the draw is on the side of a cut where the number is above 0."""
        over, below = draw.chance(cut, math.inf), draw.chance(-math.inf, cut)
        holds: bool = self.instrument.fork(*((over, below) if upwards else (below, over)))
        draw.split(cut, above=holds == upwards)
        return holds


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


def _chance(law: Law, first: Any, last: Any, low: Any, high: Any) -> Floats:
    given = law.log_between(first, last)
    part = law.log_between(np.maximum(low, first), np.minimum(high, last))
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(given), np.exp(part - given), 0.0)


@lru_cache(MAX_CHANCES)
def _chance_of(law: Law, first: float, last: float, low: float, high: float) -> float:
    return float(_chance(law, first, last, low, high))


class Enumeration(Branching):
    """Answers draws by numbers that are open, the first with a density perhaps as the shared one.

    With a shared draw, the first round of runs shows where integrands have kinks; with these, a
    second one `is_exact`.
    """

    def __init__(self, *, shared: bool = False, found: Enumeration | None = None) -> None:
        self.marks: set[float] = set() if found is None else found.marks
        self.is_exact = not shared or found is not None
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
        self._weights: Floats = np.ones(1)

    def value_of(self, law: Law) -> Any:
        if self._shared and self._nodes is None:
            if law not in self._rules:
                self._rules[law] = _quadrature(law, self.marks, WIDEST if self.is_exact else COARSE)
            nodes, self._weights = self._rules[law]
            self._nodes = nodes
            self.inexact += QUADRATURE_ROUNDINGS
            return OpenNumber(self, lambda _: nodes, None)
        return OpenNumber(self, lambda x: x, OpenDraw(law))

    def integer(self, count: int, low: int = 0) -> Any:
        """Return one of `count` whole numbers, which is open where these are many."""
        if count <= MAX_BRANCHES:
            return super().integer(count, low)
        if count > MAX_WHOLE:
            self.refuse(f"one of {count:.0e} whole numbers")
        return OpenNumber(self, lambda x: low + x, OpenDraw(Law(INTEGERS, count)))

    def fork(self, yes: Any, no: Any) -> bool:
        """Decide something that is true, or not, with these chances, by nodes."""
        if isinstance(yes, float) and isinstance(no, float):
            return yes > 0 if not (yes and no) else self.choose([yes, no]) == 0
        return self.pick(np.stack(np.broadcast_arrays(yes, no))) == 0

    def pick(self, chances: Floats) -> int:
        """Return one of several that have these chances, by nodes.

        There is no branch where only one is possible, and one for all that are very rare.
        """
        weighted = self._weights * chances
        each = weighted.sum(axis=-1)
        total = float(each.sum())
        if not total:
            self.give_up()
        is_likely = each > NEGLIGIBLE_WEIGHT * total
        likely, rare = np.flatnonzero(is_likely), float(each[~is_likely].sum())
        weights = [*each[likely].tolist(), *([rare] if rare else [])]
        number = self.choose([weight / total for weight in weights]) if weights[1:] else 0
        if number == len(likely):
            self.give_up()
        if self._nodes is not None:
            self._weights = weighted[likely[number]]
        return int(likely[number])

    def mark(self, values: Any) -> None:
        """Note where values, which are linear in the shared draw, are 0."""
        nodes = self._nodes
        if (
            self.is_exact
            or nodes is None
            or np.shape(values) != nodes.shape
            or not np.isfinite(values).all()
        ):
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
    """Return nodes, and weights that sum to 1."""
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
