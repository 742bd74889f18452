"""Curves that follow from a claim and from counts: what it allows, and what they refute.

They take longer than the other pictures of a result, and need no samples: so nobody draws them
until somebody looks.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pytest_dp.bisection import bracket
from pytest_dp.limits import EQUAL
from pytest_dp.privacy import Guarantee
from pytest_dp.report.svg import simplified
from pytest_dp.results.pictures import Interval, Pictures, Points, points, rounded
from pytest_dp.results.result import Counterexample, Result
from pytest_dp.statistics.counts import Counts
from pytest_dp.statistics.event_test import event_test


def completed(result: Result) -> Pictures:
    """The pictures of a result, with what follows from its claim and its counts."""
    pictures, example = result.pictures, result.counterexample
    if pictures.attack or pictures.event:
        allowed = _allowed(result.claim.promise.guarantee, pictures.event)
        pictures = replace(pictures, allowed=allowed)
    if example is not None and all(example.runs):
        pictures = replace(pictures, evidence=_evidence(result, example))
    return pictures


def _allowed(guarantee: Guarantee, event: tuple[Interval, Interval] | None) -> Points:
    """The claim's trade-off function, finest where it bends and around the event."""
    alike, _ = bracket(lambda p: p + guarantee.largest_probability(p) >= 1, 0.0, 1.0, EQUAL)
    # Many bend most where both rates are alike.
    at = np.concatenate([np.linspace(0, 1, 26), np.geomspace(1e-6, 0.1, 16), [alike]])
    if event is not None:
        centre, reach = event[0][1], 4 * (event[0][2] - event[0][0])
        at = np.concatenate([at, np.linspace(max(centre - reach, 0), min(centre + reach, 1), 9)])
    least = 1 - guarantee.largest_probability(at)
    at, least = np.concatenate([at, least]), np.concatenate([least, at])  # it is symmetric
    order = np.lexsort((-least, at))
    curve = list(zip(at[order].tolist(), np.clip(least[order], 0, 1).tolist(), strict=True))
    return points(*zip(*simplified(curve, EQUAL), strict=True))


def _evidence(result: Result, example: Counterexample) -> Points:
    """What each level refutes: the lower bound on the parameter at that level."""
    guarantee = result.claim.promise.guarantee
    test = event_test(guarantee)
    (c1, c2), (n1, n2) = example.counts, example.runs
    seen = Counts(c1, n1, c2, n2, example.both)
    curve = []
    levels = {0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12, result.alpha}
    for level in sorted(levels, reverse=True):
        value = test.lower(seen, level)
        if not value > 0:
            break
        curve.append((rounded(min(value, 1e6)), level))
    return tuple(curve)
