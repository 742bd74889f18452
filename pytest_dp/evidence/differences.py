"""Whether anything tells two inputs apart, beyond what chance shows in so many events.

Where nothing does, what bets would have caught is not known: it rests on events at which a leak
would show, and none was seen to say anything of the input. All of this is approximate, and for
information only.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from pytest_dp.arrays import Floats
from pytest_dp.limits import RARELY, SHOWN_ALPHA
from pytest_dp.privacy import Guarantee

SEEN = 0.5
"""Share of a difference that events may be expected to show, as they are seldom the best ones.
Larger: audits of few samples are called blind more often; smaller: they get a grade though nothing
was told apart. By hand."""
LITTLE = 0.1
"""Share of what a claim allows that is looked for before nothing is said to tell inputs apart.
Smaller: such audits take longer, by the square; larger: mechanisms with much more noise than they
need are called blind more often. By hand."""


def told_apart(counts: Floats) -> bool:
    """Whether any event tells two inputs apart, beyond chance.

    `counts` has a row for each event, as in `event_bets.contingency`: one-sided, so both directions
    of an event are two.
    """
    only1, only2 = counts[:, 1], counts[:, 2]
    errors = (only1 - only2) / np.sqrt(only1 + only2 + 1)
    return bool((errors > errors_of_chance(len(counts))).any())


def errors_of_chance(events: int) -> float:
    """Standard errors that one of so many events exceeds by chance, at most `BY_CHANCE` times."""
    return float(-ndtri(RARELY / max(events, 1)))


def would_show(guarantee: Guarantee, pairs: float, events: int, used: float = SEEN) -> bool:
    """Whether a mechanism that uses this share of its claim would be told apart (approximate).

    By an event that is as likely as not on one input, among so many, in so many pairs of
    independent outputs. Where a claim allows no difference at all, none would show.
    """
    rarer = max(0.0, *(math.exp(-eps) * (0.5 - delta) for eps, delta in guarantee.hockey_sticks))
    disagreeing = 0.5 * (1 - rarer) + rarer * 0.5
    errors = used * (0.5 - rarer) * math.sqrt(pairs / disagreeing)
    return errors > errors_of_chance(events) - float(ndtri(SHOWN_ALPHA))
