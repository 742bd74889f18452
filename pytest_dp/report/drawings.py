"""Two pictures of a claim as SVG: its outputs on both inputs, and error rates beside the claim.

Written without a library: a report of hundreds of claims has to stay small, and the colours are
those of the page around a picture (``page.css``), light or dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from html import escape

import numpy as np

from pytest_dp.basics.bisection import bracket
from pytest_dp.privacy import Guarantee
from pytest_dp.results.outcome import Bar, Histogram, Interval, Pictures, Points, curve_points
from pytest_dp.results.result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pytest_dp.report.record import Record

MIN_GAP = 0.05
"""Distance of the dot from the curve that enlarges a picture. Larger: fewer whole pictures."""
EXACTNESS = 1e-9
"""Error of a point of a curve. Larger can be seen; smaller takes longer."""
CURVE_POINTS = 100
"""Of a curve. With fewer, its bends are seen as corners."""
WIDTH = 360.0
"""Width of a picture, in the units in which text is 11 high. Given by narrow phones."""
LEFT, RIGHT = 14.0, WIDTH - 10
"""Where bars begin and end: given by what is written beside them."""
BAR_HEIGHT = 78.0
"""Of the highest bar, given by how much of a screen a picture takes."""
LETTER_WIDTH = 6.5
"""Width of a letter below a bar. Larger: names go to the caption; smaller: names overlap."""
MARKS = "abcdefghijkl"
"""Letters for bars that are not numbers and whose names do not fit below them."""


def complete_pictures(result: Result) -> Pictures:
    """Return the pictures of a result, with the trade-off curve of its claim if they need one."""
    pictures = result.pictures
    if pictures.attack or pictures.event:
        allowed = _allowed_curve(result.claim.promise.guarantee, pictures.event)
        pictures = replace(pictures, allowed=allowed)
    return pictures


def _allowed_curve(guarantee: Guarantee, event: tuple[Interval, Interval] | None) -> Points:
    """Return points of the claim's trade-off function, finest at its bends and around the event."""
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
    return curve_points(at[order].tolist(), np.clip(least[order], 0, 1).tolist())


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture with its heading and caption."""

    heading: str
    svg: str
    caption: str


def draw_pictures(record: Record) -> list[Drawing]:
    """Return all pictures of a claim as SVG, the most helpful first; empty if there are none."""
    pictures = record.pictures
    drawn = []
    if pictures is not None and pictures.outputs is not None and pictures.outputs.bars:
        drawn.append(draw_outputs(pictures.outputs))
    if pictures is not None and pictures.allowed and (pictures.attack or pictures.event):
        drawn.append(draw_trade_off(pictures, violated=record.status == "violated"))
    return drawn


def draw_outputs(histogram: Histogram) -> Drawing:
    """Return a picture of the outputs on D above those on D', with the event filled."""
    runs = max(histogram.runs[0], 1), max(histogram.runs[1], 1)
    bars = sorted(histogram.bars, key=lambda bar: not _is_numeric(bar))
    highest = max(bar.counts[side] / runs[side] for bar in bars for side in (0, 1)) or 1.0
    shares = [format_percent(sum(bar.inside[side] for bar in bars) / runs[side]) for side in (0, 1)]
    caption = "The fresh runs that the text counts. Filled: in S."
    if any(bar.label == "" and None in (bar.low, bar.high) for bar in bars):
        caption += " The bars at the ends hold all further values."
    parts, base, step = [], 0.0, (RIGHT - LEFT) / len(bars)
    for side, name in enumerate(("D", "D'")):
        base += 22 + BAR_HEIGHT
        parts.append(_draw_text(LEFT, base - BAR_HEIGHT - 8, f"on {name}: {shares[side]} in S"))
        colour = ("dp-d", "dp-d2")[side]
        for at, bar in enumerate(bars):
            for count, kind in ((bar.counts[side], "dp-out"), (bar.inside[side], "dp-in")):
                tall = BAR_HEIGHT * count / runs[side] / highest
                place = LEFT + at * step, base - tall, 0.9 * step, tall
                parts += [_draw_bar(*place, f"{colour} {kind}")] if count else []
        parts.append(draw_line([(LEFT, base), (RIGHT, base)], "dp-axis"))
    marks, named, every = iter(MARKS), [], math.ceil(len(bars) / 5)
    for at, bar in enumerate(bars):
        x = LEFT + (at + 0.45) * step
        if not _is_numeric(bar) and len(bar.label) * LETTER_WIDTH <= step:
            parts.append(_draw_text(x, base + 15, bar.label, "dp-middle"))
        elif not _is_numeric(bar):
            mark = next(marks, "")
            parts.append(_draw_text(x, base + 15, mark, "dp-middle"))
            named += [f"{mark}: {bar.label}"] if mark else []
        elif at % every == every // 2 and bar.low is not None:
            x = x if bar.low == bar.high else LEFT + at * step
            parts.append(
                _draw_text(x, base + 15, format_tick(float(f"{bar.low:.3g}")), "dp-middle")
            )
    parts.append(_draw_text((LEFT + RIGHT) / 2, base + 30, histogram.of, "dp-middle"))
    caption += f" {'; '.join(named)}." if named else ""
    title = (
        f"Outputs by {histogram.of}: {shares[0]} of those on D are in S, and {shares[1]} of those "
        "on D'"
    )
    return Drawing("Outputs on D and D'", _draw_svg(base + 36, title, parts), caption)


