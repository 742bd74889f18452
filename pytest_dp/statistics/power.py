"""Detection power of bets: the smallest loss that they detect, and the largest not ruled out.

Both come from the `Shape` of a pair of inputs: outputs are ordered by their learned score, and the
log odds of D are a smooth function of how far out an output is, a line with bends. With ``t`` times
less noise, log odds are ``t`` times as large around what lies halfway between both inputs: exactly
so for Gaussian noise, and for two outcomes. A loss is detected if the best bet wins on outputs with
these probabilities. Since other noise differs from that, a single event as likely as the clearest
one has to show the loss as well, and so have as many places of an output as share it.

All of this is approximate, and for information only: it decides when to stop looking for a
violation, and what is said of a claim that stands, never that there is a violation.

Sources: Balle, Wang, "Improving the Gaussian Mechanism for Differential Privacy", ICML 2018 (the
profile as the probabilities of one event); Kairouz, Oh, Viswanath, "The Composition Theorem for
Differential Privacy", ICML 2015 (places whose losses add up, and the events that show them).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtrc, betaincinv, ndtri

from pytest_dp.basics.arrays import Bools, Floats
from pytest_dp.basics.bisection import smallest, smallest_loss
from pytest_dp.privacy import Guarantee
from pytest_dp.statistics.event_bets import all_contingencies, contingency
from pytest_dp.statistics.ledger import Record, ledger_of
from pytest_dp.statistics.regression import expit, logistic

LEARNING_COST = 6.0
"""Log wealth that bets lose, about, while they learn what to bet on. Larger: detection limits say
less than audits can do, and audits that pass take longer; smaller: limits are missed more often."""
LEARNING_FACTOR = 1.5
"""How much more soft bets have to win, which learn a ratio of probabilities in every bin. Larger
and smaller: as for the learning cost."""
ERRORS = 2.0
"""Standard errors by which a mechanism may lose more than it looks: one of 40 loses more."""
CLEAR_ERRORS = 3.0
"""Standard errors from which chance does not explain a difference. Fewer: limits rest on chance;
more: shapes are known later."""
SMOOTH_BINS = 8
"""Bins of a score from which its log odds are taken for a smooth function. Fewer: of a few
categories, some odds are smoothed away; more: coarse scores say less of rare outputs."""
RARE = 0.01
"""Probability below which an event does not show a pure loss, nor does a last bin count as a value
beyond which there is none. Smaller: losses are reported that no audit sees; larger: rare events
that samples do show are left out."""
BENDS = {0.5: 1.0, 1.0: 1.0, 2.0: 1.0, 3.0: 0.3}
"""Where the line bends, in standard deviations from the middle, on either side, and how much: it is
0, give or take this. More follow other shapes of noise; fewer are better known."""
FAR_OUT = np.linspace(-8.5, 8.5, 1_701)
"""Places at which a smooth shape is known, in standard deviations; beyond them, 1e-17 is left."""
WIDTHS = (50, 25)
"""Places in a bin of a tilted shape: wide bins for soft bets, and narrow ones. Wider: bets earn
less than they do; narrower: it takes longer."""
MAX_SCALE = 1e4
"""How many times too small noise is looked for; beyond, nothing is detected."""
LEARNED_SHARE, PARAMETERS_PER_PLACE = 0.25, 2
"""Share of the samples that bets were learned from on average, and numbers to learn for each place
of an output. They matter from a hundred places on: with less to learn, limits are missed there."""
STAKES = np.geomspace(1e-3, 0.98, 40)
"""Shares of the largest stake, one of which is near the best. More cost time only."""
DELTAS = 10
"""How many times a claim's delta a leak may have that a strong pass would have seen. Larger: passes
say less of delta; smaller: hardly any is strong."""


class Shape:
    """Log odds of D, and how likely outputs are, by a record through one binning.

    Bins are in increasing order of the odds for D. If it is `careful`, both inputs are as far apart
    as is certain only, and least so where hardly anything is known.
    """

    def __init__(self, joint: Floats, *, careful: bool = False) -> None:
        self.counts1, self.counts2 = joint.sum(1), joint.sum(0)
        self.certain, self.shared = _certain(joint), _dependence(joint)
        self.is_smooth = len(joint) >= SMOOTH_BINS
        seen = self.counts1 + self.counts2 > 0
        self.counts1, self.counts2 = self.counts1[seen], self.counts2[seen]
        runs = self.counts1 + self.counts2
        far = ndtri((np.cumsum(runs) - runs / 2) / runs.sum())
        precision = np.array([1e-3, 1e-3, *np.repeat([size**-2 for size in BENDS.values()], 2)])
        basis, prior = _basis(far), (np.zeros(len(precision)), precision)
        weights = logistic(basis, self.counts1, runs, prior, 30, 1e-6)
        chances = expit(weights @ basis)
        known = (basis * (runs * chances * (1 - chances))) @ basis.T + np.diag(precision)
        self.density = np.exp(-(FAR_OUT**2) / 2) if self.is_smooth else runs
        # A last bin that many outputs are in is a value beyond which there is none.
        ends = (runs[[0, -1]] > RARE * runs.sum()) * far[[0, -1]]
        within = np.clip(FAR_OUT, ends[0] or -np.inf, ends[1] or np.inf)
        asked = _basis(within if self.is_smooth else far)
        self.seen = weights @ basis
        """Log odds of D in the bins that were seen."""
        self.odds = weights @ asked
        """Log odds of D, in nats, where `density` is."""
        self.room = np.sqrt(np.einsum("kn,kn->n", asked, np.linalg.solve(known, asked)))
        """Standard errors of these odds."""
        if careful:
            trust = self.odds**2 / np.maximum(self.odds**2 + self.room**2, 1e-9)
            self.odds = self.certain * trust * self.odds

    def half_lines(self, errors: float, *, turned: bool = False) -> tuple[Floats, Floats]:
        """Return probabilities of being at least so far out, on the likelier input and the other.

        They leave so many standard errors of room for chance; towards D' if `turned`.
        """
        odds, room, density = self.odds, self.room, self.density
        if turned:
            odds, room, density = -odds[::-1], room[::-1], density[::-1]
        odds = odds + errors * room
        return _beyond(density * expit(odds)), _beyond(density * expit(-odds))

    def tilted(self, times: float) -> tuple[Floats, Floats]:
        """Return how likely outputs are on D and on D' with `times` less noise."""
        middle = self.density * np.sqrt(expit(self.odds) * expit(-self.odds))
        tilt = times * self.odds / 2
        on_d, on_d2 = (middle * np.exp(side - side.max()) for side in (tilt, -tilt))
        return on_d / on_d.sum(), on_d2 / on_d2.sum()

    def joints(self, times: float) -> list[Floats]:
        """Return probabilities of pairs of bins as in `Record.joint`, with `times` less noise.

        Those of fewer bins, for soft bets, are first.
        """
        sides = self.tilted(times)
        widths = WIDTHS if self.is_smooth else (1,)
        cuts = (np.arange(0, len(self.density), width) for width in widths)
        above = ([_beyond(np.add.reduceat(side, at))[1:] for side in sides] for at in cuts)
        return [couple_bins(p, q, self.shared) for p, q in above]

    def divergence(self, order: float) -> float:
        """Return the mean of both divergences of an order, in nats, in the outputs seen."""
        p, q = (counts / counts.sum() for counts in (self.counts1, self.counts2))
        if order == 1:
            return float((p - q) @ self.seen) / 2
        k = order - 1
        moments = float(p @ np.exp(k * self.seen)) + float(q @ np.exp(-k * self.seen))
        return math.log(max(moments / 2, 1.0)) / k


