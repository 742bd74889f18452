"""Pictures of an audit, from what it has counted and kept anyway: nothing is run for them.

What takes longer than the rest, and needs no samples, is added by `completed` once somebody looks.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pytest_dp.auditors.held_out import Tested
from pytest_dp.basics.arrays import Floats
from pytest_dp.results.pictures import Interval, Pictures, Points, points, round_for_drawing
from pytest_dp.statistics.proofs import Bound


def attack_of(joint: Floats, sign: int) -> Points:
    """Error rates of every threshold of a score, from counts of pairs of bins as in a record."""
    above1, above2 = (
        np.concatenate([[0.0], np.cumsum(joint.sum(axis)[::-1])]) / joint.sum() for axis in (1, 0)
    )
    # Turned around, the attack points to D': what was missed is then a false alarm.
    rates = (above2, 1 - above1) if sign > 0 else (1 - above1, above2)
    return points(*rates)


def pictures_of(bound: Bound | None, tested: Tested | None, *, violated: bool) -> Pictures:
    """The event's error rates, and if it breaks the claim, the outputs that were counted, as bars.

    Both None where no effort was left for held-out runs.
    """
    if bound is None or tested is None:
        return Pictures()
    drawn = tested.bars if violated else None
    return Pictures(event=event_of(bound), outputs=drawn)


def event_of(bound: Bound) -> tuple[Interval, Interval] | None:
    """Error rates of what was counted on held-out samples; None if nothing was."""
    counts = bound.counts
    if not counts.n1:
        return None
    hits, alarms = counts.c1 / counts.n1, counts.c2 / counts.n2
    (low1, high1), (low2, high2) = bound.intervals
    positives, negatives = (low2, alarms, high2), (1 - high1, 1 - hits, 1 - low1)
    return _interval(positives), _interval(negatives)


def _interval(ends: Iterable[float]) -> Interval:
    low, middle, high = map(round_for_drawing, ends)
    return low, middle, high
