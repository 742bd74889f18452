"""What a sequential audit would have caught so far, and whether it knows enough to stop.

Everything here looks at records of bets that were made, and is approximate: it decides when to stop
looking for a violation, and what is said about a claim that stands; never that it is broken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from pytest_dp.arrays import Floats, Ints
from pytest_dp.auditors.pair_state import PairState
from pytest_dp.auditors.paired_outputs import first_pairs
from pytest_dp.evidence.betting import edges
from pytest_dp.evidence.event_bets import all_contingencies
from pytest_dp.evidence.losing_now import may_lose, would_lose
from pytest_dp.evidence.replay import PlannedBets, shapes_of, smallest_scale, wealth_for
from pytest_dp.evidence.resolution import (
    DELTAS,
    OTHER_PAIRS_SHARE,
    SEEN,
    clearest_event,
    rarest_leak,
    smallest_event,
    told_apart,
    would_show,
)
from pytest_dp.evidence.shared_loss import sharing, smallest_shared_loss
from pytest_dp.limits import (
    CHECK_GROWTH,
    CLEAR_ERRORS,
    FEW,
    MILLION,
    NO_LOSS,
    SHOWN_ALPHA,
    THOUSAND,
)
from pytest_dp.outputs.leaves import ABSENT, NUMBER
from pytest_dp.outputs.rounding import comes_alone
from pytest_dp.outputs.table import Table
from pytest_dp.privacy import Guarantee

MIN_AT_MARGIN = 8_000
"""Pairs of outputs from which an audit may stop at its margin. Derived: a value that is released
once in a thousand runs comes a `FEW` times in so many, with a probability of 99 %.
"""


@dataclass(frozen=True, slots=True)
class Caught:
    """What an audit would have caught, and what it knows of the mechanism as it is (approximate).

    In the claim's parameter.
    """

    by_bets: float
    """The smallest true loss that would have been caught; infinite if nothing would have been."""
    if_kept: float
    """The same, were the claim known to be kept now: what effort goes by where the claim has a
    delta, beside which a loss is seen late."""
    now: float
    """The largest that the mechanism may have now."""
    rarest: float
    """The smallest probability of an event that comes on one input only, and would be seen."""

    @property
    def at(self) -> float:
        """The smallest loss of which a pass may say that it would have been caught."""
        return max(self.by_bets, self.now)

    def sees(self, guarantee: Guarantee) -> bool:
        """Whether leaks would be seen that are a few times as likely as a claim's delta."""
        return not guarantee.delta or self.rarest <= DELTAS * guarantee.delta


def would_catch(
    states: list[PairState], available: int, guarantee: Guarantee, alpha: float
) -> Caught:
    """What would have been caught, with 95 % power.

    `states` are the pairs that were looked at, of the `available` ones that the claim gives:
    proposed ones take a share that is bounded, and most of them are seen too little to say
    anything. `alpha` is what bets may spend.
    """
    bets = PlannedBets(guarantee, _pairs_drawn(states, available), alpha)
    losses = [may_lose(state.record, guarantee) for state in states]
    order: list[int] = np.argsort(losses, kind="stable")[::-1][:FEW].tolist()
    now: float = losses[order[0]]
    rarest = rarest_leak(bets)
    if now >= guarantee.claimed and not any(
        shape.certain for state in states for shape in shapes_of(state.record)
    ):
        return Caught(math.inf, math.inf, now, rarest)  # too few outputs to say anything
    # The mechanism loses most on the pair that loses most, whichever one it would be caught by.
    then = [
        np.array(_smallest_caught(states[k], bets, losses[k]))
        * (max(1.0, now / max(losses[k], NO_LOSS)) if losses[k] < now < math.inf else 1.0)
        for k in order
    ]
    by_bets, if_kept = np.min(then, axis=0).tolist()
    return Caught(by_bets, if_kept, now, rarest)


def could_see_delta(
    states: list[PairState], available: int, guarantee: Guarantee, alpha: float, times: float
) -> bool:
    """Whether so many times the runs would see leaks that are a few times as likely as delta."""
    bets = PlannedBets(guarantee, times * _pairs_drawn(states, available), alpha)
    return rarest_leak(bets) <= DELTAS * guarantee.delta


def _smallest_caught(state: PairState, bets: PlannedBets, now: float) -> tuple[float, float]:
    """The smallest loss on a pair of inputs that would have been caught, as it may lose `now`.

    And the same were the claim kept now.

    The largest of three: what a single event shows, if it is as likely as the clearest one; what
    outputs show whose noise has this shape; and what a loss shows that as many places share.
    """
    guarantee, bets = bets.guarantee, replace(bets, apart=state.record.apart)
    shapes = shapes_of(state.record)
    times = smallest_scale(shapes, bets)
    if math.isinf(times):
        return (_least_caught(state, bets),) * 2
    # where divergences are bet on, no single event is needed
    least = 0.0 if guarantee.divergences else _least_caught(state, bets)
    then = would_lose(state.record, shapes, guarantee, times)
    kept = then * min(guarantee.claimed / max(now, NO_LOSS), 1.0)
    return max(least, then), max(least, kept)


def _least_caught(state: PairState, bets: PlannedBets) -> float:
    """What would have been caught whatever the noise: of one event, and of as many places."""
    p1, shared = clearest_event(state.record)
    least = smallest_event(p1, bets, shared)
    if bets.guarantee.eps is None:
        return least
    return max(least, smallest_shared_loss(_places_sharing(state), bets, shared))


