"""Detection limit of bets: the record of a pair as it would be with less noise, bet on again.

With noise ``t`` times smaller, two inputs look ``t`` times as far apart. Outputs are ordered by
their learned score, and the log odds of D are taken to be a smooth function of how far out an
output is: a line with bends, in units in which Gaussian noise makes it straight. It says how likely
half-lines are on either input. For noise that is added, and events "more than so much", less noise
is then known exactly: if those that hold with probability a on D' hold with probability ``G(a)`` on
D, then G applied twice is what inputs at twice the distance show, and so on. Between whole numbers
it is interpolated. Of scores with few values, each is tilted from what lies halfway between both
inputs, which is exact for two outcomes.

On the record that follows, the bets of a ledger earn what they would have earned.

All of this is approximate, and for information only: it decides when to stop looking for a
violation, and never that there is one. Where nothing tells two inputs apart beyond chance, it is
not known at all: it rests on events at which a leak would show.

Source: Dong, Roth, Su, "Gaussian Differential Privacy", JRSS B 2022, section 2.5 (group privacy).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from pytest_dp.arrays import Bools, Floats
from pytest_dp.bisection import smallest
from pytest_dp.limits import CLEAR_ERRORS, EQUAL, NEARLY_EQUAL, NO_LOSS, RARELY, SEVERAL
from pytest_dp.privacy import Guarantee
from pytest_dp.statistics.divergence_bets import NEWTON_STEPS
from pytest_dp.statistics.event_bets import contingency
from pytest_dp.statistics.ledger import Record, ledger_of
from pytest_dp.statistics.regression import expit, logistic

LEARNING_COST = 6.0
"""Log wealth that bets lose, about, while they learn what to bet on. Larger: the reported
resolution says less than the audit can do, and audits that pass take longer; smaller: it is missed
more often. By hand."""
LEARNING_FACTOR = 1.5
"""How much more has to be won by soft bets than by bets on events: the ratio of probabilities in
every bin has to be learned meanwhile. Larger: the reported resolution says less than the audit can
do; smaller: it is missed more often. By simulation of audits at the loss that is reported."""
CAUTION = 1.0
"""Standard errors by which two inputs are taken to be less far apart than they look. Larger: the
reported resolution says less; smaller: it relies on chance. By hand."""
BENDS = {0.5: 1.0, 1.0: 1.0, 2.0: 1.0, 3.0: 0.3}
"""Where the line bends, in standard deviations from the middle, on either side, and how much: it
is 0, give or take this. More follow other shapes of noise; fewer are better known, most of all
where few outputs are. By hand."""
FAR_OUT = np.linspace(-8.5, 8.5, 1_701)
"""Where the line is asked, in standard deviations. Derived: from there on, 1e-17 is left."""
CUTS = np.linspace(-4.75, 4.75, 39)
"""Where scores are cut to bet on them again, in standard deviations on D'. Derived: beyond them,
one output in a million is left; an event between two of them earns one percent more, at most."""
MAX_SCALE = 1e4
"""How many times too small noise is looked for; beyond, nothing would have been caught. By hand."""


class Shape:
    """How likely outputs are on D and on D' from some score on, by a record through one binning.

    Bins are in increasing order of the odds for D. If it is `careful`, both inputs are as far apart
    as is certain only, and least so where hardly anything is known.
    """

    def __init__(self, joint: Floats, *, careful: bool = False) -> None:
        self.counts1, self.counts2 = joint.sum(1), joint.sum(0)
        self.certain, self.shared = _certain(joint), _dependence(joint)
        self.is_smooth = len(joint) >= SEVERAL
        seen = self.counts1 + self.counts2 > 0
        self.counts1, self.counts2 = self.counts1[seen], self.counts2[seen]
        runs = self.counts1 + self.counts2
        far = ndtri((np.cumsum(runs) - runs / 2) / runs.sum())
        precision = np.array([1e-3, 1e-3, *np.repeat([size**-2 for size in BENDS.values()], 2)])
        basis, prior = _basis(far), (np.zeros(len(precision)), precision)
        weights = logistic(basis, self.counts1, runs, prior, NEWTON_STEPS, NEARLY_EQUAL)
        chances = expit(weights @ basis)
        known = (basis * (runs * chances * (1 - chances))) @ basis.T + np.diag(precision)
        self.density = np.exp(-(FAR_OUT**2) / 2) if self.is_smooth else runs
        # A last bin that many outputs are in is a value beyond which there is none.
        ends = (runs[[0, -1]] > RARELY * runs.sum()) * far[[0, -1]]
        within = np.clip(FAR_OUT, ends[0] or -np.inf, ends[1] or np.inf)
        asked = _basis(within if self.is_smooth else far)
        self.seen = weights @ basis
        """Log odds of D in the bins that were seen."""
        self.odds = weights @ asked
        """Log odds of D, in nats, where `density` is."""
        self.room = np.sqrt(np.einsum("kn,kn->n", asked, np.linalg.solve(known, asked)))
        """By how much they may be larger by chance."""
        if careful:
            trust = self.odds**2 / np.maximum(self.odds**2 + self.room**2, EQUAL)
            self.odds = self.certain * trust * self.odds
        self._applied: list[Floats] = []

    def half_lines(self, errors: float, *, turned: bool = False) -> tuple[Floats, Floats]:
        """Probabilities of being at least so far out, on the likelier input and on the other.

        With so many standard errors of room for chance; towards D' if `turned`.
        """
        odds, room, density = self.odds, self.room, self.density
        if turned:
            odds, room, density = -odds[::-1], room[::-1], density[::-1]
        return _beyond(density, odds + errors * room)

    def scaled(self, times: float) -> tuple[Floats, Floats]:
        """Return how likely half-lines are on D and D' with noise `times` smaller.

        Rarer ones are last.

        As quantiles of the normal distribution.
        """
        if self.is_smooth:
            far = self._moved(int(times))
            near, shift = self._applied[0], self._applied[1] - self._applied[0]
            return far + (times - int(times)) * np.interp(far, near, shift), near
        middle = self.density * np.sqrt(expit(self.odds) * expit(-self.odds))
        tilt = times * self.odds / 2
        sides = (np.exp(side - side.max()) for side in (tilt, -tilt))
        far, near = (_quantiles(middle * side)[1:] for side in sides)
        return far, near

    def _moved(self, steps: int) -> Floats:
        """Return how far out half-lines are on D whose distance on D' is `_applied[0]`.

        At so many times the distance between both inputs.
        """
        if not self._applied:
            far, near = (_quantiles(self.density * expit(side * self.odds)) for side in (1, -1))
            some = np.isfinite(far) & np.isfinite(near)
            self._applied = [near[some][::-1], far[some][::-1]]
        shift = self._applied[1] - self._applied[0]
        while len(self._applied) <= steps:
            here = self._applied[-1]
            further = here + np.interp(here, self._applied[0], shift)
            if np.abs(further - here).max() < NEARLY_EQUAL:
                return here
            self._applied.append(further)
        return self._applied[steps]

    def joints(self, times: float) -> list[Floats]:
        """Probabilities of pairs of bins as in `Record.joint`, with noise so many times smaller.

        With fewer bins first, for soft bets.
        """
        far, near = self.scaled(times)
        if not self.is_smooth:
            return [couple_bins(ndtr(far), ndtr(near), self.shared)]
        return [
            couple_bins(ndtr(np.interp(-cuts, near, far)), ndtr(-cuts), self.shared)
            for cuts in (CUTS[::2], CUTS)
        ]

    def divergence(self, order: float) -> float:
        """The mean of the divergences of an order of D from D' and of D' from D, in nats.

        Of the outputs that were seen.
        """
        p, q = (counts / counts.sum() for counts in (self.counts1, self.counts2))
        if order == 1:
            return float((p - q) @ self.seen) / 2
        k = order - 1
        moments = float(p @ np.exp(k * self.seen)) + float(q @ np.exp(-k * self.seen))
        return math.log(max(moments / 2, 1.0)) / k


def _basis(far: Floats) -> Floats:
    """A line and its bends, shape (k, n)."""
    bends = [np.maximum(side * far - bend, 0.0) for bend in BENDS for side in (1, -1)]
    return np.stack([np.ones(len(far)), far, *bends])


def _beyond(density: Floats, odds: Floats) -> tuple[Floats, Floats]:
    """Probabilities of being at each place or farther out, on D and on D'."""
    p, q = (
        side[::-1].cumsum()[::-1] / side.sum()
        for side in (density * expit(odds), density * expit(-odds))
    )
    return p, q


