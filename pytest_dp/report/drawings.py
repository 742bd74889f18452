"""Pictures as SVG: the outputs on both inputs, and their error rates beside what a claim allows.

Written without a library: a report of hundreds of claims has to stay small, and the colours are
those of the page around a picture (``page.css``), light or dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from pytest_dp.report.record import Record
from pytest_dp.results.outcome import Bar, Histogram, Interval, Pictures, Points

HARDLY_SEEN = 0.05
"""Share of a picture's height below which a part is drawn larger. Larger: pictures are less true
to scale; smaller: the event is not seen."""

WIDTH = 360.0
"""Width of a picture, in the units in which text is 11 high. Given by narrow phones."""
LEFT, RIGHT = 14.0, WIDTH - 10
"""Where bars begin and end: given by what is written beside them."""
BAR_HEIGHT = 78.0
"""Of the highest bar, given by how much of a screen a picture takes."""
FEW_BARS = 6
"""Bars that have a line each, under their names. More of them take more than a screen."""
CURVE_POINTS = 100
"""Of a curve. With fewer, its bends are seen as corners."""
MARKS = "abcdefghijkl"
"""Letters for bars that are not numbers, under their places."""
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture, its heading, and a caption."""

    heading: str
    svg: str
    caption: str


def drawings(record: Record) -> list[Drawing]:
    """Draw all pictures of a claim, the most helpful first."""
    pictures = record.pictures
    drawn = []
    if pictures is not None and pictures.outputs is not None and pictures.outputs.bars:
        drawn.append(outputs(pictures.outputs))
    if pictures is not None and pictures.allowed and (pictures.attack or pictures.event):
        drawn.append(trade_off(pictures, violated=record.status == "violated"))
    return drawn


# --- outputs ---


def outputs(histogram: Histogram) -> Drawing:
    """Draw outputs on D above those on D', with the event filled."""
    heights = _Heights(histogram)
    inside = [sum(entry.inside[side] for entry in histogram.bars) for side in (0, 1)]
    shares = [percent(n / runs) for n, runs in zip(inside, heights.runs, strict=True)]
    title = (
        f"Outputs by {histogram.of}: {shares[0]} of those on D are in S, and {shares[1]} of those "
        "on D'"
    )
    numeric = [entry for entry in histogram.bars if _is_numeric(entry)]
    kinds = [entry for entry in histogram.bars if not _is_numeric(entry)]
    caption = "The fresh runs that the text counts. Filled: in S."
    if heights.logarithmic:
        caption += " The scale is logarithmic, as S is rare."
    if any(entry.label == "" and None in (entry.low, entry.high) for entry in numeric):
        caption += " The bars at the ends hold all further values."
    if len(histogram.bars) <= FEW_BARS or not numeric:
        picture = _lying_bars(histogram, heights, title)
    else:
        picture = _upright_bars([*numeric, *kinds], heights, shares, title, histogram.of)
        named = [f"{mark}: {entry.label}" for mark, entry in zip(MARKS, kinds, strict=False)]
        caption += f" {'; '.join(named)}." if named else ""
    return Drawing("Outputs on D and D'", picture, caption)


def _is_numeric(entry: Bar) -> bool:
    """Return whether a bar is of a number or a range, and not far off or of another kind."""
    return entry.low == entry.high is not None if entry.label else True


class _Heights:
    """Heights of bars, as shares of the highest one."""

    def __init__(self, histogram: Histogram) -> None:
        self.runs = max(histogram.runs[0], 1), max(histogram.runs[1], 1)
        self._highest = max(self._share(entry.counts) for entry in histogram.bars)
        within = max(self._share(entry.inside) for entry in histogram.bars)
        self.logarithmic = 0 < within < HARDLY_SEEN * self._highest

    def _share(self, counts: tuple[int, int]) -> float:
        return max(count / runs for count, runs in zip(counts, self.runs, strict=True))

    def height(self, count: int, side: int) -> float:
        """Return the height of a count on D (0) or on D' (1), as a share of the highest bar."""
        share, least = count / self.runs[side], 0.5 / max(self.runs)
        if self.logarithmic and share:
            return math.log(share / least) / math.log(self._highest / least)
        return share / self._highest if share else 0.0

    def of_bar(self, entry: Bar, side: int) -> list[tuple[float, str]]:
        """Return the heights of a bar and of its part in the event, with CSS classes, if not 0."""
        of = ("dp-d", "dp-d2")[side]
        counts = (entry.counts[side], f"{of} dp-out"), (entry.inside[side], f"{of} dp-in")
        return [(self.height(count, side), kind) for count, kind in counts if count]


