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

from pytest_dp.arrays import Floats
from pytest_dp.known.affine import Affine
from pytest_dp.known.conditioned import log_weight
from pytest_dp.known.outcomes import Outcome, Part
from pytest_dp.known.trace import EVERYWHERE
from pytest_dp.limits import DOZENS, EQUAL, GRID, NEARLY_EQUAL, ROUNDED
from pytest_dp.randomness.laws import LAPLACE, NORMAL, TWO_SIDED_GEOMETRIC, Law
from pytest_dp.randomness.stand_ins import CannotInstrument


@dataclass(frozen=True, slots=True)
class Largest:
    """The suprema of the loss and of its negative, and by how much they may be off.

    The error is infinite where they were searched for.
    """

    forward: float
    backward: float
    error: float = 0.0

    def __add__(self, other: Largest) -> Largest:
        return Largest(
            self.forward + other.forward,
            self.backward + other.backward,
            self.error + other.error,
        )


@dataclass(frozen=True, slots=True)
class Cells:
    """A pair of distributions, cut into cells: arrays of shape (cells,)."""

    p: Floats
    q: Floats
    """The probability of each cell, as `p`."""
    low: Floats
    high: Floats
    """An upper bound on the loss in each cell, as `low` is a lower one."""

    def swapped(self) -> Cells:
        return Cells(self.q, self.p, -self.high, -self.low)


class Experiment:
    """A pair of distributions."""

    __slots__ = ()

    def largest(self) -> Largest:
        """The suprema of the loss."""
        raise NotImplementedError

    def cells(self, count: int) -> Cells | None:  # noqa: ARG002
        """About so many cells; None if the probabilities of cells have no closed form."""
        return None


@dataclass(frozen=True, slots=True)
class Moved(Experiment):
    """A standard draw under P; under Q, the same stretched and moved."""

    law: Law
    shift: float
    stretch: float = 1.0
    """1 for laws of integers."""

    @property
    def same_scale(self) -> bool:
        return abs(self.stretch - 1) <= ROUNDED

    def largest(self) -> Largest:
        """By the family: unbounded wherever a tail, or the support, differs."""
        shift = abs(self.shift)
        if self.same_scale:
            if shift <= ROUNDED:
                return Largest(0.0, 0.0)
            if self.law.family.exponential_tails:
                return Largest(shift, shift, 4 * ROUNDED * shift)
            if self.law.family is TWO_SIDED_GEOMETRIC and float(shift).is_integer():
                loss = -shift * math.log(self.law.parameter)
                return Largest(loss, loss, 4 * ROUNDED * loss)
        return Largest(math.inf, math.inf)  # one of them, at least: the estimate is the larger

    def cells(self, count: int) -> Cells | None:
        """By quantiles of both; in each the loss is monotone."""
        return _cut(self, count)

    def loss(self, x: Floats) -> Floats:
        """The loss of points; 0 where neither has a density."""
        log_p = self.law.log_density(x)
        log_q = self.law.log_density((x - self.shift) / self.stretch) - math.log(self.stretch)
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(log_p) & np.isneginf(log_q), 0.0, log_p - log_q)


@dataclass(frozen=True, slots=True)
class Tailed(Experiment):
    """A sum of independent draws, moved; its tails are exponential, so its loss is known."""

    shift: float
    """In units of the scale of the tails."""

    def largest(self) -> Largest:
        """No more than that of the draw with the largest scale, and approached far out."""
        return Largest(abs(self.shift), abs(self.shift), 4 * ROUNDED * abs(self.shift))