def _is_numeric(bar: Bar) -> bool:
    """Return whether a bar has a place on the axis of numbers."""
    return bar.low == bar.high is not None if bar.label else True


def draw_trade_off(pictures: Pictures, *, violated: bool) -> Drawing:
    """Return a picture of false positives against false negatives, beside the claim's limit."""
    window = _choose_window(pictures)
    x = PictureAxis(window[0], window[1], 60.0, RIGHT)
    y = PictureAxis(window[2], window[3], 230.0, 12.0)
    curve = [(x(a), y(b)) for a, b in _sample_curve(pictures.allowed, window)]
    corners = (x.start, y.start), (x.end, y.start)
    parts = [draw_line([corners[0], *curve, corners[1]], "dp-forbidden").replace('"/>', 'Z"/>')]
    parts.append(draw_line(curve, "dp-claim"))
    caption, title = "The claim rules out what is shaded.", "Error rates of the learned attack"
    if pictures.event is not None:
        (low1, at1, high1), (low2, at2, high2) = pictures.event
        width, height = x(high1) - x(low1), y(low2) - y(high2)
        parts.append(_draw_bar(x(low1), y(high2), width, height, "dp-uncertain"))
        parts.append(f'<circle class="dp-event" cx="{_px(x(at1))}" cy="{_px(y(at2))}" r="3.5"/>')
        caption += " Dot: fresh runs, in a box of their confidence intervals."
        rates = format_percent(at1), format_percent(at2)
        title = f"The event has {rates[0]} false positives, {rates[1]} false negatives"
    if pictures.attack:
        attack = [(x(a), y(b)) for a, b in _sample_curve(pictures.attack, window)]
        parts.append(draw_line(attack, "dp-attack"))
        caption += " Line: thresholds of the learned attack, by the runs that were bet on."
    if not violated:
        what = "it" if pictures.event is None else "both"
        caption += f" Chance may take {what} a little into the shaded region."
    if window != (0.0, 1.0, 0.0, 1.0):
        caption += " Enlarged around the dot."
    parts += _draw_x_axis(x, 230, "false positives: outputs on D' in S")
    parts += _draw_y_axis(y, 60.0, "false negatives: on D, not in S")
    return Drawing("Telling D from D'", _draw_svg(266, title, parts), caption)


def _choose_window(pictures: Pictures) -> tuple[float, float, float, float]:
    """Return (left, right, bottom, top) of the unit square to draw: all, or around the dot."""
    if pictures.event is not None:
        positives, negatives = pictures.event
        xs, ys = zip(*pictures.allowed, strict=True)
        allowed = np.interp(positives[1], xs, ys)
        gap = abs(float(allowed) - negatives[1])
        if gap < MIN_GAP:
            return *_rate_window(positives, gap), *_rate_window(negatives, gap)
    return 0.0, 1.0, 0.0, 1.0


def _rate_window(rate: Interval, gap: float) -> tuple[float, float]:
    """Return the ends of an axis around a rate, wide enough for its interval and the gap."""
    low, at, high = rate
    reach = max(1.5 * (high - low), 2.5 * gap, 1e-5)
    start = min(max(at - reach, 0.0), max(1 - 2 * reach, 0.0))
    return start, min(start + 2 * reach, 1.0)


