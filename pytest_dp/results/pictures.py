"""Pictures of an audit: small plain values to draw.

Auditors make them, but for `allowed`, which `pytest_dp.report.curves` adds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Points = tuple[tuple[float, float], ...]
Interval = tuple[float, float, float]
"""The lower end, what was counted, the upper end."""


@dataclass(frozen=True, slots=True)
class Bar:
    """Outputs that are alike: of one value or kind, or between two numbers."""

    label: str
    """The value or the kind, or how far off the others some numbers are; empty for other ranges."""
    low: float | None
    high: float | None
    """The range is ``low <= number < high``, or the number twice; None where it is open."""
    counts: tuple[int, int]
    """How many of the outputs on D, and of those on D', are in it."""
    inside: tuple[int, int]
    """How many of these are in the event."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Outputs on D and on D', by the quantity that the event speaks of first."""

    of: str
    """The quantity, such as ``"len(output)"``."""
    runs: tuple[int, int]
    """How many outputs there are on D, and on D'."""
    bars: tuple[Bar, ...]
    """Those of numbers first, in increasing order."""


@dataclass(frozen=True, slots=True)
class Pictures:
    """The pictures of an audit; empty where nothing is known.

    D is the input that makes the event likelier. A false positive is an output on D' that is in the
    event, a false negative one on D that is not.
    """

    outputs: Histogram | None = None
    """The held-out outputs that were counted, if the event breaks the claim."""
    attack: Points = ()
    """Rates of false positives and of false negatives of the learned attack, threshold by
    threshold, by the outputs that were bet on."""
    event: tuple[Interval, Interval] | None = None
    """The same rates of the strongest event, or attack at its threshold, on held-out outputs."""
    allowed: Points = ()
    """For rates of false positives, the lowest of false negatives that the claim allows."""


def points(x: Iterable[float], y: Iterable[float]) -> Points:
    """Return a line, rounded, without points that are the same."""
    return tuple(
        dict.fromkeys(
            (round_for_drawing(a), round_for_drawing(b)) for a, b in zip(x, y, strict=True)
        )
    )


def round_for_drawing(value: float) -> float:
    """Round a number to the digits that are drawn."""
    return float(f"{value:.{6}g}")
