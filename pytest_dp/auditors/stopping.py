"""The losses that a sequential audit would have caught so far, which decide when it stops.

All is approximate, from records of past bets: it decides when to stop looking for a violation, and
what is said about a claim that stands; never that the claim is broken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_dp.auditors.pairs_in_play import ClaimPairs
from pytest_dp.basics.arrays import Ints
from pytest_dp.betting.betting_loop import PairState
from pytest_dp.outputs.leaves import ABSENT, NUMBER
from pytest_dp.outputs.paired_outputs import first_pairs
from pytest_dp.outputs.rounding import has_one_sided_value
from pytest_dp.outputs.table import Table
from pytest_dp.privacy import Guarantee
from pytest_dp.report import numbers
from pytest_dp.statistics.power import (
    DELTAS,
    PlannedBets,
    count_equal_losses,
    detection_limit,
    largest_loss,
    rarest_leak,
    smallest_event,
)

MIN_RARE = 3
"""Outputs that show a rare leak. Fewer: chance looks like a leak."""
MAX_RARE_SHARE = 0.02
"""Share of the outputs in which a part counts as rare: bets see parts that come more often."""
MAX_NUMBERS = 1_000_000
"""Numbers that are worked through at a time. More take memory; fewer look at fewer outputs."""
MIN_LOSS = 1e-3
"""Loss in nats that is divided by, at least."""
MIN_OUTPUTS = 1_000
"""Outputs that are looked at for rare values, at least. Fewer miss them; more take longer."""

MIN_AT_MARGIN = 8_000
"""Pairs of outputs before an audit stops at its margin. Derived: a value in 1 of 1,000 runs comes
`MIN_RARE` times in as many, with a probability of 99 %."""

OTHER_PAIRS_SHARE = 0.35
"""Samples of every other pair, as a share of those of the best: an estimate."""

FAR_BELOW = 1 / 3
"""Share of the claim, in noise, below which the strongest attack shows no detection limit. Larger:
correct mechanisms with twice the noise are weak; smaller: unseen leaks pass as strong."""


@dataclass(frozen=True, slots=True)
class DetectionPower:
    """Losses that an audit would have caught, or does not rule out, in the claim's parameter."""

    by_bets: float
    """The smallest true loss that would have been caught; infinite if nothing would have been."""
    now: float
    """The largest loss that is not ruled out."""
    rarest: float
    """The smallest probability of an event that comes on one input only, and would be seen."""

    @property
    def at(self) -> float:
        """The detection limit of a pass: the larger of `by_bets` and `now`."""
        return max(self.by_bets, self.now)

    def if_kept(self, guarantee: Guarantee) -> float:
        """Return the smallest loss that would have been caught, were the claim known to be kept.

        Audits of claims with a delta end by it: beside a delta, a loss is ruled out late.
        """
        return self.by_bets * min(guarantee.claimed / max(self.now, MIN_LOSS), 1.0)

    def is_far_below(self, guarantee: Guarantee) -> bool:
        """Return whether no attack shows a third of the claim: the detection limit is a guess."""
        return guarantee.noise_below(self.now) < FAR_BELOW

    def sees_delta(self, guarantee: Guarantee) -> bool:
        """Return whether leaks ten times as likely as delta would be seen; True without delta."""
        return not guarantee.delta or self.rarest <= DELTAS * guarantee.delta


def note_of_far_below(guarantee: Guarantee, loss: float, why: str = "") -> str:
    """Return a note that attacks show at most `loss`, far below the claim; `why` is the cause."""
    unknown = (
        "there is more noise than needed, or the audit overlooks the feature that leaks (features=)"
    )
    claimed = numbers.format_claimed(guarantee.claimed)
    return f"the strongest attack shows a loss of at most {loss:.2g} of {claimed}: {why or unknown}"