def _basis(far: Floats) -> Floats:
    """Return a line and its bends, shape (k, n)."""
    bends = [np.maximum(side * far - bend, 0.0) for bend in BENDS for side in (1, -1)]
    return np.stack([np.ones(len(far)), far, *bends])


def _beyond(weights: Floats) -> Floats:
    """Return the probability of being at each place or farther out."""
    share: Floats = weights[::-1].cumsum()[::-1] / weights.sum()
    return share


def _certain(joint: Floats) -> float:
    """Return the share of the distance between both inputs that chance does not explain."""
    only1, only2 = contingency(joint)[: len(joint) - 1, 1:3].T
    clear = float(np.max((only1 - only2) / np.sqrt(only1 + only2 + 1), initial=0.0))
    return 1 - 1 / clear if clear > CLEAR_ERRORS else 0.0


def _dependence(joint: Floats) -> float:
    """Return how far outputs on both inputs go together, from -1 to 1; 0 if independent."""
    both, only1, only2 = contingency(joint)[: len(joint) - 1, :3].T / max(joint.sum(), 1)
    p, q = both + only1, both + only2
    extra = both - p * q
    room = largest_dependence(p, q, extra.sum() > 0)
    return float(np.clip(extra.sum() / max(room.sum(), 1e-6), -1, 1))


