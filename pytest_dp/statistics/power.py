"""Detection power of bets: the smallest loss that they detect, and the largest not ruled out.

The past says how clearly the best bet refutes every loss below and above the claim, in standard
errors. Where these are 0 is what the mechanism seems to lose; where they are as many as nearly
always win is what an audit would refute. Noise that is as many times too small as the one is larger
than the other would be detected: less noise makes bets grow faster, never slower. A loss that many
places of an output share has to be detected by their number as well, since bets see a part of it.

All of this is approximate, and for information only: it decides when to stop looking for a
violation, and what is said of a claim that stands, never that there is a violation.

Sources: Balle, Wang, "Improving the Gaussian Mechanism", ICML 2018 (the profile as probabilities of
an event); Kairouz, Oh, Viswanath, "The Composition Theorem", ICML 2015 (losses that add up).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import bdtrc, betaincinv, ndtr, ndtri

from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.basics.bisection import smallest, smallest_loss
from pytest_dp.privacy import ApproximateDP, Guarantee
from pytest_dp.statistics.event_bets import event_table, event_tables
from pytest_dp.statistics.ledger import BetRecord, Ledger, ledger_of, standard_errors_against
from pytest_dp.statistics.soft_bets import expit, logistic

LEARNING_COST = 6.0
"""Log wealth that bets lose, about, while they learn. Larger: limits understate audits, which take
longer; smaller: limits are missed more often."""
LEARNING_FACTOR = 1.5
"""How much more attacks have to win, which learn a ratio of probabilities in every bin. Larger and
smaller: as for `LEARNING_COST`."""
ERRORS = 2.0
"""Standard errors by which a mechanism may lose more than estimated: one of 40 loses more."""
CLEAR_ERRORS = 3.0
"""Standard errors from which chance does not explain a difference. Fewer: limits rest on chance;
more: shapes are known later."""
SMOOTH_BINS = 8
"""Bins of a score from which its log odds count as a smooth function. Fewer smooth away categories;
more: coarse scores say less of rare outputs."""
MIN_LAST_BIN = 0.01
"""Share of the outputs from which a last bin counts as the largest value there is. Smaller cuts
tails that go on; larger extends tails that end."""
NOISE = np.geomspace(0.1, 3.0, 36)
"""Factors by which noise is too small, for which bets compute what they refute. More are finer."""
STEEP_ERRORS = 6.0
"""Standard errors at which the slope of the past is taken, besides `CLEAR_ERRORS`. More: sharper
limits that rest on losses farther below the claim."""
BENDS = {0.5: 1.0, 1.0: 1.0, 2.0: 1.0, 3.0: 0.3}
"""Where the line bends, in standard deviations from the middle, and the prior deviation of each
bend. More follow other shapes of noise; fewer are better known."""
FAR_OUT = np.linspace(-8.5, 8.5, 1_701)
"""Places at which a shape is computed, in standard deviations; 1e-17 lies outside."""
LEARNED_SHARE, PARAMETERS_PER_PLACE = 0.25, 2
"""Share of the samples that bets have learned from on average, and numbers to learn for each place
of an output. They matter from a hundred places on: with less to learn, limits are missed there."""
HALF_NOISE = 2.0
"""Factor by which noise is too small that an audit has to detect, or it is blind. Larger: audits of
few samples are called blind; smaller: blind ones pass."""
NO_LOSS = ApproximateDP(0.0)
"""The guarantee of equal output distributions."""
STAKES = np.geomspace(1e-3, 0.98, 40)
"""Shares of the largest stake, one of which is near the best. More cost time only."""
LOW_ORDER = 2.0
"""Order of Rényi divergences up to which bets see smaller losses as well. Larger: limits are missed
where noise is large; smaller: claims of low orders take longer."""
GAUSSIAN_BINS, LEAST_NOISE = 40, 16.0
"""Bins of a score of Gaussian outputs, and the largest factor by which noise is too small. More
take longer; fewer enlarge limits."""
DELTAS = 10
"""Multiple of a claim's delta of the leak that a strong pass would have seen. More: passes say less
of delta; fewer: hardly any is strong."""
PLACE_ERRORS = 4.0
"""Standard errors from which a place loses something for sure, of thousands. More miss places;
fewer: chance is taken for one."""
MIN_OFTEN = 0.01
"""Share of the outputs that a label has, at least. Larger leaves out rare labels; smaller: chance
is taken for them."""
MIN_JOINT_ERRORS = 2.0
"""Standard errors from which all other places together lose something. Larger misses small losses
of many; smaller: noise counts as loss. By hand."""


class Shape:
    """A model of the log odds of D, smooth in how far out an output lies by its score.

    A line with bends is fitted to the record by logistic regression on normal quantiles. Bins are
    in increasing order of the odds.
    """

    def __init__(self, joint: Floats) -> None:
        self.counts1, self.counts2 = joint.sum(1), joint.sum(0)
        self.certain = _certain_share(joint)
        seen = self.counts1 + self.counts2 > 0
        self.counts1, self.counts2 = self.counts1[seen], self.counts2[seen]
        runs = self.counts1 + self.counts2
        far = ndtri((np.cumsum(runs) - runs / 2) / runs.sum())
        precision = np.array([1e-3, 1e-3, *np.repeat([size**-2 for size in BENDS.values()], 2)])
        basis = _basis(far)
        weights = logistic(basis, self.counts1, runs, precision)
        chances = expit(weights @ basis)
        known = (basis * (runs * chances * (1 - chances))) @ basis.T + np.diag(precision)
        # A last bin that many outputs are in is a value beyond which there is none.
        ends = (runs[[0, -1]] > MIN_LAST_BIN * runs.sum()) * far[[0, -1]]
        asked = _basis(np.clip(FAR_OUT, ends[0] or -np.inf, ends[1] or np.inf))
        self.seen = weights @ basis
        """Log odds of D in the bins that were seen."""
        self.odds = weights @ asked
        """Log odds of D, in nats, at `FAR_OUT`."""
        self.room = np.sqrt(np.einsum("kn,kn->n", asked, np.linalg.solve(known, asked)))
        """Standard errors of these odds."""

    def half_lines(self, errors: float, *, turned: bool = False) -> tuple[Floats, Floats]:
        """Return the probabilities on D, and on D', of all outputs from each place on, shape (n,).

        Odds are raised by `errors` standard errors. If `turned`, from the other end: on D', and on
        D.
        """
        odds, room = (-self.odds[::-1], self.room[::-1]) if turned else (self.odds, self.room)
        odds = odds + errors * room
        density = np.exp(-(FAR_OUT**2) / 2)
        return _tail_shares(density * expit(odds)), _tail_shares(density * expit(-odds))

    def divergence(self, order: float) -> float:
        """Return the mean of both divergences of an order, in nats, in the bins with outputs."""
        p, q = (counts / counts.sum() for counts in (self.counts1, self.counts2))
        if order == 1:
            return float((p - q) @ self.seen) / 2
        k = order - 1
        moments = float(p @ np.exp(k * self.seen)) + float(q @ np.exp(-k * self.seen))
        return math.log(max(moments / 2, 1.0)) / k


def _basis(far: Floats) -> Floats:
    """Return a constant, a line and its bends at some normal quantiles, shape (k, n)."""
    bends = [np.maximum(side * far - bend, 0.0) for bend in BENDS for side in (1, -1)]
    return np.stack([np.ones(len(far)), far, *bends])


def _tail_shares(weights: Floats) -> Floats:
    """Return the share of the weights from each place on, shape (n,)."""
    share: Floats = weights[::-1].cumsum()[::-1] / weights.sum()
    return share


def _certain_share(joint: Floats) -> float:
    """Return the share of the distance between both inputs that chance does not explain.

    0.0 if the distance is at most `CLEAR_ERRORS` standard errors.
    """
    only1, only2 = event_table(joint)[: len(joint) - 1, 1:3].T
    clear = float(np.max((only1 - only2) / np.sqrt(only1 + only2 + 1), initial=0.0))
    return 1 - 1 / clear if clear > CLEAR_ERRORS else 0.0


@dataclass(frozen=True, slots=True)
class PlannedBets:
    """A plan of bets on `runs` pairs of outputs against a claim, at a level."""

    guarantee: Guarantee
    runs: float
    """Pairs of outputs that are bet on."""
    alpha: float
    """A claim is refuted at ``1 / alpha``."""

    def detect(self, joint: Floats) -> bool:
        """Return whether the best bet wins, with 95 % power, at these bin probabilities.

        `joint` has the probability of each pair of bins, as in `BetRecord.joint`.
        """
        record = BetRecord([self.runs * joint])
        return _log_wealth(ledger_of(self.guarantee), record) >= wealth_for(self.alpha)


def _log_wealth(ledger: Ledger, record: BetRecord) -> float:
    """Return the log wealth to expect on a record, of events or of attacks, which learn more."""
    events, soft = ledger.growth(record)
    return max(events, soft / LEARNING_FACTOR)


def wealth_for(alpha: float) -> float:
    """Return the expected log wealth at which 19 of 20 audits reach ``1 / alpha``."""
    return -math.log(alpha) + LEARNING_COST + 2.0 * math.sqrt(-2 * math.log(alpha))


@lru_cache(maxsize=16)
def _ledger_by_noise(guarantee: Guarantee) -> Ledger:
    """Return a ledger whose rungs are a claim's losses with noise divided by `NOISE`, cached."""
    return Ledger(guarantee, shares=NOISE**guarantee.power)