def _upright_bars(
    bars: Sequence[Bar], heights: _Heights, shares: Sequence[str], title: str, of: str
) -> str:
    """Draw upright bars of equal width, with some of their numbers below."""
    parts, base, step = [], 0.0, (RIGHT - LEFT) / len(bars)
    for side, name in enumerate(("D", "D'")):
        base += 22 + BAR_HEIGHT
        parts.append(_text(LEFT, base - BAR_HEIGHT - 8, f"on {name}: {shares[side]} in S"))
        for at, entry in enumerate(bars):
            for height, kind in heights.of_bar(entry, side):
                tall, x = BAR_HEIGHT * height, LEFT + at * step
                parts.append(_bar(x, base - tall, 0.9 * step, tall, kind))
        parts.append(line([(LEFT, base), (RIGHT, base)], "dp-axis"))
    marks = iter(MARKS)
    lows = [entry.low for entry in bars if entry.low is not None]
    rough = {low: tick_text(float(f"{low:.3g}")) for low in lows}
    is_told = len(set(rough.values())) == len(set(lows))
    for at, entry in enumerate(bars):
        middle = LEFT + (at + 0.45) * step
        if not _is_numeric(entry):
            parts.append(_text(middle, base + 15, next(marks, ""), "dp-middle"))
        elif at % math.ceil(len(bars) / 5) == 1 and entry.low is not None:
            x = middle if entry.low == entry.high else LEFT + at * step
            name = rough[entry.low] if is_told else tick_text(entry.low)
            parts.append(_text(x, base + 15, name, "dp-middle"))
    parts.append(_text((LEFT + RIGHT) / 2, base + 30, of, "dp-middle"))
    return _svg(base + 36, title, parts)


def _lying_bars(histogram: Histogram, heights: _Heights, title: str) -> str:
    """Draw bars from left to right, under the name of each kind."""
    parts, y, left = [], 14.0, LEFT + 22
    room = RIGHT - left - 52
    for entry in histogram.bars:
        name = _bar_name(entry, histogram.of) + (" (in S)" if any(entry.inside) else "")
        parts.append(_text(LEFT, y, name))
        for side, name in enumerate(("D", "D'")):
            top, count = y + 5 + 14 * side, entry.counts[side]
            parts.append(_text(left - 6, top + 9, name, "dp-end"))
            parts += [
                _bar(left, top, room * n, 11, kind) for n, kind in heights.of_bar(entry, side)
            ]
            end = left + room * heights.height(count, side) + 6
            parts.append(_text(end, top + 9, percent(count / heights.runs[side])))
        y += 52
    return _svg(y - 8, title, parts)


def _bar_name(entry: Bar, of: str) -> str:
    if entry.label:
        return entry.label
    if entry.low is None:
        return f"{of} < {tick_text(entry.high or 0.0)}"
    if entry.high is None:
        return f"{of} >= {tick_text(entry.low)}"
    return f"{tick_text(entry.low)} to {tick_text(entry.high)}"


# --- error rates ---


def trade_off(pictures: Pictures, *, violated: bool) -> Drawing:
    """Draw false positives against false negatives, with what the claim does not allow."""
    window = _window(pictures)
    x, y = (
        PictureAxis(window[0], window[1], 60.0, RIGHT),
        PictureAxis(window[2], window[3], 230.0, 12.0),
    )
    curve = [(x(a), y(b)) for a, b in _sample_curve(pictures.allowed, window)]
    corners = (x.start, y.start), (x.end, y.start)
    parts = [line([corners[0], *curve, corners[1]], "dp-forbidden").replace('"/>', 'Z"/>')]
    parts.append(line(curve, "dp-claim"))
    caption, title = "The claim rules out what is shaded.", "Error rates of the learned attack"
    if pictures.event is not None:
        (low1, at1, high1), (low2, at2, high2) = pictures.event
        width, height = x(high1) - x(low1), y(low2) - y(high2)
        parts.append(_bar(x(low1), y(high2), width, height, "dp-uncertain"))
        parts.append(f'<circle class="dp-event" cx="{_n(x(at1))}" cy="{_n(y(at2))}" r="3.5"/>')
        caption += " Dot: fresh runs, in a box of their confidence intervals."
        title = f"The event has {percent(at1)} false positives, {percent(at2)} false negatives"
    if pictures.attack:
        attack = [(x(a), y(b)) for a, b in _sample_curve(pictures.attack, window)]
        parts.append(line(attack, "dp-attack"))
        caption += " Line: thresholds of the learned attack, by the runs that were bet on."
    if not violated:
        what = "it" if pictures.event is None else "both"
        caption += f" Chance may take {what} a little into the shaded region."
    if window != (0.0, 1.0, 0.0, 1.0):
        caption += " Enlarged around the dot."
    parts += _across(x, 230, "false positives: outputs on D' in S")
    parts += _upwards(y, 60.0, "false negatives: on D, not in S")
    return Drawing("Telling D from D'", _svg(266, title, parts), caption)