def find_detection_power(states: Sequence[PairState], bets: PlannedBets) -> DetectionPower:
    """Return the losses that the planned bets would have caught with 95 % power on some pairs.

    Pairs without a detector are left out; if none has one, nothing would have been caught.
    """
    guarantee = bets.guarantee
    states = [state for state in states if state.binnings]
    losses = [largest_loss(state.record, guarantee) for state in states]
    order: list[int] = np.argsort(losses, kind="stable")[::-1][:MIN_RARE].tolist()
    now: float = losses[order[0]] if order else 0.0
    rarest = rarest_leak(bets)
    if not order:
        return DetectionPower(math.inf, now, rarest)
    if guarantee.noise_below(now) < FAR_BELOW:
        return DetectionPower(smallest_event(bets), now, rarest)
    # The mechanism loses most on the pair that loses most, whichever one it is caught by.
    limits = [
        _limit_on(states[k], bets)
        * (max(1.0, now / max(losses[k], MIN_LOSS)) if losses[k] < now < math.inf else 1.0)
        for k in order
    ]
    return DetectionPower(min(limits), now, rarest)


def _limit_on(state: PairState, bets: PlannedBets) -> float:
    """Return the smallest loss that bets on one pair would have caught."""
    places = _places_sharing(state) if bets.guarantee.eps is not None else 1.0
    return detection_limit(state.record, bets, places)


def outputs_on_worst_pair(pairs: ClaimPairs) -> float:
    """Return an estimate of the pairs of outputs on the pair of inputs that loses most."""
    drawn = sum(state.drawn for state in pairs.states[: pairs.claimed])
    return drawn / (1 + OTHER_PAIRS_SHARE * (pairs.claimed - 1))


def may_release(state: PairState, guarantee: Guarantee) -> bool:
    """Return whether a pair of inputs may have a rare leak, which bets see much later.

    Such a leak is a value that came several times on one input only while others never recur, or a
    part of outputs, such as a key, that came on one input only. False for outputs that are reduced
    to features.
    """
    if state.outputs.extract is not None:
        return False
    table, on_d = state.outputs.table()
    part, sides = first_pairs(table, on_d, MAX_NUMBERS // len(table.places or [0]))
    if any(has_one_sided_value(*part.leaf(place), sides, MIN_RARE) for place in table.places):
        return True
    if guarantee.eps is None:
        return False
    pairs, places = len(sides) / 2, list(table.places)
    # If the claim is kept, one input has so many of all by chance at one of 20 looks.
    enough = math.log(20 * max(len(places), 1)) / math.log1p(math.exp(-guarantee.eps))
    enough += 2 * guarantee.delta * pairs
    for place in places:
        present = part.leaf(place)[1] != ABSENT
        c1, c2 = int(np.sum(present & sides)), int(np.sum(present & ~sides))
        if min(c1, c2) == 0 and enough <= max(c1, c2) < MAX_RARE_SHARE * pairs:
            return True
    return False


def _places_sharing(state: PairState) -> float:
    """Return how many places of an output each show an equal part of the loss, at least 1."""
    table, on_d = state.outputs.table()
    places = list(table.places)
    if len(places) < 2:
        return 1.0
    enough = max(MAX_NUMBERS // len(places), MIN_OUTPUTS)
    table, on_d = first_pairs(table, on_d, enough)
    labels = (_labels(place, table) for place in places)
    return count_equal_losses(((label[on_d], label[~on_d]) for label in labels), state.coupled)


def _labels(place: str, table: Table) -> Ints:
    """Return a code for the value of each output at a place, shape (n,).

    Codes say whether a number is below, at or above the median, or which category a value is.
    """
    numbers, codes = table.leaf(place)
    is_number = (codes == NUMBER) & ~np.isnan(numbers)
    labels: Ints = 3 * (np.minimum(codes, 30) - ABSENT)
    if is_number.any():
        middle = np.median(numbers[is_number])
        labels[is_number] += np.sign(numbers[is_number] - middle).astype(np.int64) + 1
    return labels