def _quantiles(weights: Floats) -> Floats:
    """How likely it is to be at each place or farther out, as normal quantiles."""
    total = weights.sum()
    beyond, before = weights[::-1].cumsum()[::-1] / total, (weights.cumsum() - weights) / total
    quantiles: Floats = np.where(beyond < 0.5, ndtri(beyond), -ndtri(before))
    return quantiles


def _certain(joint: Floats) -> float:
    """The share of the distance between two inputs that chance does not explain; 0 if it may all.

    By the event that is told apart best.
    """
    only1, only2 = contingency(joint)[: len(joint) - 1, 1:3].T
    clear = float(np.max((only1 - only2) / np.sqrt(only1 + only2 + 1), initial=0.0))
    return 1 - CAUTION / clear if clear > CLEAR_ERRORS else 0.0


def _dependence(joint: Floats) -> float:
    """Return how far outputs on both inputs go together.

    0 if they were independent, 1 where the rarer side of an event never was alone, -1 if they
    excluded each other as far as can be.
    """
    both, only1, only2 = contingency(joint)[: len(joint) - 1, :3].T / max(joint.sum(), 1)
    p, q = both + only1, both + only2
    extra = both - p * q
    room = largest_dependence(p, q, extra.sum() > 0)
    return float(np.clip(extra.sum() / max(room.sum(), NEARLY_EQUAL), -1, 1))