def errors_by_noise(record: BetRecord, guarantee: Guarantee) -> Floats:
    """Return the standard errors by which each rung of `_ledger_by_noise` is refuted, falling."""
    events, soft = _ledger_by_noise(guarantee).growth_by_rung(record)
    clear = np.sqrt(2 * np.maximum(events, soft / LEARNING_FACTOR))
    falling: Floats = np.minimum.accumulate(clear)
    return falling


def detection_limit(record: BetRecord, bets: PlannedBets, places: float) -> float:
    """Return the smallest loss on a pair of inputs that bets detect, in the claim's parameter.

    `places` places of an output share the loss. Infinite if no loss would be detected.
    """
    guarantee, least = bets.guarantee, 0.0
    if not guarantee.claimed or (places > 1 and guarantee.eps is not None):
        least = smallest_event(bets, places)
    if not guarantee.claimed or not record.joint:
        return least or math.inf
    clear = errors_by_noise(record, guarantee)
    steep = min(STEEP_ERRORS, float(clear[0]))
    if steep <= CLEAR_ERRORS + 1:
        return math.inf
    near, far = np.interp([-CLEAR_ERRORS, -steep], -clear, NOISE)
    error = (near - far) / (steep - CLEAR_ERRORS)
    seems = near + CLEAR_ERRORS * error
    refuted = seems - error * math.sqrt(2 * wealth_for(bets.alpha) * record.pairs / bets.runs)
    if refuted <= 0:
        return math.inf
    if any(order > LOW_ORDER for order, _ in guarantee.divergences):
        # A large moment comes of outputs so rare that a smaller loss says little of how they show.
        least = _smallest_gaussian(guarantee, math.floor(math.log(bets.runs, 1.25)), bets.alpha)
    # Of rare outputs bets see too few, and with less noise as small a part of the loss.
    hidden = max(smooth_loss(record, guarantee) / guarantee.with_noise_over(seems), 1.0)
    return max(least, guarantee.with_noise_over(hidden * seems / refuted))


