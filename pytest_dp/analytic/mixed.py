"""One number that is released where draws were compared: its density, and the largest loss of it.

There is no closed form; the loss is looked for on a grid, around its best points, and far out,
where tails are exponential and it has a limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.analytic.conditioned import log_weight
from pytest_dp.analytic.experiments import Cells, Largest
from pytest_dp.randomness.stand_ins import CannotInstrument

Way = tuple[Any, Any, float]
"""An outcome, the part of it that has the number, and the logarithm of what its other parts weigh.
"""
NEAR = np.concatenate([np.linspace(-10.0, 10.0, 21), [-24.0, -18.0, -13.0, 13.0, 18.0, 24.0]])
"""Where the loss is looked for, in scales of the noise around the answers."""
GOLDEN, SECTIONS = (math.sqrt(5) - 1) / 2, 24
"""How the best point is refined."""
OUT = (60.0, 120.0, 240.0)
"""Where its limits are looked for."""
STEADY = 1e-8
"""What the loss may still change by there."""


@dataclass(frozen=True, slots=True)
class Mixed:
    """A number that is released on some ways, on D and on D'.

    Attributes
    ----------
    ours, theirs : sequence of Way
    """

    ours: Sequence[Way]
    theirs: Sequence[Way]

    def largest(self) -> Largest:
        """By search.

        Raises
        ------
        CannotInstrument
            If the loss seems to grow without bound, which a search cannot show.
        """
        centres, scale = self._centres()
        points = np.unique([c + scale * x for c in centres for x in NEAR] + centres)
        losses = np.array([self.loss(float(y)) for y in points])
        limits = [self._limit(centres, scale, side) for side in (-1.0, 1.0)]
        forward, backward = (
            self._best(points, sign * losses, sign, max(sign * limit for limit in limits))
            for sign in (1.0, -1.0)
        )
        return Largest(forward, backward, 10 * STEADY)

    def cells(self, count: int) -> Cells | None:  # noqa: ARG002
        """Its probabilities have no closed form."""
        return None

    def loss(self, y: float) -> float:
        """At a value; minus infinity to infinity, and NaN where neither has a density."""
        ours, theirs = log_density(self.ours, y), log_density(self.theirs, y)
        return math.nan if ours == theirs == -math.inf else ours - theirs

    def _centres(self) -> tuple[list[float], float]:
        leaves = [(_leaf(way), way) for way in (*self.ours, *self.theirs)]
        scales = [abs(by) for leaf, _ in leaves for by in leaf.terms.values()]
        centres = {leaf.constant for leaf, _ in leaves}
        for _, (_, part, _) in leaves:
            for condition in part.conditions:
                scales += map(abs, condition.terms.values())
        return sorted(centres), max(scales)

    def _best(self, points: Any, losses: Any, sign: float, limit: float) -> float:
        """The largest that is found, or the limit."""
        known = np.where(np.isnan(losses), -np.inf, losses)
        best = float(known.max())
        if math.isinf(best) or best <= limit + STEADY:
            return max(best, limit)
        at = int(known.argmax())
        low, high = float(points[max(at - 1, 0)]), float(points[min(at + 1, len(points) - 1)])
        for _ in range(SECTIONS):  # golden section
            left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
            losses = [sign * self.loss(y) for y in (left, right)]
            best = max([best, *(loss for loss in losses if not math.isnan(loss))])
            low, high = (low, right) if losses[0] >= losses[1] else (left, high)
        return best

    def _limit(self, centres: list[float], scale: float, side: float) -> float:
        centre = max(centres) if side > 0 else min(centres)
        found = [self.loss(centre + side * scale * out) for out in OUT]
        if any(map(math.isnan, found)):
            return 0.0
        if abs(found[-1] - found[-2]) > STEADY:
            raise CannotInstrument("the loss of a released number has no limit far out")
        return found[-1]


def log_density(ways: Sequence[Way], y: float) -> float:
    """The logarithm of the density of the number, over all ways."""
    logs = []
    for way in ways:
        outcome, part, rest = way
        leaf = _leaf(way)
        ((draw, by),) = leaf.terms.items()
        x = (y - leaf.constant) / by
        own = float(outcome.laws[draw].log_density(np.array(x)))
        if own > -math.inf and rest > -math.inf:
            logs.append(own - math.log(abs(by)) + rest + log_weight(outcome, part, {draw: x}))
    return float(np.logaddexp.reduce(logs)) if logs else -math.inf


def _leaf(way: Way) -> Any:
    outcome, part, _ = way
    leaf = next(outcome.leaves[at] for at in part.leaves)
    if len(part.leaves) > 1 or len(leaf.terms) > 1:
        raise CannotInstrument("a sum of draws is released where draws were compared")
    if any(outcome.laws[draw].lattice for draw in leaf.terms):
        raise CannotInstrument("a whole number is released where draws were compared")
    return leaf