def largest_dependence(p: Floats | float, q: Floats | float, together: Bools | bool) -> Floats:
    """How far the probability of both events can be from that of independent ones (Fréchet).

    Above it where they hold `together`, else below it.
    """
    lower, upper = np.maximum(0.0, np.add(p, q) - 1), np.minimum(p, q)
    independent = np.multiply(p, q)
    return np.where(together, upper - independent, independent - lower)


def couple_bins(p: Floats, q: Floats, shared: float) -> Floats:
    """Return probabilities of pairs of bins, from those beyond each cut, in decreasing order.

    `shared` is how far outputs on both inputs go together, from -1 to 1.
    """
    below1, below2 = (np.concatenate([[0.0], 1 - side, [1.0]]) for side in (p, q))
    a, b = below1[:, None], below2[None, :]
    both = a * b + shared * largest_dependence(a, b, shared > 0)
    joint: Floats = np.maximum(np.diff(np.diff(both, axis=0), axis=1), 0.0)
    return joint


@dataclass(frozen=True, slots=True)
class PlannedBets:
    """So many bets against a claim, and what they would have caught."""

    guarantee: Guarantee
    runs: float
    """Pairs of outputs that are bet on."""
    alpha: float
    """A claim is refuted at ``1 / alpha``."""

    def catch(self, *joints: Floats) -> bool:
        """Return whether the best bet wins, with 95 % power, on outputs of these probabilities.

        As in `Record.joint`, one for each binning.
        """
        record = Record([self.runs * joint for joint in joints])
        events, soft = ledger_of(self.guarantee).growth(record)
        return max(events, soft / LEARNING_FACTOR) >= wealth_for(self.alpha)


def wealth_for(alpha: float) -> float:
    """Log wealth to expect, so that 1 / alpha is reached in 19 of 20 audits."""
    return -math.log(alpha) + LEARNING_COST + 2.0 * math.sqrt(-2 * math.log(alpha))


def shapes_of(record: Record) -> list[Shape]:
    """By the score alone where it has many values; else also by events."""
    wide = [joint for joint in record.joint if len(joint) > 1]
    seen = wide[:1] if wide and len(wide[0]) >= SEVERAL else wide
    return [Shape(joint, careful=True) for joint in seen]


def smallest_scale(shapes: list[Shape], bets: PlannedBets) -> float:
    """By how much noise has to be scaled down to be caught, with 95 % power (approximate).

    At least 1; infinite if no scale would be caught.
    """
    if not any(shape.certain for shape in shapes):
        return math.inf

    def is_caught(times: float) -> bool:
        return bets.catch(*(joint for shape in shapes for joint in shape.joints(times)))

    return 1.0 if is_caught(1.0) else smallest(is_caught, 1.0, 2.0, MAX_SCALE, relative=NO_LOSS)