def largest_dependence(p: Floats | float, q: Floats | float, together: Bools | bool) -> Floats:
    """Return how far the probability of both events can be from that of independent ones (Fréchet).

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
    """Bets against a claim on so many pairs of outputs, at a level, and what they detect."""

    guarantee: Guarantee
    runs: float
    """Pairs of outputs that are bet on."""
    alpha: float
    """A claim is refuted at ``1 / alpha``."""

    def detect(self, *joints: Floats) -> bool:
        """Return whether the best bet wins, with 95 % power, on outputs of these probabilities.

        As in `Record.joint`, one table for each binning.
        """
        record = Record([self.runs * joint for joint in joints])
        events, soft = ledger_of(self.guarantee).growth(record)
        return max(events, soft / LEARNING_FACTOR) >= wealth_for(self.alpha)


def wealth_for(alpha: float) -> float:
    """Return the log wealth to expect, so that 1 / alpha is reached in 19 of 20 audits."""
    return -math.log(alpha) + LEARNING_COST + 2.0 * math.sqrt(-2 * math.log(alpha))


def shapes_of(record: Record) -> list[Shape]:
    """Return the shape by the score alone where it has many values; else also by events."""
    wide = [joint for joint in record.joint if len(joint) > 1]
    seen = wide[:1] if wide and len(wide[0]) >= SMOOTH_BINS else wide
    return [Shape(joint, careful=True) for joint in seen]


def detection_limit(record: Record, bets: PlannedBets, places: float) -> float:
    """Return the smallest loss on a pair of inputs that bets detect, in the claim's parameter.

    So many `places` of its outputs share the loss. Infinite if no loss would be detected.
    """
    guarantee, least = bets.guarantee, 0.0
    shapes = shapes_of(record)
    times = smallest_scale(shapes, bets)
    if not guarantee.divergences or math.isinf(times):  # bets on these need no single event
        p1, shared = clearest_event(record)
        least = smallest_event(p1, bets, shared)
        if places > 1 and guarantee.eps is not None:
            least = max(least, smallest_event(0.5, bets, shared, places))
    return least if math.isinf(times) else max(least, scaled_loss(record, shapes, guarantee, times))


def smallest_scale(shapes: Sequence[Shape], bets: PlannedBets) -> float:
    """Return by how much noise has to be scaled down to be detected: at least 1.

    Infinite if no scale would be detected, or nothing is known.
    """
    if not any(shape.certain for shape in shapes):
        return math.inf

    def is_detected(times: float) -> bool:
        return bets.detect(*(joint for shape in shapes for joint in shape.joints(times)))

    return 1.0 if is_detected(1.0) else smallest(is_detected, 1.0, 2.0, MAX_SCALE, relative=1e-3)


def scaled_loss(
    record: Record, shapes: Sequence[Shape], guarantee: Guarantee, times: float
) -> float:
    """Return the parameter with `times` less noise, as far as events show it."""
    if guarantee.largest_ratio is not None:
        both = (_both_ways(*shape.tilted(times)) for shape in shapes)
        lines = [line for sides in both for line in sides]
        ratios = [np.log(p / q)[(q >= RARE) & (p > 0)] for p, q in lines]
        return float(max(np.max(ratio, initial=0.0) for ratio in ratios))
    largest = _largest_shown(record, guarantee) * times**guarantee.power
    if not guarantee.claimed:
        largest = max(largest, guarantee.with_noise_over(times))
    if not _needs_shape(record, guarantee):
        return largest
    lines = _both_ways(*Shape(record.joint[0]).tilted(times))
    return max(largest, *(_proved_by(*sides, guarantee) for sides in lines))


def _both_ways(on_d: Floats, on_d2: Floats) -> list[tuple[Floats, Floats]]:
    """Return half-lines of the upper and the lower tail, the likelier input first."""
    return [(_beyond(on_d), _beyond(on_d2)), (_beyond(on_d2[::-1]), _beyond(on_d[::-1]))]


def smallest_event(p1: float, bets: PlannedBets, shared: float = 0.0, places: float = 1) -> float:
    """Return the smallest loss that bets detect, in the claim's parameter; infinite if none.

    So many places of an output share it evenly, each of which points to the likelier input there
    with the probability p1; the event is a count of them. `shared` is as in `couple_bins`.
    """
    guarantee, places = bets.guarantee, math.ceil(places)
    fewest = np.arange(1, places + 1, places // 48 + 1)
    unknown = PARAMETERS_PER_PLACE * places * (places - 1) / (LEARNED_SHARE * bets.runs)

    def is_detected(loss: float) -> bool:
        # Errors of what is learned add noise: the loss counts for less, the more is to be learned.
        loss /= math.sqrt(1 + 2 * unknown / loss**2)
        p, q = (bdtrc(fewest - 1.0, places, p1 * math.exp(-by)) for by in (0, loss / places))
        return bets.detect(couple_bins(p, q, shared))

    loss = smallest_loss(is_detected, guarantee.eps or 0.0)
    if guarantee.eps is not None or math.isinf(loss):
        return loss
    return guarantee.shown_by(p1, p1 * math.exp(-loss))


def clearest_event(record: Record) -> tuple[float, float]:
    """Return the probability of the event that is told apart best, and how far both go together.

    The probability is that on the input that makes it likelier, at most one half, which it also is
    if chance explains the event; the other figure is as in `couple_bins`.
    """
    counts = all_contingencies(record.joint)
    if not len(counts):
        return 0.5, 0.0
    both, only1, only2, neither = counts.T
    runs = both + only1 + only2 + neither
    clear = np.abs(only1 - only2) / np.sqrt(only1 + only2 + 1)
    k = int(np.argmax(clear))
    p, q, together = (float(c[k] / runs[k]) for c in (both + only1, both + only2, both))
    if min(p, q) > 0.5:  # what it leaves out
        p, q, together = 1 - p, 1 - q, 1 - p - q + together
    p, q = max(p, q), min(p, q)
    extra = together - p * q
    room = float(largest_dependence(p, q, extra > 0))
    common = float(np.clip(extra / room, -1, 1)) if room > 0 else 0.0
    return min(p, 0.5) if clear[k] > CLEAR_ERRORS else 0.5, common


def largest_loss(record: Record, guarantee: Guarantee) -> float:
    """Return the largest parameter that the past does not rule out, with room for chance.

    0.0 if nothing was learned yet. What is too rare to be seen is not in it: see `rarest_leak`.
    """
    largest = _largest_shown(record, guarantee)
    if not _needs_shape(record, guarantee):
        return largest
    shape = Shape(record.joint[0])
    both = (shape.half_lines(ERRORS, turned=turned) for turned in (False, True))
    seen = (_proved_by(*sides, guarantee) for sides in both)
    return max(largest, *seen)


def _largest_shown(record: Record, guarantee: Guarantee) -> float:
    """Return the largest parameter that events, or divergences, show, with room for chance."""
    largest = shown_by_events(record, guarantee)
    if guarantee.divergences and record.joint:
        shape = Shape(record.joint[0])
        for order, _ in guarantee.divergences:
            # Outputs that are too rare to be seen yet may make up most of a moment of large order.
            seen = max(shape.divergence(order), order * shape.divergence(1.0))
            distance = seen * (2 - shape.certain) ** 2
            largest = max(largest, guarantee.shown_by_divergence(order, distance))
    return largest


def _needs_shape(record: Record, guarantee: Guarantee) -> bool:
    """Return whether rarer events than the most distinguishing ones prove the parameter."""
    return guarantee.delta > 0 and bool(record.joint) and len(record.joint[0]) >= SMOOTH_BINS


def _proved_by(p: Floats, q: Floats, guarantee: Guarantee) -> float:
    some = (p > guarantee.delta) & (q < 0.9)  # the other tail is that of the other side
    return float(np.max(guarantee.shown_by(p[some], q[some]), initial=0.0))


def shown_by_events(record: Record, guarantee: Guarantee) -> float:
    """Return the largest parameter that an event shows, two standard errors allowed."""
    counts = all_contingencies(record.joint)
    if not len(counts):
        return 0.0
    both, only1, only2, neither = counts.T
    c1, c2 = both + only1 + 0.5, both + only2 + 0.5
    runs = both + only1 + only2 + neither + 1
    # Pairs of outputs that are in the event together say nothing about its loss.
    loss, error = np.log(c1 / c2), 2 * np.sqrt((only1 + only2 + 1) / (c1 * c2))
    # The event that shows most for sure. Beside a delta that may be a rare one, of less certainty;
    # it counts by how much its probability is above that.
    eps, delta = np.array(guarantee.hockey_sticks).T[..., None]
    room = (1.0 if guarantee.delta else 1.5) * error
    above = 1 - delta * runs / c1 * np.exp(room / 2)
    sure = np.log(np.maximum(above, np.finfo(float).tiny)) + loss - room - eps
    k = int(np.argmax(sure.max(axis=0)))
    p, q, off = float(c1[k] / runs[k]), float(c2[k] / runs[k]), math.exp(error[k] / 2)
    # The rarer of the event and its complement may be off by this factor.
    return guarantee.shown_by(min(p * off, 1 - (1 - p) / off), max(q / off, 1 - (1 - q) * off))


def rarest_leak(bets: PlannedBets) -> float:
    """Return the smallest probability of an event that only one input gives, and that is seen.

    With 95 % power: by the best stake, so many hits win ``1 / alpha`` and what is lost while bets
    learn; so often it comes but once in 20 audits. 1.0 if no such event would be seen.
    """
    runs, seen = bets.runs, 1.0
    needed = LEARNING_COST - math.log(bets.alpha)
    for eps, delta in bets.guarantee.hockey_sticks:
        stakes = STAKES / (math.exp(eps) + delta)
        lost = -np.log1p(-stakes * delta)
        hits = np.ceil((needed + runs * lost) / (np.log1p(stakes * (1 - delta)) + lost))
        fewest = float(hits.min())
        if 0 < fewest <= runs:
            seen = min(seen, float(betaincinv(fewest, runs - fewest + 1, 0.95)))
    return seen
