"""Outputs on D and on D' side by side: what is in the event is filled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from pytest_dp.limits import HARDLY_SEEN
from pytest_dp.report.svg import WIDTH, Axis, across, bar, line, number, percent, svg, text
from pytest_dp.results.pictures import Bar, Histogram

LEFT, RIGHT = 14.0, WIDTH - 10
"""Where pictures begin and end: given by what is written beside them."""
BAR_HEIGHT = 78.0
"""Of the highest bar, given by how much of a screen a picture takes."""
MARKS = "abcdefghijkl"
"""Letters for bars that are not numbers, beside an axis of numbers."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture, its heading, and what it shows, in a sentence."""

    heading: str
    svg: str
    caption: str


def outputs(histogram: Histogram) -> Drawing:
    """Outputs on D above those on D', with what is in the event filled."""
    inside = [sum(entry.inside[side] for entry in histogram.bars) for side in (0, 1)]
    shares = [n / max(runs, 1) for n, runs in zip(inside, histogram.runs, strict=True)]
    title = (
        f"Outputs by {histogram.of}: {percent(shares[0])} of those on D are in S, and "
        f"{percent(shares[1])} of those on D'"
    )
    ranges = [entry for entry in histogram.bars if _on_axis(entry)]
    kinds = [entry for entry in histogram.bars if not _on_axis(entry)]
    few = len(histogram.bars) <= 6 or not ranges
    scale = _Scale.of(histogram)
    caption = "The fresh runs that the text counts. Filled: in S."
    if scale.logarithmic:
        caption += " The scale is logarithmic, as S is rare."
    if any(entry.label == "" and None in (entry.low, entry.high) for entry in ranges):
        caption += " The bars at the ends hold all that is beyond."
    if few:
        picture = _horizontal_bars(histogram, scale, title)
    else:
        picture = _upright(histogram, scale, shares, title, (ranges, kinds))
        named = [f"{mark}: {entry.label}" for mark, entry in zip(MARKS, kinds, strict=False)]
        caption += f" {'; '.join(named)}." if named else ""
    return Drawing("Outputs on D and D'", picture, caption)


def _on_axis(entry: Bar) -> bool:
    """Return whether a bar has its place among numbers, and is not far off or of another kind."""
    return entry.low == entry.high is not None if entry.label else True


@dataclass(frozen=True, slots=True)
class _Scale:
    """From numbers of runs to lengths between 0 and 1."""

    runs: tuple[int, int]
    highest_share: float
    least: float
    logarithmic: bool

    @classmethod
    def of(cls, histogram: Histogram) -> _Scale:
        runs = max(histogram.runs[0], 1), max(histogram.runs[1], 1)

        def highest(counts: list[tuple[int, int]]) -> float:
            return max(max(d / runs[0], d2 / runs[1]) for d, d2 in counts)

        highest_share = highest([entry.counts for entry in histogram.bars])
        within = highest([entry.inside for entry in histogram.bars])
        return cls(runs, highest_share, 0.5 / max(runs), 0 < within < HARDLY_SEEN * highest_share)

    def __call__(self, count: int, side: int) -> float:
        share = count / self.runs[side]
        if not share:
            return 0.0
        if self.logarithmic:
            return math.log(share / self.least) / math.log(self.highest_share / self.least)
        return share / self.highest_share

    def both(self, entry: Bar, side: int) -> list[tuple[float, str]]:
        """Lengths of all of a bar, and of what is in the event, with how they are drawn."""
        of = ("dp-d", "dp-d2")[side]
        lengths = [(entry.counts[side], f"{of} dp-out"), (entry.inside[side], f"{of} dp-in")]
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
        base += 22 + BAR_HEIGHT
        said = f"on {name}: {percent(shares[side])} in S"
        parts.append(text(LEFT, base - BAR_HEIGHT - 8, said))
        for entry, (x, width) in zip([*ranges, *kinds], places, strict=True):
            for length, kind in scale.both(entry, side):
                tall = BAR_HEIGHT * length
                parts.append(bar(x, base - tall, width, tall, kind))
        parts.append(line([(LEFT, base), (RIGHT, base)], "dp-axis"))
    parts += across(axis, base, histogram.of, axis.ticks(5), number)
    for mark, (x, width) in zip(MARKS, places[len(ranges) :], strict=False):
        parts.append(text(x + width / 2, base + 15, mark, "dp-middle"))
    return svg(base + 36, title, parts)


def _axis_of(ranges: list[Bar], end: float) -> tuple[Axis, list[tuple[float, float]]]:
    """The axis of numbers, and where each bar begins on it, and how wide it is."""
    if all(entry.low == entry.high for entry in ranges):
        return _axis_of_values([entry.low or 0.0 for entry in ranges], end)
    widths = [
        b - a
        for a, b in ((entry.low, entry.high) for entry in ranges)
        if a is not None and b is not None
    ]
    edges = [edge for entry in ranges for edge in (entry.low, entry.high) if edge is not None]
    step = min(widths, default=1.0)
    low = min(edges) - (step if ranges[0].low is None else 0)
    high = max(edges) + (step if ranges[-1].high is None else 0)
    axis = Axis(low, high, LEFT, end)
    starts = [axis(low if entry.low is None else entry.low) for entry in ranges]
    ends = [axis(high if entry.high is None else entry.high) for entry in ranges]
    return axis, [(a, b - a) for a, b in zip(starts, ends, strict=True)]


def _axis_of_values(values: list[float], end: float) -> tuple[Axis, list[tuple[float, float]]]:
    """Return the axis, and the place and width of each bar, for bars around single values."""
    gap = min((b - a for a, b in pairwise(values)), default=1.0)
    room = max(gap, (values[-1] - values[0]) / 60)
    axis = Axis(values[0] - room / 2, values[-1] + room / 2, LEFT, end)
    width = 0.8 * (axis(values[0] + room / 2) - axis(values[0] - room / 2))
    return axis, [(axis(value) - width / 2, width) for value in values]


def _horizontal_bars(histogram: Histogram, scale: _Scale, title: str) -> str:
    """Draw bars from left to right, under the name of each kind."""
    parts, y, left = [], 14.0, LEFT + 22
    room = RIGHT - left - 52
    for entry in histogram.bars:
        parts.append(
            text(LEFT, y, _bar_name(entry, histogram.of) + (" (in S)" if any(entry.inside) else ""))
        )
        for side, name in enumerate(("D", "D'")):
            top = y + 5 + 14 * side
            parts.append(text(left - 6, top + 9, name, "dp-end"))
            parts += [bar(left, top, room * n, 11, kind) for n, kind in scale.both(entry, side)]
            share, length = entry.counts[side] / scale.runs[side], scale(entry.counts[side], side)
            parts.append(text(left + room * length + 6, top + 9, percent(share)))
        y += 52
    return svg(y - 8, title, parts)


def _bar_name(entry: Bar, of: str) -> str:
    if entry.label:
        return entry.label
    if entry.low is None:
        return f"{of} < {number(entry.high or 0.0)}"
    if entry.high is None:
        return f"{of} >= {number(entry.low)}"
    return f"{number(entry.low)} to {number(entry.high)}"
