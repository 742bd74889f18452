"""Tests of what events tell of two inputs: of any difference, and of one that a claim allows.

All of this is approximate, and for information only, as in `power`.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from pytest_dp.basics.arrays import Floats
from pytest_dp.privacy import Guarantee

SEEN = 0.5
"""Share of a difference that events are expected to show. Larger: audits of few samples are called
blind; smaller: they get a grade though nothing was told apart."""


def any_event_differs(counts: Floats) -> bool:
    """Return whether any event differs between the two inputs by more than chance explains.

    `counts` has a row for each event, as in `event_bets.contingency`: one-sided, so both directions
    of an event are two.
    """
    only1, only2 = counts[:, 1], counts[:, 2]
    errors = (only1 - only2) / np.sqrt(only1 + only2 + 1)
    return bool((errors > _errors_by_chance(len(counts))).any())


def _errors_by_chance(events: int) -> float:
    """Return the standard errors that one of so many events exceeds by chance, 1 time in 100."""
    return float(-ndtri(0.01 / max(events, 1)))


def would_show(guarantee: Guarantee, pairs: float, events: int, used: float = SEEN) -> bool:
    """Return whether bets would detect a mechanism that uses this share of its claim.

    By an event that is as likely as not on one input, among so many, in so many pairs of
    independent outputs. Where a claim allows no difference at all, none would show.
    """
    rarer = max(0.0, *(math.exp(-eps) * (0.5 - delta) for eps, delta in guarantee.hockey_sticks))
    disagreeing = 0.5 * (1 - rarer) + rarer * 0.5
    errors = used * (0.5 - rarer) * math.sqrt(pairs / disagreeing)
    return errors > _errors_by_chance(events) - float(ndtri(0.05))
