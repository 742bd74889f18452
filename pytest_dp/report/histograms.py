"""Outputs on D and on D' side by side: what is in the event is filled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from pytest_dp.report.svg import WIDTH, Axis, across, bar, line, number, percent, svg, text
from pytest_dp.results.pictures import Bar, Histogram

LEFT, RIGHT = 14.0, WIDTH - 10
"""Where pictures begin and end."""
HEIGHT = 78.0
"""Of the highest bar, where bars are upright."""
MARKS = "abcdefghijkl"
"""Letters for bars that are not numbers, beside an axis of numbers."""
RARE = 0.04
"""Share of the highest bar below which bars of the event could hardly be seen: then the scale is
logarithmic."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture, its heading, and what it shows, in a sentence."""

    heading: str
    svg: str
    caption: str


def outputs(histogram: Histogram) -> Drawing:
    """Outputs on D above those on D', with what is in the event filled."""
    inside = [sum(each.inside[side] for each in histogram.bars) for side in (0, 1)]
    shares = [n / max(runs, 1) for n, runs in zip(inside, histogram.runs, strict=True)]
    title = (
        f"Outputs by {histogram.of}: {percent(shares[0])} of those on D are in S, and "
        f"{percent(shares[1])} of those on D'"
    )
    ranges = [each for each in histogram.bars if _on_axis(each)]
    kinds = [each for each in histogram.bars if not _on_axis(each)]
    few = len(histogram.bars) <= 6 or not ranges
    scale = _Scale.of(histogram)
    caption = "Runs in the search for S. Filled: in S."
    if scale.logarithmic:
        caption += " The scale is logarithmic, as S is rare."
    if any(each.label == "" and None in (each.low, each.high) for each in ranges):
        caption += " The bars at the ends hold all that is beyond."
    if few:
        picture = _lying(histogram, scale, title)
    else:
        picture = _upright(histogram, scale, shares, title, (ranges, kinds))
        named = [f"{mark}: {each.label}" for mark, each in zip(MARKS, kinds, strict=False)]
        caption += f" {'; '.join(named)}." if named else ""
    return Drawing("Outputs on D and D'", picture, caption)


def _on_axis(each: Bar) -> bool:
    """Whether a bar has its place among numbers, and is not far off or of another kind."""
    return each.low == each.high is not None if each.label else True


@dataclass(frozen=True, slots=True)
class _Scale:
    """From numbers of runs to lengths between 0 and 1."""

    runs: tuple[int, int]
    most: float
    least: float
    logarithmic: bool

    @classmethod
    def of(cls, histogram: Histogram) -> _Scale:
        runs = max(histogram.runs[0], 1), max(histogram.runs[1], 1)

        def highest(counts: list[tuple[int, int]]) -> float:
            return max(max(d / runs[0], d2 / runs[1]) for d, d2 in counts)

        most = highest([each.counts for each in histogram.bars])
        within = highest([each.inside for each in histogram.bars])
        return cls(runs, most, 0.5 / max(runs), 0 < within < RARE * most)

    def __call__(self, count: int, side: int) -> float:
        share = count / self.runs[side]
        if not share:
            return 0.0
        if self.logarithmic:
            return math.log(share / self.least) / math.log(self.most / self.least)
        return share / self.most

    def both(self, each: Bar, side: int) -> list[tuple[float, str]]:
        """Lengths of all of a bar, and of what is in the event, with how they are drawn."""
        of = ("dp-d", "dp-d2")[side]
        lengths = [(each.counts[side], f"{of} dp-out"), (each.inside[side], f"{of} dp-in")]
        return [(self(count, side), kind) for count, kind in lengths if count]


def _upright(
    histogram: Histogram,
    scale: _Scale,
    shares: list[float],
    title: str,
    bars: tuple[list[Bar], list[Bar]],
) -> str:
    """Upright bars over an axis of numbers, and beside it those of other kinds."""
    ranges, kinds = bars
    end = RIGHT - (22 * len(kinds) + 8 if kinds else 0)
    axis, places = _axis_of(ranges, end)
    places += [(end + 12 + 22 * i, 14.0) for i in range(len(kinds))]
    parts, base = [], 0.0
    for side, name in enumerate(("D", "D'")):
        base += 22 + HEIGHT
        said = f"on {name}: {percent(shares[side])} in S"
        parts.append(text(LEFT, base - HEIGHT - 8, said))
        for each, (x, width) in zip([*ranges, *kinds], places, strict=True):
            for length, kind in scale.both(each, side):
                tall = HEIGHT * length
                parts.append(bar(x, base - tall, width, tall, kind))
        parts.append(line([(LEFT, base), (RIGHT, base)], "dp-axis"))
    parts += across(axis, base, histogram.of, axis.ticks(5), number)
    for mark, (x, width) in zip(MARKS, places[len(ranges) :], strict=False):
        parts.append(text(x + width / 2, base + 15, mark, "dp-middle"))
    return svg(base + 36, title, parts)


def _axis_of(ranges: list[Bar], end: float) -> tuple[Axis, list[tuple[float, float]]]:
    """The axis of numbers, and where each bar begins on it, and how wide it is."""
    if all(each.low == each.high for each in ranges):
        return _axis_of_values([each.low or 0.0 for each in ranges], end)
    widths = [
        b - a
        for a, b in ((each.low, each.high) for each in ranges)
        if a is not None and b is not None
    ]
    edges = [edge for each in ranges for edge in (each.low, each.high) if edge is not None]
    step = min(widths, default=1.0)
    low = min(edges) - (step if ranges[0].low is None else 0)
    high = max(edges) + (step if ranges[-1].high is None else 0)
    axis = Axis(low, high, LEFT, end)
    starts = [axis(low if each.low is None else each.low) for each in ranges]
    ends = [axis(high if each.high is None else each.high) for each in ranges]
    return axis, [(a, b - a) for a, b in zip(starts, ends, strict=True)]


def _axis_of_values(values: list[float], end: float) -> tuple[Axis, list[tuple[float, float]]]:
    """The same for bars around single values."""
    gap = min((b - a for a, b in pairwise(values)), default=1.0)
    room = max(gap, (values[-1] - values[0]) / 60)
    axis = Axis(values[0] - room / 2, values[-1] + room / 2, LEFT, end)
    width = 0.8 * (axis(values[0] + room / 2) - axis(values[0] - room / 2))
    return axis, [(axis(value) - width / 2, width) for value in values]


def _lying(histogram: Histogram, scale: _Scale, title: str) -> str:
    """Bars from left to right, under the name of each kind."""
    parts, y, left = [], 14.0, LEFT + 22
    room = RIGHT - left - 52
    for each in histogram.bars:
        parts.append(
            text(LEFT, y, _named(each, histogram.of) + (" (in S)" if any(each.inside) else ""))
        )
        for side, name in enumerate(("D", "D'")):
            top = y + 5 + 14 * side
            parts.append(text(left - 6, top + 9, name, "dp-end"))
            parts += [bar(left, top, room * n, 11, kind) for n, kind in scale.both(each, side)]
            share, length = each.counts[side] / scale.runs[side], scale(each.counts[side], side)
            parts.append(text(left + room * length + 6, top + 9, percent(share)))
        y += 52
    return svg(y - 8, title, parts)


def _named(each: Bar, of: str) -> str:
    if each.label:
        return each.label
    if each.low is None:
        return f"{of} < {number(each.high or 0.0)}"
    if each.high is None:
        return f"{of} >= {number(each.low)}"
    return f"{number(each.low)} to {number(each.high)}"