@lru_cache(maxsize=64)
def _smallest_gaussian(guarantee: Guarantee, power: int, alpha: float) -> float:
    """Return the smallest loss of Gaussian noise that bets on divergences detect; else infinity.

    In the claim's parameter, for ``1.25**power`` pairs of independent outputs.
    """
    runs, ledger = 1.25**power, ledger_of(guarantee)
    needed = min(math.sqrt(2 * bound / order) for order, bound in guarantee.divergences)
    inside = np.linspace(0, 1, GAUSSIAN_BINS - 1)
    tail = -float(ndtri(min(10 / runs, 0.1)))

    def is_detected(less: float) -> bool:
        ends = (inside * (2 * tail + less * needed) - tail)[:, None] - [less * needed, 0.0]
        p, q = np.diff(ndtr(ends), axis=0, prepend=0.0, append=1.0).T
        return _log_wealth(ledger, BetRecord([runs * np.outer(p, q)])) >= wealth_for(alpha)

    less = smallest(is_detected, 1.0, 2.0, LEAST_NOISE, relative=2e-2)
    return guarantee.with_noise_over(less)


def smallest_event(bets: PlannedBets, places: float = 1.0) -> float:
    """Return the smallest loss that bets detect by one event, in the claim's parameter.

    Infinite if none. `places` places of an output share the loss evenly; each points to the
    likelier input there with probability one half, and the event is a count of such places.
    """
    guarantee, places = bets.guarantee, math.ceil(places)
    fewest = np.arange(0, places + 1, places // 48 + 1)
    unknown = PARAMETERS_PER_PLACE * places * (places - 1) / (LEARNED_SHARE * bets.runs)

    def is_detected(loss: float) -> bool:
        # Errors of what is learned add noise: the loss counts for less, the more is to be learned.
        loss /= math.sqrt(1 + 2 * unknown / loss**2)
        beyond = (bdtrc(fewest - 1.0, places, 0.5 * math.exp(-by)) for by in (0, loss / places))
        return bets.detect(np.outer(*(-np.diff(side, append=0.0) for side in beyond)))

    loss = smallest_loss(is_detected, guarantee.eps or 0.0)
    if guarantee.eps is not None or math.isinf(loss):
        return loss
    return guarantee.shown_by(0.5, 0.5 * math.exp(-loss))


def largest_loss(record: BetRecord, guarantee: Guarantee) -> float:
    """Return the largest parameter that the record does not rule out (two standard errors).

    0.0 if nothing was learned yet. Leaks too rare to be seen are left out: see `rarest_leak`.
    """
    return max(shown_by_events(record, guarantee), smooth_loss(record, guarantee, ERRORS))


def smooth_loss(record: BetRecord, guarantee: Guarantee, errors: float = 0.0) -> float:
    """Return the loss that the fitted `Shape` shows, in the claim's parameter.

    `errors` raises the odds of (ε, δ) by so many standard errors; if above 0, it raises the loss of
    divergences by a fixed margin. 0.0 without a record, for ε alone, or below `SMOOTH_BINS` bins.
    """
    if not record.joint or not (guarantee.divergences or guarantee.delta):
        return 0.0
    shape = Shape(record.joint[0])
    largest = 0.0
    for order, _ in guarantee.divergences:
        # Outputs that are too rare to be seen yet may make up most of a moment of large order.
        seen = max(shape.divergence(order), order * shape.divergence(1.0))
        distance = seen * (2 - shape.certain) ** 2 if errors else seen
        largest = max(largest, guarantee.shown_by_divergence(order, distance))
    if guarantee.delta > 0 and len(record.joint[0]) >= SMOOTH_BINS:
        for turned in (False, True):
            p, q = shape.half_lines(errors, turned=turned)
            some = (p > guarantee.delta) & (q < 0.9)  # the other tail is that of the other side
            shown = guarantee.shown_by(p[some], q[some])
            largest = max(largest, float(np.max(shown, initial=0.0)))
    return largest


def shown_by_events(record: BetRecord, guarantee: Guarantee) -> float:
    """Return the largest parameter that an event shows, raised by two standard errors.

    0.0 without events.
    """
    counts = event_tables(record.joint)
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


def can_detect_half_noise(bets: PlannedBets) -> bool:
    """Return whether bets would detect a mechanism with half the noise that its claim needs."""
    return bets.guarantee.noise_below(smallest_event(bets)) <= HALF_NOISE


def are_distinguishable(record: BetRecord) -> bool:
    """Return whether outputs separate two inputs by more than chance explains."""
    return standard_errors_against(record, NO_LOSS) > CLEAR_ERRORS + 1


def rarest_leak(bets: PlannedBets) -> float:
    """Return the smallest probability of an event on one input only that bets detect.

    With 95 % power, by the best stake, which has to win ``1 / alpha`` and the losses while bets
    learn. 1.0 if no such event would be detected.
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


def count_equal_losses(places: Iterable[tuple[Ints, Ints]], paired: bool) -> float:
    """Return the number of places with equal losses that are as hard to find as the given ones.

    Losses l of several places are as hard to find as if ``(sum of l)**2 / (sum of l**2)`` places
    shared them evenly, since their errors add up with the root of their number. If no place loses
    anything for sure, the number of places: the worst case.

    Each place has labels from 0 of the outputs on D, and on D'. If `paired`, outputs i on D and on
    D' share their random numbers.
    """
    squares, errors = np.array([_distance_at_place(*labels, paired) for labels in places]).T
    count = len(squares)
    clear = squares > PLACE_ERRORS**2 * errors
    if not clear.any():
        return float(count)
    others = float(squares[~clear].sum())
    noise = math.sqrt(2 * float((errors[~clear] ** 2).sum()))
    others *= others > MIN_JOINT_ERRORS * noise
    total = np.sqrt(squares[clear]).sum() + math.sqrt((~clear).sum() * others)
    return float(np.clip(total**2 / (squares[clear].sum() + others), 1, count))


def _distance_at_place(labels1: Ints, labels2: Ints, paired: bool) -> tuple[float, float]:
    """Return the chi-square distance at a place minus the part of chance, and the part of chance.

    For small losses the distance is their square, in nats.
    """
    n = len(labels1)
    width = int(max(labels1.max(), labels2.max())) + 1
    c1, c2 = np.bincount(labels1, minlength=width), np.bincount(labels2, minlength=width)
    chance: Floats
    if paired:  # pairs with the same label say nothing
        chance = c1 + c2 - 2.0 * np.bincount(labels1[labels1 == labels2], minlength=width)
    else:
        chance = c1 * (1 - c1 / n) + c2 * (1 - c2 / n)
    often = (c1 + c2) / (2 * n) >= MIN_OFTEN
    c1, c2, chance = c1[often], c2[often], chance[often]
    size = n * (c1 + c2) / 2
    by_chance = float((chance / size).sum())
    return float(((c1 - c2) ** 2 / size).sum()) - by_chance, by_chance + 2 / n**2