def tells_apart(states: list[PairState]) -> bool:
    """Whether any event that was tried tells the two inputs of a pair apart, beyond chance."""
    return told_apart(_events_of(states))


def should_tell(states: list[PairState], guarantee: Guarantee, used: float = SEEN) -> bool:
    """Whether events would tell inputs apart, if the mechanism used this share of its claim."""
    drawn = max(
        (float(joint.sum()) for state in states for joint in state.record.joint), default=0.0
    )
    return would_show(guarantee, drawn, len(_events_of(states)), used)


def _events_of(states: list[PairState]) -> Floats:
    return np.concatenate([all_contingencies(state.record.joint) for state in states])


def in_doubt(
    states: list[PairState],
    caught: float,
    left: float,
    guarantee: Guarantee,
    alpha: float,
    margin: float,
    available: int,
) -> list[PairState]:
    """What has to be looked into before an audit may stop at its margin, the most doubtful first.

    That is, once a true loss of `caught`, at most `margin` times the claim, would have been caught:
    pairs that have not been looked at well enough to be told from one at the margin, and those that
    look as if they could be won with the `left` pairs of outputs that there are. Of the pairs that
    a search proposed, beyond the `available` ones of the claim, only the latter.
    """
    won = math.sqrt(2 * wealth_for(alpha))  # standard errors of a gain that refutes the claim
    # What a pair with the loss that is caught gains, and in proportion one that is at the margin.
    enough = (
        won
        / math.sqrt(_pairs_drawn(states, available))
        * (margin - 1)
        / (guarantee.noise_below(caught) - 1)
    )
    doubts: list[tuple[float, PairState]] = []
    for state in states:
        # Standard errors grow with the root of the samples; chance may have taken one of them away.
        suspect = max(by_chance(state), won * math.sqrt(state.drawn / (state.drawn + left)) - 1)
        proposed = state.number >= available
        unsure = state.hope > enough and not proposed
        suspect = max(suspect, CLEAR_ERRORS if proposed else 0.0)
        suspicion = suspicion_of(state, guarantee)
        if unsure or suspicion > suspect or _may_release(state):
            doubts.append((suspicion, state))
    return [state for _, state in sorted(doubts, key=lambda doubt: -doubt[0])]


def by_chance(state: PairState) -> float:
    """Standard errors of a gain that is looked into: chance shows as much in one of 20 audits.

    Of all looks together, as alpha is spent: the k-th gets a share of 1 / (k (k + 1)), and of it
    each binning as much, whose events are all alike.
    """
    looks = 1 + max(math.log(max(state.drawn, 1) / MIN_AT_MARGIN, CHECK_GROWTH), 0.0)
    share = SHOWN_ALPHA / (looks * (looks + 1))
    return float(-ndtri(share / max(len(state.record.joint), 1)))


def _may_release(state: PairState) -> bool:
    """Whether some value that else never recurs came repeatedly on one input, never on the other.

    A value released once in a thousand runs says next to nothing yet, and everything later.
    """
    if state.outputs.extract is not None:
        return False
    table, on_d = state.outputs.table()
    part, sides = first_pairs(table, on_d, MILLION // len(table.places or [0]))
    return any(comes_alone(*part.leaf(place), sides, FEW) for place in table.places)


def runs_to_margin(available: int, guarantee: Guarantee, alpha: float, margin: float) -> int:
    """Roughly how many runs reach a margin, by powers of two; 0 if none do."""
    for runs in 2 ** np.arange(6, 25):
        caught = smallest_event(0.5, PlannedBets(guarantee, float(runs), alpha))
        if guarantee.noise_below(caught) <= margin:
            return int(2 * runs * (1 + OTHER_PAIRS_SHARE * (available - 1)))
    return 0


def _pairs_drawn(states: list[PairState], available: int) -> float:
    """Pairs of outputs that the worst pair of inputs would have been given."""
    return sum(state.drawn for state in states if state.number < available) / (
        1 + OTHER_PAIRS_SHARE * (available - 1)
    )


def suspicion_of(state: PairState, guarantee: Guarantee) -> float:
    """Standard errors by which the best bet gained."""
    edge, runs = edges(state.record, guarantee)
    return float(np.max(edge * np.sqrt(runs))) if len(edge) else 0.0


def _places_sharing(state: PairState) -> float:
    """As how many places of an output share what is lost."""
    table, on_d = state.outputs.table()
    places = list(table.places)
    if len(places) < 2:
        return 1.0
    enough = max(MILLION // len(places), THOUSAND)
    table, on_d = first_pairs(table, on_d, enough)
    labels = (_labels(place, table) for place in places)
    return sharing(((label[on_d], label[~on_d]) for label in labels), state.coupled)


def _labels(place: str, table: Table) -> Ints:
    """Numbers at one place by whether they are below, at or above their median; categories."""
    numbers, codes = table.leaf(place)
    is_number = (codes == NUMBER) & ~np.isnan(numbers)
    labels: Ints = 3 * (np.minimum(codes, 30) - ABSENT)
    if is_number.any():
        middle = np.median(numbers[is_number])
        labels[is_number] += np.sign(numbers[is_number] - middle).astype(np.int64) + 1
    return labels