def _window(pictures: Pictures) -> tuple[float, float, float, float]:
    """Return the part of the unit square to draw."""
    if pictures.event is not None:
        positives, negatives = pictures.event
        xs, ys = zip(*pictures.allowed, strict=True)
        allowed = np.interp(positives[1], xs, ys)
        gap = abs(float(allowed) - negatives[1])
        if gap < HARDLY_SEEN:
            return *_rate_window(positives, gap), *_rate_window(negatives, gap)
    return 0.0, 1.0, 0.0, 1.0


def _rate_window(rate: Interval, gap: float) -> tuple[float, float]:
    low, at, high = rate
    reach = max(1.5 * (high - low), 2.5 * gap, 1e-5)
    start = min(max(at - reach, 0.0), max(1 - 2 * reach, 0.0))
    return start, min(start + 2 * reach, 1.0)


def _sample_curve(points: Points, window: tuple[float, ...]) -> Points:
    """Return points of a falling curve over a window, its own corners among them."""
    left, right, _, _ = window
    xs, ys = zip(*sorted(points, key=lambda point: (point[0], -point[1])), strict=True)
    corners = [x for x in xs if left < x < right]
    at = np.unique(np.concatenate([np.linspace(left, right, CURVE_POINTS), corners]))
    return tuple(zip(at.tolist(), np.interp(at, xs, ys).tolist(), strict=True))


# --- axes, lines and numbers ---


@dataclass(frozen=True, slots=True)
class PictureAxis:
    """A map from values to places on the page; values beyond the ends are drawn at the end."""

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
        """Return round values, `about` of them or fewer."""
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        step = 10 ** math.floor(math.log10(span / about))
        step *= next((m for m in (1, 2, 5, 10) if span / (m * step) <= about), 10)
        lowest, highest = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [k * step for k in range(lowest, highest + 1)]


def line(points: Iterable[tuple[float, float]], kind: str) -> str:
    """Draw points joined by straight lines."""
    places = dict.fromkeys(f"{_n(x)} {_n(y)}" for x, y in points)
    return f'<path class="{kind}" d="M{"L".join(places)}"/>'


def _svg(height: float, title: str, parts: Iterable[str]) -> str:
    """Make a picture, with a title for those who cannot see it."""
    return (
        f'<svg class="dp-picture" role="img" viewBox="0 0 {_n(WIDTH)} {_n(height)}">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )


def _bar(x: float, y: float, width: float, height: float, kind: str) -> str:
    size = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
    return f'<rect class="{kind}" {size}/>'


def _text(x: float, y: float, said: str, kind: str = "", turned: str = "") -> str:
    classes = f' class="{kind}"' if kind else ""
    return f'<text{classes} x="{_n(x)}" y="{_n(y)}"{turned}>{escape(said)}</text>'


def _across(axis: PictureAxis, y: float, label: str) -> list[str]:
    """Draw the horizontal axis at the height y."""
    ticks = axis.ticks()
    marks = "".join(f"M{_n(axis(tick))} {_n(y)}V{_n(y + 4)}" for tick in ticks)
    return [
        f'<path class="dp-axis" d="M{_n(axis.start)} {_n(y)}H{_n(axis.end)}{marks}"/>',
        *(_text(axis(tick), y + 15, tick_text(tick), "dp-middle") for tick in ticks),
        _text((axis.start + axis.end) / 2, y + 30, label, "dp-middle"),
    ]


def _upwards(axis: PictureAxis, x: float, label: str) -> list[str]:
    """Draw the vertical axis at x."""
    ticks, middle = axis.ticks(), _n((axis.start + axis.end) / 2)
    marks = "".join(f"M{_n(x)} {_n(axis(tick))}H{_n(x - 4)}" for tick in ticks)
    return [
        f'<path class="dp-axis" d="M{_n(x)} {_n(axis.start)}V{_n(axis.end)}{marks}"/>',
        *(_text(x - 6, axis(tick) + 4, tick_text(tick), "dp-end") for tick in ticks),
        _text(11, float(middle), label, "dp-middle", f' transform="rotate(-90 11 {middle})"'),
    ]


def tick_text(value: float) -> str:
    """Format a number at a tick: ``1,000``, ``0.05``, ``10⁻⁶``."""
    if value != 0 and not 1e-3 <= abs(value) < 1e7:  # too long below an axis
        digits, _, exponent = f"{value:.2e}".partition("e")
        digits = f"{float(digits):g}"
        factor = {"1": "", "-1": "-"}.get(digits, f"{digits}·")
        return f"{factor}10{str(int(exponent)).translate(_SUPERSCRIPT)}"
    return f"{value:,.6g}" if abs(value) < 1000 else f"{value:,.0f}"


def percent(share: float) -> str:
    """Format a share to two digits: ``49 %``, ``6.7 %``, ``0.04 %``."""
    value = 100 * share
    if value == 0 or value >= 99.95:
        return f"{value:.0f} %"
    digits = max(0, 1 - math.floor(math.log10(value)))
    return f"{value:.{min(digits, 6)}f} %"


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