@dataclass(frozen=True, slots=True)
class Table(Experiment):
    """Finitely many values, with their probabilities."""

    p: Floats
    q: Floats
    left_out: float = 0.0
    """Probability up to which values are left out: of draws whose tails were not followed."""

    def largest(self) -> Largest:
        """By all values that either can have.

        Raises CannotInstrument where the loss still grows in a tail that was not followed.
        """
        ends = self._ends(self.left_out)
        if self.left_out and np.any(np.abs(ends) > np.abs(self._ends(EQUAL)) + NEARLY_EQUAL):
            raise CannotInstrument("a draw is rounded whose tails lose more than other values")
        return Largest(*ends, 1e-13)

    def _ends(self, least: float) -> tuple[float, float]:
        """The largest loss on either side, of values that are likelier than `least`."""
        possible = (self.p > least) | (self.q > least)
        with np.errstate(divide="ignore"):
            loss = np.log(self.p[possible]) - np.log(self.q[possible])
        return (float(loss.max()), float(-loss.min())) if loss.size else (0.0, 0.0)

    def cells(self, count: int) -> Cells:  # noqa: ARG002
        """One for each value."""
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = np.log(self.p) - np.log(self.q)
        loss = np.nan_to_num(loss, nan=0.0, posinf=np.inf, neginf=-np.inf)
        return Cells(self.p, self.q, loss, loss)


APART = Table(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
"""No value is possible under both."""


@dataclass(frozen=True, slots=True)
class Unbounded(Experiment):
    """Distributions of values that are possible under both, whose loss has no bound."""

    def largest(self) -> Largest:
        return Largest(math.inf, math.inf)


def _cut(moved: Moved, count: int) -> Cells | None:
    """Cells between points of a grid of each distribution, and of those where the loss turns."""
    family, stretch, shift = moved.law.family, moved.stretch, moved.shift
    if moved.law.lattice:
        return _cut_integers(moved, count)
    if not moved.same_scale and family not in (LAPLACE, NORMAL):
        return None
    grid = np.linspace(*family.bulk(moved.law.parameter), count // 2 + 1)
    if family is LAPLACE and moved.same_scale:
        grid = np.linspace(min(shift, 0.0), max(shift, 0.0), count)  # the loss is constant beyond
    turns = [0.0, shift]
    if family is NORMAL and not moved.same_scale:
        turns.append(-shift / (stretch**2 - 1))
    edges = np.unique(np.concatenate([grid, shift + stretch * grid, turns]))
    ends = np.concatenate([[-np.inf], edges, [np.inf]])
    p = np.exp(moved.law.log_between(ends[:-1], ends[1:]))
    standard = (ends - shift) / stretch
    q = np.exp(moved.law.log_between(standard[:-1], standard[1:]))
    if family.piecewise:  # the loss is constant between these points
        inside = np.concatenate([[ends[1] - 1], (edges[1:] + edges[:-1]) / 2, [ends[-2] + 1]])
        loss = moved.loss(inside)
        return Cells(p, q, loss, loss)
    loss = moved.loss(edges)
    if family is LAPLACE and moved.same_scale:
        loss = np.concatenate([loss[:1], loss, loss[-1:]])  # constant beyond the edges
        return Cells(p, q, np.minimum(loss[1:], loss[:-1]), np.maximum(loss[1:], loss[:-1]))
    bound = abs(shift) if family.exponential_tails and moved.same_scale else np.inf
    low = np.concatenate([[-bound], np.minimum(loss[1:], loss[:-1]), [-bound]])
    high = np.concatenate([[bound], np.maximum(loss[1:], loss[:-1]), [bound]])
    return Cells(p, q, low, high)


def _cut_integers(moved: Moved, count: int) -> Cells | None:
    """A cell for each integer, but for those in the tails."""
    low, high = map(int, moved.law.family.bulk(moved.law.parameter))
    shift = moved.shift
    if not float(shift).is_integer():
        return APART.cells(count)
    low, high = min(low, low + int(shift)), max(high, high + int(shift))
    if high - low > 20 * count:
        return None
    integers = np.arange(float(low), high + 1)
    p, q = (np.exp(moved.law.log_between(k - 0.5, k + 0.5)) for k in (integers, integers - shift))
    return Table(p, q).cells(count)


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
class Mixture(Experiment):
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
