"""The instrument of an enumeration, and the draw that others are compared with.

Where draws are compared with each other, as in sparse vectors, the first draw with a density is the
shared one: it is given at the nodes of a quadrature, each path has a weight for each node, and its
probability is their sum. Given the shared draw, a comparison of another draw with it is one with a
number.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.oracles.branching import MAX_BRANCHES, NEGLIGIBLE_WEIGHT, Branching
from pytest_dp.oracles.deferred import COMPARED, NO_SUM
from pytest_dp.oracles.open_numbers import COMPARED_TWICE, LINEAR, OpenDraw, OpenNumber
from pytest_dp.oracles.paths import Path
from pytest_dp.running.laws import INTEGERS, Law

NODES = 16
"""Of Gauss-Legendre on each panel. With fewer, digits are lost where many draws are compared."""
WIDEST, COARSE = 2.0, 10.0
"""Of panels, in scales of the shared draw; and in the round that shows where integrands have kinks.
Wider ones lose digits, narrower ones take longer."""
MAX_MARKS = 200
"""Points at which panels end. With more, each comparison takes longer."""
QUADRATURE_ROUNDINGS = 1000
"""Rounding errors of choices that the error of the quadrature counts as."""
MAX_WHOLE = 1 << 53
"""Whole numbers of which one is drawn. More are no floats."""


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
        """Return one of `count` whole numbers, at once where these are few."""
        if count <= MAX_BRANCHES:
            return super().integer(count, low)
        if count > MAX_WHOLE:
            self.refuse(f"one of {count:.0e} whole numbers")
        draw = OpenDraw(Law(INTEGERS, count))
        return OpenNumber(self, lambda x: low + x, draw, is_whole=True)

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
