"""Enumeration where draws are compared with one that they share, as in sparse vectors.

The first draw with a density is the shared one. It is given at the nodes of a quadrature: each path
has a weight for each node, and the probability of the path is their sum. Given the shared draw, a
comparison of another draw with it is one with a number, whose probability follows from the law.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.oracles.branching import Branching
from pytest_dp.oracles.deferred import Deferred, Function, is_constant
from pytest_dp.oracles.paths import Path
from pytest_dp.running.laws import Law

NODES = 16
"""Of Gauss-Legendre on each panel. With fewer, digits are lost where many draws are compared."""
WIDEST, COARSE = 2.0, 10.0
"""Of panels, in scales of the shared draw; and in the round that shows where integrands have kinks.
Wider ones lose digits, narrower ones take longer."""
MAX_MARKS = 200
"""Points at which panels end. With more, each comparison takes longer."""
LINEAR = 1e-9
"""Relative error of sums of draws."""
QUADRATURE_ROUNDINGS = 1000
"""Rounding errors of choices that the error of the quadrature counts as."""
COMPARED = "draws are compared with each other in more than one way"
NO_SUM = "a compared function of a draw is not a sum of draws"


class Other:
    """A draw that is compared with the shared one; bounds on it, by the nodes of this."""

    def __init__(self, law: Law) -> None:
        self.law = law
        self.low: Floats = np.full(1, -np.inf)
        self.high: Floats = np.full(1, np.inf)


class SharedSum(Deferred):
    """A number that depends on the shared draw, and perhaps on a multiple of another one.

    `constants` has its value but for the other draw, at each node.
    """

    __slots__ = ("by", "constants", "draw")
    instrument: SharedDraw

    def __init__(
        self, instrument: SharedDraw, constants: Floats, draw: Other | None, by: Floats
    ) -> None:
        super().__init__(instrument)
        self.constants, self.draw, self.by = constants, draw, by

    def _where(self, value: float) -> Floats:
        return self.constants + value * self.by

    def combined(self, other: Any, function: Function) -> Any:
        if isinstance(other, SharedSum):
            if self.draw and other.draw and self.draw is not other.draw:
                self.value(COMPARED)
            draw = self.draw or other.draw
            at: Callable[[int], Any] = lambda x: function(self._where(x), other._where(x))  # noqa: E731, SLF001
        elif is_constant(other):
            draw = self.draw
            at = lambda x: function(self._where(x), float(other))  # noqa: E731
        else:
            return self.value(COMPARED)
        constants = np.asarray(at(0), float)
        if draw is None:
            return SharedSum(self.instrument, constants, None, np.zeros(1))
        by = np.asarray(at(1), float) - constants
        error = np.abs(at(2) - constants - 2 * by)
        if not (error <= LINEAR * (np.abs(constants) + np.abs(by))).all():
            self.value(NO_SUM)
        return SharedSum(self.instrument, constants, draw, by)

    def __neg__(self) -> Any:
        return 0.0 - self

    def __eq__(self, other: object) -> Any:
        if other is self:
            return True
        return self >= other and self <= other

    def is_above(self, *, equal: bool) -> bool:
        instrument = self.instrument
        if self.draw is None or not np.any(self.by):
            if not instrument.is_exact:
                instrument.mark(self.constants)
            above = self.constants >= 0 if equal else self.constants > 0
            return instrument.fork(np.asarray(above, float))
        draw, law = self.draw, self.draw.law
        cut = -self.constants / self.by
        upwards = bool(np.all(self.by > 0))
        if not upwards and not np.all(self.by < 0):
            self.value(COMPARED)
        if not instrument.is_exact:
            places: list[Any] = [*law.edges, draw.low, draw.high]
            for place in places:
                instrument.mark(cut - place)
        cut = np.clip(cut, draw.low, draw.high)
        part = (cut, draw.high) if upwards else (draw.low, cut)
        given = law.log_between(draw.low, draw.high)
        chances = np.where(np.isfinite(given), np.exp(law.log_between(*part) - given), 0.0)
        holds = instrument.fork(chances)
        if holds == upwards:
            draw.low = cut
        else:
            draw.high = cut
        return holds


class SharedDraw(Branching):
    """Answers the first draw with a density by the nodes of a quadrature, others by `SharedSum`.

    The first round of runs shows where integrands have kinks; with these, a second one `is_exact`.
    """

    def __init__(self, found: SharedDraw | None = None) -> None:
        self.marks: set[float] = set() if found is None else found.marks
        self.is_exact = found is not None
        self._rules: dict[Law, tuple[Floats, Floats]] = {}
        super().__init__()

    def start(self, path: Path) -> None:
        super().start(path)
        self._nodes: Floats | None = None
        self._weights: Floats = np.ones(1)

    def value_of(self, law: Law) -> Any:
        if self._nodes is None:
            if law not in self._rules:
                self._rules[law] = _quadrature(law, self.marks, WIDEST if self.is_exact else COARSE)
            self._nodes, self._weights = self._rules[law]
            self.inexact += QUADRATURE_ROUNDINGS
            return SharedSum(self, self._nodes, None, np.zeros(1))
        return SharedSum(self, np.zeros(1), Other(law), np.ones(1))

    def fork(self, chances: Floats) -> bool:
        """Decide something that is true with these chances, by nodes."""
        weighted = self._weights * chances
        total = float(self._weights.sum())
        share = float(weighted.sum()) / total if total else 0.5
        holds = self.choose([share, 1 - share]) == 0
        self._weights = weighted if holds else self._weights * (1 - chances)
        return holds

    def mark(self, values: Floats) -> None:
        """Note where values, which are linear in the shared draw, are 0."""
        nodes = self._nodes
        if nodes is None or values.shape != nodes.shape or not np.isfinite(values).all():
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
            self.refuse(COMPARED)


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