def _sample_curve(curve: Points, window: tuple[float, ...]) -> Points:
    """Return points on a curve from the left to the right end of a window, in order of x.

    Straight lines join the corners, which `curve` lists. `window` is (left, right, bottom, top).
    The points are `CURVE_POINTS` evenly spaced ones, and the corners between both ends.
    """
    left, right, _, _ = window
    xs, ys = zip(*sorted(curve, key=lambda point: (point[0], -point[1])), strict=True)
    corners = [x for x in xs if left < x < right]
    at = np.unique(np.concatenate([np.linspace(left, right, CURVE_POINTS), corners]))
    return tuple(zip(at.tolist(), np.interp(at, xs, ys).tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class PictureAxis:
    """A map from values to lengths on the page; values beyond the ends are drawn at the end."""

    low: float
    high: float
    """The value at `end`, as `low` is that at `start`."""
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low
        share = min(max((value - self.low) / span, 0.0), 1.0) if span > 0 else 0.0
        return self.start + share * (self.end - self.start)

    def ticks(self, about: int = 5) -> list[float]:
        """Return at most `about` + 1 round values; one if the axis has no width."""
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        step = 10 ** math.floor(math.log10(span / about))
        step *= next((m for m in (1, 2, 5, 10) if span / (m * step) <= about), 10)
        lowest, highest = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [k * step for k in range(lowest, highest + 1)]


def draw_line(places: Iterable[tuple[float, float]], kind: str) -> str:
    """Return a path of straight lines through the places, of the class `kind`."""
    written = dict.fromkeys(f"{_px(x)} {_px(y)}" for x, y in places)
    return f'<path class="{kind}" d="M{"L".join(written)}"/>'


def _draw_svg(height: float, title: str, parts: Iterable[str]) -> str:
    """Return a picture of these parts, with a title for those who cannot see it."""
    return (
        f'<svg class="dp-picture" role="img" viewBox="0 0 {_px(WIDTH)} {_px(height)}">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )


def _draw_bar(x: float, y: float, width: float, height: float, kind: str) -> str:
    size = f'x="{_px(x)}" y="{_px(y)}" width="{_px(width)}" height="{_px(height)}"'
    return f'<rect class="{kind}" {size}/>'


def _draw_text(x: float, y: float, said: str, kind: str = "", turned: str = "") -> str:
    classes = f' class="{kind}"' if kind else ""
    return f'<text{classes} x="{_px(x)}" y="{_px(y)}"{turned}>{escape(said)}</text>'


def _draw_x_axis(axis: PictureAxis, y: float, label: str) -> list[str]:
    """Return the parts of the horizontal axis at height `y`."""
    ticks = axis.ticks()
    marks = "".join(f"M{_px(axis(tick))} {_px(y)}V{_px(y + 4)}" for tick in ticks)
    return [
        f'<path class="dp-axis" d="M{_px(axis.start)} {_px(y)}H{_px(axis.end)}{marks}"/>',
        *(_draw_text(axis(tick), y + 15, format_tick(tick), "dp-middle") for tick in ticks),
        _draw_text((axis.start + axis.end) / 2, y + 30, label, "dp-middle"),
    ]


def _draw_y_axis(axis: PictureAxis, x: float, label: str) -> list[str]:
    """Return the parts of the vertical axis at `x`."""
    ticks, middle = axis.ticks(), _px((axis.start + axis.end) / 2)
    marks = "".join(f"M{_px(x)} {_px(axis(tick))}H{_px(x - 4)}" for tick in ticks)
    return [
        f'<path class="dp-axis" d="M{_px(x)} {_px(axis.start)}V{_px(axis.end)}{marks}"/>',
        *(_draw_text(x - 6, axis(tick) + 4, format_tick(tick), "dp-end") for tick in ticks),
        _draw_text(11, float(middle), label, "dp-middle", f' transform="rotate(-90 11 {middle})"'),
    ]


def format_tick(value: float) -> str:
    """Return a number at a tick as text: ``1,000``, ``0.05``, ``1e-06``."""
    return f"{value:,.6g}" if abs(value) < 1000 or abs(value) >= 1e7 else f"{value:,.0f}"


def format_percent(share: float) -> str:
    """Return a share as a percentage of two digits: ``49 %``, ``6.7 %``, ``0.04 %``."""
    value = 100 * share
    if value == 0 or value >= 99.95:
        return f"{value:.0f} %"
    digits = max(0, 1 - math.floor(math.log10(value)))
    return f"{value:.{min(digits, 6)}f} %"


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
