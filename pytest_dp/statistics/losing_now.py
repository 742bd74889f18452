"""Upper estimate of the privacy loss that the samples do not rule out, in the claim's parameter.

Under a delta, the loss is that of the whole profile: of the event for which ``ln((p - delta) / q)``
is largest, which is often rarer than any event that tells inputs apart for sure. Outputs are
ordered by their learned score, and the log odds of D are taken to be a smooth function of how far
out an output is: a line with bends, in units in which Gaussian noise makes it straight. Room for
chance is left around it. Where an event is far likelier on one input than that line explains, it
counts by itself.

All of this is approximate, and for information only, as in `resolution`. What is too rare to be
seen at all is not in it: that is a figure of its own.

Source: Balle, Wang, "Improving the Gaussian Mechanism for Differential Privacy", ICML 2018 (the
profile as the probabilities of one event, which the loss cuts out).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import betainc, log_ndtr, ndtr

from pytest_dp.arrays import Floats
from pytest_dp.limits import EQUAL, MOSTLY, RARELY, SEVERAL, SHOWN_ALPHA
from pytest_dp.privacy import Guarantee
from pytest_dp.statistics.event_bets import all_contingencies
from pytest_dp.statistics.ledger import Record
from pytest_dp.statistics.replay import Shape
from pytest_dp.statistics.resolution import shown_by_events

ERRORS = 2.0
"""Standard errors by which a mechanism may lose more than it looks. Derived: one of 40 loses more.
"""


def may_lose(record: Record, guarantee: Guarantee) -> float:
    """The largest parameter that a mechanism may have now (approximate).

    With room for chance. 0.0 if nothing was learned yet; infinite where a claim with a delta may be
    broken beside any eps.
    """
    largest = _largest_shown(record, guarantee)
    if not _needs_shape(record, guarantee):
        return largest
    shape = Shape(record.joint[0])
    both = (shape.half_lines(ERRORS, turned=turned) for turned in (False, True))
    seen = (_proved_by_half_lines(*sides, guarantee) for sides in both)
    return max(largest, *seen, _by_themselves(record, guarantee, shape))


def would_lose(
    record: Record, shapes: Sequence[Shape], guarantee: Guarantee, times: float
) -> float:
    """The parameter with noise so many times smaller (approximate), as far as events show it."""
    if guarantee.largest_ratio is not None:
        return max(_largest_loss(*shape.scaled(times)) for shape in shapes)
    largest = _largest_shown(record, guarantee) * times**guarantee.power
    if not guarantee.claimed:
        largest = max(largest, guarantee.with_noise_over(times))
    if not _needs_shape(record, guarantee):
        return largest
    far, near = Shape(record.joint[0]).scaled(times)
    both = (ndtr(far), ndtr(near)), (ndtr(-near), ndtr(-far))
    return max(largest, *(_proved_by_half_lines(*sides, guarantee) for sides in both))


def _largest_shown(record: Record, guarantee: Guarantee) -> float:
    """The largest parameter that events, or divergences, may show in fact; with room for luck."""
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
    """Return whether rarer events than the most distinguishing ones prove the claim's parameter."""
    return guarantee.delta > 0 and bool(record.joint) and len(record.joint[0]) >= SEVERAL


def _largest_loss(far: Floats, near: Floats) -> float:
    """The largest loss, in nats, of half-lines that are not too rare to be seen."""
    likelier, rarer = np.concatenate([far, -near]), np.concatenate([near, -far])
    often = ndtr(rarer) >= RARELY
    return float(np.max(log_ndtr(likelier[often]) - log_ndtr(rarer[often]), initial=0.0))


def _proved_by_half_lines(p: Floats, q: Floats, guarantee: Guarantee) -> float:
    some = (p > guarantee.delta) & (q < MOSTLY)  # the other tail is that of the other side
    return float(np.max(guarantee.shown_by(p[some], q[some]), initial=0.0))


def _by_themselves(record: Record, guarantee: Guarantee, shape: Shape) -> float:
    """Return what events prove that are likelier on one input than equally rare half-lines.

    With room for chance, if chance does not explain them; 0.0 if there are none.
    """
    both, only1, only2, neither = all_contingencies(record.joint).T
    runs = both + only1 + only2 + neither
    c1, c2 = both + only1, both + only2
    c1, c2 = np.maximum(c1, c2), np.minimum(c1, c2)
    expected = np.zeros(len(c1))
    for turned in (False, True):
        p, q = shape.half_lines(0.0, turned=turned)
        rarity = np.interp((c1 + c2) / (2 * runs), ((p + q) / 2)[::-1], (p / (p + q))[::-1])
        expected = np.maximum(expected, rarity)
    luck = betainc(np.maximum(c1, 0.5), c2 + 1, np.minimum(expected, 1 - EQUAL))
    odd = (c1 > 0) & (luck < SHOWN_ALPHA)
    likely = np.minimum((c1 + ERRORS * np.sqrt(c1)) / runs, 1.0)
    rare = np.maximum(c2 - ERRORS * np.sqrt(c2), 0.0) / runs
    shown = guarantee.shown_by(likely[odd], rare[odd])
    return float(np.max(shown, initial=0.0))
