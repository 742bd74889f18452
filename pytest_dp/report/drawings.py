"""The pictures of an audit: what came out on both inputs, and how far that is from the claim."""

from __future__ import annotations

import math
from itertools import pairwise

from pytest_dp.limits import HARDLY_SEEN
from pytest_dp.report import numbers
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
    power_of_ten,
    steps,
    svg,
    text,
    upwards,
)
from pytest_dp.results.pictures import Interval, Pictures, Points

LEFT, RIGHT = 60.0, WIDTH - 10
"""Where axes begin and end: given by what is written beside them."""


def drawings(record: Record) -> list[Drawing]:
    """All that there is to draw of a claim, what helps most first."""
    pictures = record.pictures
    if pictures is None or record.claimed is None or record.alpha is None:
        return []
    drawn = []
    if pictures.outputs is not None and pictures.outputs.bars:
        drawn.append(outputs(pictures.outputs))
    if pictures.allowed and (pictures.attack or pictures.event):
        drawn.append(trade_off(pictures, violated=record.status == "violated"))
    if len(pictures.evidence) > 1:
        by_bets = record.status == "violated" and record.e_value is not None
        claim = record.parameter, record.claimed
        drawn.append(evidence(pictures.evidence, claim, record.alpha, by_bets=by_bets))
    if pictures.wealth:
        drawn.append(wealth(pictures.wealth, record.alpha))
    return drawn


def trade_off(pictures: Pictures, *, violated: bool) -> Drawing:
    """False positives against false negatives, with what the claim does not allow."""
    window = _window(pictures)
    enlarged = window != (0.0, 1.0, 0.0, 1.0)
    x, y = Axis(window[0], window[1], LEFT, RIGHT), Axis(window[2], window[3], 230.0, 12.0)
    allowed = _clipped(pictures.allowed, window)
    left, right, bottom, _ = window
    ends = [
        (at, _height_at(pictures.allowed, at)) for at in (left, right)
    ]  # which an axis cuts off
    below = [(left, bottom), ends[0], *allowed, ends[1], (right, bottom)]
    parts = [area([(x(a), y(b)) for a, b in below])]
    parts.append(line([(x(a), y(b)) for a, b in allowed], "dp-claim"))
    if pictures.attack:
        attack = sorted(pictures.attack, key=lambda point: (point[0], -point[1]))
        parts.append(line([(x(a), y(b)) for a, b in _clipped(attack, window)], "dp-attack"))
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


def _clipped(points: Points | list[tuple[float, float]], window: tuple[float, ...]) -> Points:
    """A falling line, cut off where it leaves the window."""
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


def evidence(points: Points, claim: tuple[str, float], level: float, *, by_bets: bool) -> Drawing:
    """The p-value of every value of the parameter, as in the StatDP paper.

    Of the claim it takes the parameter and its value; `by_bets` is whether bets refuted it.
    """
    parameter, value = claim
    alpha = math.log10(level)
    points = tuple((at, math.log10(p)) for at, p in points)
    high = 1.1 * max(value, points[0][0])
    x, y = Axis(0.0, high, LEFT, RIGHT), Axis(min(2 * alpha, -6.0), 0.0, 180.0, 14.0)
    refuted = max((at for at, p in points if p <= alpha), default=0.0)
    curve = [(x(a), y(b)) for a, b in reversed(points)]
    if curve[0][1] < y.start:  # what is smaller is refuted at least as clearly
        curve = [(LEFT, curve[0][1]), *curve]
    curve += [(x(points[0][0]), y(0.0)), (x(high), y(0.0))]
    height, claimed = y(alpha), x(value)
    parts = [
        bar(LEFT, 14, x(refuted) - LEFT, 166, "dp-refuted"),
        line([(LEFT, height), (RIGHT, height)], "dp-limit"),
        line([(claimed, 180), (claimed, 14)], "dp-claim"),
        line(curve, "dp-attack"),
        text(
            claimed + 5 if claimed < LEFT + 70 else LEFT + 4,
            height - 5,
            f"alpha {number(level)}",
        ),
        text(claimed - 5, 174, "claimed", "dp-end")
        if claimed > (LEFT + RIGHT) / 2
        else text(claimed + 5, 174, "claimed"),
    ]
    parts += across(x, 180, f"tested {parameter}", x.ticks(5), number)
    exponents = [tick for tick in y.ticks(4) if tick == round(tick)]
    parts += upwards(y, LEFT, "p-value", exponents, power_of_ten)
    title = (
        f"P-values of tested values of {parameter}: below alpha up to "
        f"{numbers.lower(refuted)}, where {numbers.claimed(value)} is claimed"
    )
    caption = f"Shaded: values of {parameter} that the counts of fresh runs in S refute."
    if not refuted:
        caption = f"The counts of fresh runs in S refute no value of {parameter}."
    if by_bets and refuted <= value:
        caption += " They are too few to refute the claim by themselves; the bets did."
    return Drawing(f"Evidence against {parameter}", svg(216, title, parts), caption)


def wealth(points: tuple[tuple[int, float], ...], alpha: float) -> Drawing:
    """What the bets against the claim have made of their stake, sample by sample."""
    limit = -math.log10(alpha)
    highest, lowest = max(value for _, value in points), min(value for _, value in points)
    samples = points[-1][0]
    x = Axis(0.0, float(samples), LEFT, RIGHT)
    y = Axis(min(lowest, -1.0), max(highest, limit) * 1.08, 150.0, 14.0)
    parts = [
        line([(LEFT, y(0)), (RIGHT, y(0))], "dp-faint"),
        line([(LEFT, y(limit)), (RIGHT, y(limit))], "dp-limit"),
        text(
            LEFT + 4,
            y(limit) - 5,
            f"refuted from {power_of_ten(limit)}"
            if _is_whole(limit)
            else f"refuted from {number(1 / alpha)}",
        ),
        steps([(x(0), y(0)), *((x(n), y(value)) for n, value in points)], "dp-attack"),
        dot(x(samples), y(points[-1][1])),
    ]
    parts += across(x, 150, "samples", x.ticks(4), number)
    parts += upwards(y, LEFT, "e-value", [t for t in y.ticks(7) if _is_whole(t)], power_of_ten)
    last = numbers.e_value(10 ** min(points[-1][1], 300.0))
    title = f"The e-value after {samples:,} samples is {last}"
    caption = (
        f"Bets against the claim made {last} of a stake of 1 in {samples:,} samples. If the claim "
        f"holds, at most {numbers.one_in(alpha)} audits reach the dashed line."
    )
    return Drawing("Bets against the claim", svg(186, title, parts), caption)


def _is_whole(value: float) -> bool:
    return abs(value - round(value)) < 1e-6
