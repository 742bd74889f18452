"""Power: which losses the bets so far would have caught, and which they do not rule out.

One formula serves all: what the best bet would have grown to on as many pairs of outputs, were the
noise so many times smaller. The record of a pair is then changed in two steps. With noise t times
smaller, the log odds of the bins are t times as large: for two bins that is exact, and for noise
that is added it is the first order. And outputs on both inputs go together as far as they do now,
between independent and as far as can be (Fréchet).

All of this is approximate, and for information: it decides when to stop looking for a violation,
and never that there is one.

Source: Fréchet, "Sur les tableaux de corrélation dont les marges sont données", Annales de
l'Université de Lyon 1951.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_dp.arrays import Floats
from pytest_dp.bisection import smallest
from pytest_dp.privacy import Guarantee
from pytest_dp.statistics.event_bets import all_contingencies
from pytest_dp.statistics.ledger import Ledger, Record
from pytest_dp.statistics.regression import increasing, logit
from pytest_dp.statistics.replay import LEARNING_FACTOR, wealth_for

MAX_SCALE = 1e4
"""How many times too small noise is looked for; beyond, nothing would have been caught."""
LARGEST_ODDS = 50.0
"""Limit to log odds, in nats, so that nothing overflows."""
ERRORS = 2.5
"""Standard errors by which a mechanism may lose more than its outputs show. Larger: less is ruled
out; smaller: chance rules it out."""
MAX_PAIRS_ASKED = 3
"""Pairs of inputs whose power is computed: those that lose most. More take time."""


@dataclass(frozen=True, slots=True)
class Power:
    """What an audit would have caught with 95 % power, and what it does not rule out."""

    detects_from: float
    """The smallest true parameter that would have been caught; infinite if nothing would."""
    not_ruled_out: float
    """The largest parameter that the mechanism may have."""
    noise_caught: float
    """How many times smaller noise than the claim needs would have been caught."""


def power_of(records: Sequence[Record], ledger: Ledger) -> Power:
    """Return the power of the bets on some pairs of inputs, by what is recorded of each.

    The pairs that lose most now lose most with less noise too, so that only these are asked.
    """
    guarantee = ledger.guarantee
    losses = [largest_loss(record, guarantee) for record in records]
    now = max(losses, default=0.0)
    order = np.argsort(losses)[::-1][:MAX_PAIRS_ASKED].tolist()
    caught = min((_detects_from(records[k], now, ledger) for k in order), default=math.inf)
    detects = max(caught, now)
    return Power(detects, now, guarantee.noise_below(detects) if detects < math.inf else math.inf)


def _detects_from(record: Record, now: float, ledger: Ledger) -> float:
    """Return the parameter of the least noise reduction on a pair that would have been caught."""
    needed = wealth_for(math.exp(-ledger.enough))

    def is_caught(times: float) -> bool:
        events, soft = ledger.growth(with_less_noise(record, times))
        return max(events, soft / LEARNING_FACTOR) >= needed

    if is_caught(1.0):
        return now
    times = smallest(is_caught, 1.0, 2.0, MAX_SCALE, relative=1e-2)
    guarantee = ledger.guarantee
    return now * times**guarantee.power


def with_less_noise(record: Record, times: float) -> Record:
    """Return the record to expect of as many pairs of outputs with so much less noise."""
    joint = [tilt(table, times) for table in record.joint]
    scores = None if record.scores is None else times * record.scores
    return Record(joint, scores)


def tilt(joint: Floats, times: float) -> Floats:
    """Return the counts with `times` the log odds of each bin, and the coupling of now."""
    on_d, on_d2 = joint.sum(1), joint.sum(0)
    pairs = joint.sum()
    if not pairs:
        return joint
    share = increasing((on_d + 0.5) / (on_d + on_d2 + 1), on_d + on_d2 + 1e-9)
    odds = np.clip(times * logit(share), -LARGEST_ODDS, LARGEST_ODDS)
    middle = (on_d + on_d2) * np.sqrt(share * (1 - share))
    sides = (middle * np.exp(side * odds / 2) for side in (1, -1))
    first, second = (np.concatenate([[0.0], np.cumsum(side)]) / side.sum() for side in sides)
    independent = np.outer(first, second)
    together = np.minimum(first[:, None], second)
    cumulative = independent + _coupling(joint) * (together - independent)
    shares = np.maximum(np.diff(np.diff(cumulative, axis=0), axis=1), 0.0)
    counts: Floats = pairs * shares
    return counts


def _coupling(joint: Floats) -> float:
    """Return how far outputs on both inputs go together: 0 if independent, 1 as far as can be."""
    total = joint.sum()
    both = joint.cumsum(0).cumsum(1).diagonal() / total
    first, second = (np.cumsum(joint.sum(axis)) / total for axis in (1, 0))
    room = (np.minimum(first, second) - first * second).sum()
    return float(np.clip((both - first * second).sum() / room, 0, 1)) if room > 0 else 0.0


def largest_loss(record: Record, guarantee: Guarantee) -> float:
    """Return the largest parameter that the events of a record do not rule out.

    Of the event that shows most for sure, with `ERRORS` standard errors of its log ratio on top.
    """
    counts = all_contingencies(record.joint)
    if not len(counts):
        return math.inf
    both, only1, only2, neither = counts.T
    runs = both + only1 + only2 + neither + 1
    first, second = both + only1 + 0.5, both + only2 + 0.5
    # Pairs of outputs that are both in the event say nothing about its loss.
    error = np.sqrt((only1 + only2 + 1) / (first * second))
    sure = np.log(first / second) - ERRORS * error
    k = int(np.argmax(sure))
    room = math.exp(ERRORS * error[k] / 2)
    p, q = float(first[k] / runs[k]), float(second[k] / runs[k])
    likely = min(p * room, 1 - (1 - p) / room)
    rare = max(q / room, 1 - (1 - q) * room)
    return guarantee.shown_by(likely, rare)
