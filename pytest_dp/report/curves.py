"""The trade-off function of a claim, as points of a curve; computed where pictures are written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pytest_dp.basics.bisection import bracket
from pytest_dp.privacy import Guarantee
from pytest_dp.results.outcome import Interval, Pictures, Points, points
from pytest_dp.results.result import Result

EXACTNESS = 1e-9
"""Error of a point of a curve. Larger can be seen; smaller takes longer."""


def complete_pictures(result: Result) -> Pictures:
    """Return the pictures of a result, with what its claim allows."""
    pictures = result.pictures
    if pictures.attack or pictures.event:
        allowed = _allowed_curve(result.claim.promise.guarantee, pictures.event)
        pictures = replace(pictures, allowed=allowed)
    return pictures


def _allowed_curve(guarantee: Guarantee, event: tuple[Interval, Interval] | None) -> Points:
    """Return the claim's trade-off function, finest where it bends and around the event."""
    equal_rates, _ = bracket(
        lambda p: p + guarantee.largest_probability(p) >= 1, 0.0, 1.0, EXACTNESS
    )
    # Many bend most where both rates are equal.
    at = np.concatenate([np.linspace(0, 1, 26), np.geomspace(1e-6, 0.1, 16), [equal_rates]])
    if event is not None:
        centre, reach = event[0][1], 4 * (event[0][2] - event[0][0])
        at = np.concatenate([at, np.linspace(max(centre - reach, 0), min(centre + reach, 1), 9)])
    least = 1 - guarantee.largest_probability(at)
    at, least = np.concatenate([at, least]), np.concatenate([least, at])  # it is symmetric
    order = np.lexsort((-least, at))
    return points(at[order].tolist(), np.clip(least[order], 0, 1).tolist())
