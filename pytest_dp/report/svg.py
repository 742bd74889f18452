"""Axes, lines and bars as SVG, whose colours are those of the page around it (``page.css``).

Written without a library: a report of hundreds of claims has to stay small and quick, needs no
further package like this, and follows the reader's light or dark theme, which no drawing with fixed
colours does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from pytest_dp.limits import UNSEEN

WIDTH = 360.0
"""Width of a picture, in the units in which text is 11 high. Given by narrow phones."""
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, slots=True)
class Axis:
    """From values to places on the page; what is beyond the ends is drawn at the end."""

    low: float
    high: float
    """The value at `end`, as `low` is that at `start`."""
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = self.high / 2 - self.low / 2  # of which the double may be beyond floats
        share = min(max((value / 2 - self.low / 2) / span, 0.0), 1.0) if span > 0 else 0.0
        return self.start + share * (self.end - self.start)

    def ticks(self, about: int = 5) -> list[float]:
        """Round values, about so many; with fewer than three there may be none."""
        span = self.high - self.low
        if not 0 < span / about < math.inf:
            return [self.low]
        step = 10 ** math.floor(math.log10(span / about))
        step *= next((m for m in (1, 2, 5, 10) if span / (m * step) <= about), 10)
        lowest, highest = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [k * step for k in range(lowest, highest + 1)]


def svg(height: float, title: str, parts: Iterable[str]) -> str:
    """A picture with a title for those who cannot see it."""
    return (
        f'<svg class="dp-picture" role="img" viewBox="0 0 {_n(WIDTH)} {_n(height)}">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )


def line(points: Iterable[tuple[float, float]], kind: str) -> str:
    """Points joined by straight lines, without those that make no difference to the eye."""
    points = list(points)
    if not points:
        return ""
    start, *others = simplify_line(points, UNSEEN)
    drawn = "".join(f"L{_n(x)} {_n(y)}" for x, y in others)
    return f'<path class="{kind}" d="M{_n(start[0])} {_n(start[1])}{drawn}"/>'


def area(points: Iterable[tuple[float, float]]) -> str:
    """The inside of a line that is closed, which is not allowed."""
    return line(points, "dp-forbidden").replace('"/>', 'Z"/>')


def bar(x: float, y: float, width: float, height: float, kind: str) -> str:
    """A rectangle."""
    size = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
    return f'<rect class="{kind}" {size}/>'


def dot(x: float, y: float) -> str:
    """A point that is marked."""
    return f'<circle class="dp-event" cx="{_n(x)}" cy="{_n(y)}" r="3.5"/>'


def text(x: float, y: float, said: str, kind: str = "", turned: bool = False) -> str:
    """Words; their class says how they are set, such as ``dp-end`` for those that end here."""
    place = f'x="{_n(x)}" y="{_n(y)}"'
    if turned:
        place += f' transform="rotate(-90 {_n(x)} {_n(y)})"'
    classes = f' class="{kind}"' if kind else ""
    return f"<text{classes} {place}>{escape(said)}</text>"


def across(
    axis: Axis, y: float, label: str, ticks: Sequence[float], show: Callable[[float], str]
) -> list[str]:
    """The horizontal axis, at the height y, with its ticks and its name."""
    places = [axis(tick) for tick in ticks]
    marks = "".join(f"M{_n(x)} {_n(y)}V{_n(y + 4)}" for x in places)
    return [
        f'<path class="dp-axis" d="M{_n(axis.start)} {_n(y)}H{_n(axis.end)}{marks}"/>',
        *(text(x, y + 15, show(tick), "dp-middle") for x, tick in zip(places, ticks, strict=True)),
        text((axis.start + axis.end) / 2, y + 30, label, "dp-middle"),
    ]


def upwards(
    axis: Axis, x: float, label: str, ticks: Sequence[float], show: Callable[[float], str]
) -> list[str]:
    """The vertical axis, at x, with its ticks and its name."""
    places = [axis(tick) for tick in ticks]
    marks = "".join(f"M{_n(x)} {_n(y)}H{_n(x - 4)}" for y in places)
    return [
        f'<path class="dp-axis" d="M{_n(x)} {_n(axis.start)}V{_n(axis.end)}{marks}"/>',
        *(text(x - 6, y + 4, show(tick), "dp-end") for y, tick in zip(places, ticks, strict=True)),
        text(11, (axis.start + axis.end) / 2, label, "dp-middle", turned=True),
    ]


def number(value: float) -> str:
    """A number at a tick: ``1,000``, ``0.05``, ``10⁻⁶``."""
    if value == 0:
        return "0"
    if not 1e-3 <= abs(value) < 1e7:  # too long below an axis
        digits, _, exponent = f"{value:.3g}".partition("e")
        if not exponent:
            digits, _, exponent = f"{value:.2e}".partition("e")
        digits = f"{float(digits):g}"
        sign = "-" if digits.startswith("-") else ""
        factor = "" if digits.lstrip("-") == "1" else f"{digits.lstrip('-')}·"
        return f"{sign}{factor}{power_of_ten(int(exponent))}"
    return f"{value:,.6g}" if abs(value) < 1000 else f"{value:,.0f}"


def power_of_ten(exponent: float) -> str:
    """``10⁻⁶``; 1 for the power 0."""
    power = round(exponent)
    return "1" if power == 0 else f"10{str(power).translate(_SUPERSCRIPT)}"


def percent(share: float) -> str:
    """``49 %``, ``6.7 %``, ``0.04 %``: two digits."""
    value = 100 * share
    if value == 0 or value >= 99.95:
        return f"{value:.0f} %"
    digits = max(0, 1 - math.floor(math.log10(value)))
    return f"{value:.{min(digits, 6)}f} %"


def simplify_line(points: list[tuple[float, float]], far: float) -> list[tuple[float, float]]:
    """Return a line of fewer points that is nowhere further than `far` from the given ones.

    Source: Douglas, Peucker, "Algorithms for the reduction of the number of points required to
    represent a digitized line or its caricature", Cartographica 1973.
    """
    visible, ahead = {0, len(points) - 1}, [(0, len(points) - 1)]
    while ahead:
        start, end = ahead.pop()
        between = range(start + 1, end)
        distances = [_distance(points[i], points[start], points[end]) for i in between]
        if max(distances, default=0.0) > far:
            at = between[distances.index(max(distances))]
            visible.add(at)
            ahead += [(start, at), (at, end)]
    return [points[i] for i in sorted(visible)]


def _distance(
    point: tuple[float, float], start: tuple[float, float], end: tuple[float, float]
) -> float:
    """From a point to what lies between two others."""
    (x, y), (x1, y1), (x2, y2) = point, start, end
    across, down = x2 - x1, y2 - y1
    squared = across**2 + down**2
    share = ((x - x1) * across + (y - y1) * down) / squared if squared else 0.0
    share = min(max(share, 0.0), 1.0)
    return math.hypot(x - x1 - share * across, y - y1 - share * down)


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
