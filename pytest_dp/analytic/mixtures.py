"""A number that is released after draws were compared: its density, and its largest loss.

Its law is a mixture over the outcomes of the comparisons. But for a draw that is only cut off,
there is no closed form; the largest loss is searched for on a grid, around its best point, and far
out, where tails are exponential and the loss has a limit. That proves no bound on it from above.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_dp.analytic.affine import Affine
from pytest_dp.analytic.conditioned import log_weight
from pytest_dp.analytic.experiments import Cells, Largest, Moved
from pytest_dp.analytic.outcomes import Outcome
from pytest_dp.analytic.parts import Part
from pytest_dp.analytic.trace import EVERYWHERE
from pytest_dp.arrays import Floats
from pytest_dp.limits import DOZENS, EQUAL, GRID, ROUNDED
from pytest_dp.randomness.stand_ins import CannotInstrument

GOLDEN = (math.sqrt(5) - 1) / 2
"""Golden sections make the interval around the best point narrower, at two integrals each."""


@dataclass(frozen=True, slots=True)
class Component:
    """One outcome of the comparisons."""

    outcome: Outcome
    part: Part
    """That has the number."""
    log_rest: float
    """The logarithm of the probability of the conditions of other parts."""

    @property
    def leaf(self) -> Affine:
        """The number; raises CannotInstrument if it is not one draw with a density."""
        leaf: Affine = next(self.outcome.leaves[at] for at in self.part.leaves)
        if len(self.part.leaves) > 1 or len(leaf.terms) > 1:
            raise CannotInstrument("a sum of draws is released where draws were compared")
        if any(self.outcome.laws[draw].lattice for draw in leaf.terms):
            raise CannotInstrument("a whole number is released where draws were compared")
        return leaf

    def region(self) -> tuple[float, float] | None:
        """Where the number is in this outcome, if that depends on its own draw alone."""
        ((draw, by),) = self.leaf.terms.items()
        allowed = self.outcome.allowed.get(draw, EVERYWHERE)
        if len(allowed) != 1 or any(set(c.terms) != {draw} for c in self.part.conditions):
            return None
        low, high = allowed[0]
        for condition in self.part.conditions:
            end = -condition.constant / condition.terms[draw]
            above = condition.terms[draw] > 0
            low, high = (max(low, end), high) if above else (low, min(high, end))
        ends = sorted(self.leaf.constant + by * x for x in (low, high))
        return ends[0], ends[1]

    def log_density(self, y: float) -> float:
        """The logarithm of the density of the number in this outcome."""
        leaf = self.leaf
        ((draw, by),) = leaf.terms.items()
        x = (y - leaf.constant) / by
        log_noise = float(self.outcome.laws[draw].log_density(np.array(x)))
        if log_noise == -math.inf or self.log_rest == -math.inf:
            return -math.inf
        log_conditions = log_weight(self.outcome, self.part, {draw: x})
        return log_noise - math.log(abs(by)) + self.log_rest + log_conditions


@dataclass(frozen=True, slots=True)
class Mixture:
    """The laws of a number on D and on D', each a mixture over outcomes of comparisons."""

    ours: Sequence[Component]
    theirs: Sequence[Component]

    def largest(self) -> Largest:
        """In closed form if it is one draw that is cut off, and else by search.

        Raises CannotInstrument if the loss seems to grow without bound, which a search cannot show.
        """
        if (known := self._cut_off()) is not None:
            return known
        centres, scale = self._centres()
        points = np.unique([c + scale * x for c in centres for x in GRID] + centres)
        losses = np.array([self.loss(float(y)) for y in points])
        limits = [self._limit(centres, scale, side) for side in (-1.0, 1.0)]
        forward, backward = (
            self._best(points, sign * losses, sign, max(sign * limit for limit in limits))
            for sign in (1.0, -1.0)
        )
        # An infinite loss at a point is sure; that no point has a larger one, no search shows.
        return Largest(forward, backward, 0.0 if math.inf in (forward, backward) else math.inf)

    def _cut_off(self) -> Largest | None:
        """Of one draw that is cut off alike on both inputs, such as a clamped number.

        Its density is log-concave, so the loss is monotone, and largest at the ends.
        """
        if len(self.ours) > 1 or len(self.theirs) > 1:
            return None
        (one,), (other,) = self.ours, self.theirs
        here, there = one.region(), other.region()
        if here is None or there is None or not np.allclose(here, there, 1e-12, 1e-12):
            return None
        (draw, by), (draw2, by2) = (next(iter(c.leaf.terms.items())) for c in (one, other))
        law = one.outcome.laws[draw]
        if by != by2 or law != other.outcome.laws[draw2] or not law.family.exponential_tails:
            return None
        moved = Moved(law, (other.leaf.constant - one.leaf.constant) / by)
        at = (np.array(here) - one.leaf.constant) / by
        with np.errstate(invalid="ignore"):
            losses = np.where(np.isinf(at), -np.sign(at) * moved.shift, moved.loss(at))
        losses += one.log_rest - other.log_rest
        return Largest(float(losses.max()), float(-losses.min()), 4 * ROUNDED * abs(moved.shift))

    def cells(self, count: int) -> Cells | None:  # noqa: ARG002
        """Its probabilities have no closed form."""
        return None

    def loss(self, y: float) -> float:
        """The loss of a value; NaN where neither law has a density."""
        ours, theirs = log_density(self.ours, y), log_density(self.theirs, y)
        return math.nan if ours == theirs == -math.inf else ours - theirs

    def _centres(self) -> tuple[list[float], float]:
        """The answers without noise, and the largest scale of noise."""
        centres, scales = set(), []
        for component in (*self.ours, *self.theirs):
            centres.add(component.leaf.constant)
            terms = [component.leaf.terms, *(c.terms for c in component.part.conditions)]
            scales += [abs(by) for factors in terms for by in factors.values()]
        return sorted(centres), max(scales)

    def _best(self, points: Floats, losses: Floats, sign: float, limit: float) -> float:
        """The largest value, by golden sections around the best point; or the limit."""
        known = np.where(np.isnan(losses), -np.inf, losses)
        best = float(known.max())
        if math.isinf(best) or best <= limit + 10 * EQUAL:
            return max(best, limit)
        at = int(known.argmax())
        low, high = float(points[max(at - 1, 0)]), float(points[min(at + 1, len(points) - 1)])
        for _ in range(DOZENS):
            left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
            pair = [sign * self.loss(y) for y in (left, right)]
            best = max([best, *(loss for loss in pair if not math.isnan(loss))])
            low, high = (low, right) if pair[0] >= pair[1] else (left, high)
        return best

    def _limit(self, centres: list[float], scale: float, side: float) -> float:
        """The loss far out on one side."""
        centre = max(centres) if side > 0 else min(centres)
        losses = [self.loss(centre + side * scale * out) for out in (60.0, 120.0, 240.0)]
        if any(map(math.isnan, losses)):
            return 0.0
        if abs(losses[-1] - losses[-2]) > 10 * EQUAL:
            raise CannotInstrument("the loss of a released number has no limit far out")
        return losses[-1]


def log_density(components: Sequence[Component], y: float) -> float:
    """The logarithm of the density of a mixture."""
    return float(np.logaddexp.reduce([component.log_density(y) for component in components]))
