"""The pictures of an audit: what came out on both inputs, and how far that is from the claim."""

from __future__ import annotations

from itertools import pairwise

from pytest_dp.limits import HARDLY_SEEN
from pytest_dp.report.histograms import Drawing, outputs
from pytest_dp.report.record import Record
from pytest_dp.report.svg import (
    WIDTH,
    Axis,
    across,
    area,
    bar,
    dot,
    line,
    number,
    percent,
    svg,
    upwards,
)
from pytest_dp.results.pictures import Interval, Pictures, Points

LEFT, RIGHT = 60.0, WIDTH - 10
"""Where axes begin and end: given by what is written beside them."""


def drawings(record: Record) -> list[Drawing]:
    """All that there is to draw of a claim, what helps most first."""
    pictures = record.pictures
    if pictures is None:
        return []
    drawn = []
    if pictures.outputs is not None and pictures.outputs.bars:
        drawn.append(outputs(pictures.outputs))
    if pictures.allowed and (pictures.attack or pictures.event):
        drawn.append(trade_off(pictures, violated=record.status == "violated"))
    return drawn


def trade_off(pictures: Pictures, *, violated: bool) -> Drawing:
    """False positives against false negatives, with what the claim does not allow."""
    window = _window(pictures)
    enlarged = window != (0.0, 1.0, 0.0, 1.0)
    x, y = Axis(window[0], window[1], LEFT, RIGHT), Axis(window[2], window[3], 230.0, 12.0)
    allowed = _clip(pictures.allowed, window)
    left, right, bottom, _ = window
    ends = [
        (at, _height_at(pictures.allowed, at)) for at in (left, right)
    ]  # which an axis cuts off
    below = [(left, bottom), ends[0], *allowed, ends[1], (right, bottom)]
    parts = [area([(x(a), y(b)) for a, b in below])]
    parts.append(line([(x(a), y(b)) for a, b in allowed], "dp-claim"))
    if pictures.attack:
        attack = sorted(pictures.attack, key=lambda point: (point[0], -point[1]))
        parts.append(line([(x(a), y(b)) for a, b in _clip(attack, window)], "dp-attack"))
    if pictures.event is not None:
        (low1, at1, high1), (low2, at2, high2) = pictures.event
        parts.append(bar(x(low1), y(high2), x(high1) - x(low1), y(low2) - y(high2), "dp-uncertain"))
        parts.append(dot(x(at1), y(at2)))
    parts += across(x, 230, "false positives: outputs on D' in S", x.ticks(5), number)
    parts += upwards(y, LEFT, "false negatives: on D, not in S", y.ticks(5), number)
    return Drawing(
        "Telling D from D'",
        svg(266, _title(pictures), parts),
        _trade_off_caption(pictures, enlarged, violated),
    )


def _title(pictures: Pictures) -> str:
    if pictures.event is None:
        return "Rates of false positives and false negatives of the learned attack"
    (_, positives, _), (_, negatives, _) = pictures.event
    return (
        f"The event has {percent(positives)} false positives and {percent(negatives)} false "
        "negatives"
    )


def _trade_off_caption(pictures: Pictures, enlarged: bool, violated: bool) -> str:
    said = ["The claim rules out what is shaded."]
    if pictures.event is not None:
        said.append("Dot: fresh runs, in a box of what they leave possible.")
    if pictures.attack:
        said.append("Line: thresholds of the learned attack, by the runs that were bet on.")
    if not violated:
        said.append("Chance may take both a little into it.")
    if enlarged:
        said.append("Enlarged around the dot.")
    return " ".join(said)


def _window(pictures: Pictures) -> tuple[float, float, float, float]:
    """The part of the unit square to draw."""
    unit_square = 0.0, 1.0, 0.0, 1.0
    if pictures.event is None:
        return unit_square
    positives, negatives = pictures.event
    allowed = _height_at(pictures.allowed, positives[1])
    gap = abs(allowed - negatives[1])
    if gap >= HARDLY_SEEN:
        return unit_square
    return *_rate_window(positives, gap), *_rate_window(negatives, gap)


def _rate_window(rate: Interval, gap: float) -> tuple[float, float]:
    low, at, high = rate
    reach = max(1.5 * (high - low), 2.5 * gap, 1e-5)
    start = min(max(at - reach, 0.0), max(1 - 2 * reach, 0.0))
    return start, min(start + 2 * reach, 1.0)


def _height_at(points: Points, x: float) -> float:
    for (x1, y1), (x2, y2) in pairwise(points):
        if x1 <= x <= x2:
            return y1 if x1 == x2 else y1 + (y2 - y1) * (x - x1) / (x2 - x1)
    return points[-1][1]


def _clip(points: Points | list[tuple[float, float]], window: tuple[float, ...]) -> Points:
    """Cut off a falling line where it leaves the window."""
    left, right, bottom, top = window
    mirrored = tuple(sorted((y, x) for x, y in points))
    inside = [p for p in points if left <= p[0] <= right and bottom <= p[1] <= top]
    for x in (left, right):
        y = _height_at(tuple(points), x)
        if bottom <= y <= top:
            inside.append((x, y))
    for y in (bottom, top):
        x = _height_at(mirrored, y)
        if left <= x <= right:
            inside.append((x, y))
    return tuple(sorted(set(inside), key=lambda point: (point[0], -point[1])))
