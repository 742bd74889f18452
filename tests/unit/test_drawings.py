"""Pictures as SVG: what they show, and that they show it where it belongs."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from results import BY_RANGE, COUNTS, PICTURES, RANGES, rows

from pytest_dp.report.drawings import (
    WIDTH,
    PictureAxis,
    drawings,
    outputs,
    trade_off,
)
from pytest_dp.results.pictures import Bar, Histogram, Pictures


def told(pictures):
    """A violated claim of eps = 1."""
    return replace(rows()[0], pictures=pictures)


def read(svg: str) -> ET.Element:
    """The picture, if it is well-formed, says what it is, and all of it can be seen."""
    root = ET.fromstring(svg)
    assert root.attrib["role"] == "img"
    assert root[0].tag == "title"
    assert root[0].text
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    assert width == WIDTH
    for name, high in (("x", width), ("y", height), ("cx", width), ("cy", height)):
        for element in root.iter():
            if name in element.attrib:
                assert 0 <= float(element.attrib[name]) <= high
    for element in root.iter("rect"):
        assert float(element.attrib["width"]) >= 0
        assert float(element.attrib["y"]) + float(element.attrib["height"]) <= height
    for element in root.iter("path"):
        assert re.fullmatch(r"[MLHVZ\d. -]+", element.attrib["d"])
    return root


def of_class(root: ET.Element, kind: str) -> list[ET.Element]:
    return [e for e in root.iter() if kind in e.attrib.get("class", "").split()]


def words(root: ET.Element) -> list[str]:
    return [element.text for element in root.iter("text")]


def ends(path: ET.Element) -> list[tuple[float, float]]:
    return [tuple(map(float, at.split())) for at in re.findall(r"[ML]([\d. -]+)", path.attrib["d"])]


def test_all_that_there_is_is_drawn_and_nothing_else():
    drawn = drawings(told(PICTURES))
    assert [drawing.heading for drawing in drawn] == [
        "Outputs on D and D'",
        "Telling D from D'",
    ]
    for drawing in drawn:
        read(drawing.svg)
        assert drawing.caption.endswith(".")
    assert [d.heading for d in drawings(told(replace(PICTURES, outputs=None)))] == [
        "Telling D from D'"
    ]
    for one in ({"attack": ()}, {"event": None}):
        assert "Telling D from D'" in [d.heading for d in drawings(told(replace(PICTURES, **one)))]
    assert drawings(told(Pictures())) == []


# Outputs


def test_bars_are_as_high_as_there_are_outputs_and_filled_inside_of_the_event():
    root = read(outputs(BY_RANGE).svg)
    assert "on D: 89 % in S" in words(root)
    assert "on D': 30 % in S" in words(root)
    for side, kind in enumerate(("dp-d", "dp-d2")):
        bars = [e for e in of_class(root, "dp-out") if kind in e.attrib["class"].split()]
        heights = [float(e.attrib["height"]) for e in bars]
        counts = [counts[side] for counts in COUNTS]
        assert heights == pytest.approx([78 * n / 500 for n in counts], abs=0.06)
        filled = [e for e in of_class(root, "dp-in") if kind in e.attrib["class"].split()]
        assert [e.attrib["x"] for e in filled] == [e.attrib["x"] for e in bars[:3]]
        assert [e.attrib["height"] for e in filled] == [e.attrib["height"] for e in bars[:3]]


def test_a_rare_event_is_seen_on_a_logarithmic_scale():
    rare = Histogram("output", (1_000, 1_000), (*RANGES[1:], Bar("1e6", 9e6, 9e6, (9, 0), (9, 0))))
    rare = replace(
        rare, bars=tuple(replace(b, inside=(0, 0)) for b in rare.bars[:-1]) + rare.bars[-1:]
    )
    drawing = outputs(rare)
    assert "logarithmic" in drawing.caption
    (filled,) = of_class(read(drawing.svg), "dp-in")
    assert float(filled.attrib["height"]) > 20


def test_kinds_beside_numbers_are_marked_and_named():
    odd = (
        Bar("raises ValueError", None, None, (5, 6), (0, 0)),
        Bar("nan", None, None, (1, 1), (0, 0)),
    )
    drawing = outputs(replace(BY_RANGE, bars=(*RANGES, *odd)))
    assert drawing.caption.endswith("a: raises ValueError; b: nan.")
    root = read(drawing.svg)
    assert {"a", "b"} <= set(words(root))
    right_of_numbers = max(float(e.attrib["x"]) for e in of_class(root, "dp-out"))
    assert right_of_numbers > 300


def test_a_few_kinds_have_a_line_each_and_nothing_of_them_is_markup():
    bars = (Bar("<b>&'", None, None, (80, 10), (80, 10)), Bar("no", None, None, (20, 90), (0, 0)))
    root = read(outputs(Histogram("output<i>", (100, 100), bars)).svg)
    assert words(root) == [
        "<b>&' (in S)",
        "D",
        "80 %",
        "D'",
        "10 %",
        "no",
        "D",
        "20 %",
        "D'",
        "90 %",
    ]
    lengths = [float(e.attrib["width"]) for e in of_class(root, "dp-out")]
    assert lengths == pytest.approx([room * lengths[3] / 90 for room in (80, 10, 20, 90)], abs=0.1)
    assert len(of_class(root, "dp-in")) == 2


# What the claim allows


def test_what_breaks_the_claim_lies_in_what_it_rules_out():
    drawing = trade_off(PICTURES, violated=True)
    root = read(drawing.svg)
    (forbidden,), (event,) = of_class(root, "dp-forbidden"), of_class(root, "dp-event")
    x, y = float(event.attrib["cx"]), float(event.attrib["cy"])
    assert inside((x, y), ends(forbidden))
    assert "Enlarged" not in drawing.caption
    assert "Chance" not in drawing.caption
    assert "Chance" in trade_off(PICTURES, violated=False).caption
    kept = replace(PICTURES, event=((0.28, 0.3, 0.32), (0.48, 0.5, 0.52)))
    root = read(trade_off(kept, violated=True).svg)
    (event,) = of_class(root, "dp-event")
    at = float(event.attrib["cx"]), float(event.attrib["cy"])
    assert not inside(at, ends(of_class(root, "dp-forbidden")[0]))


@pytest.mark.parametrize(
    "event",
    [
        ((0.395, 0.4, 0.405), (0.18, 0.19, 0.2)),  # allowed: 0.2
        ((0.0, 0.0, 1e-4), (0.988, 0.99, 0.992)),
        ((0.988, 0.99, 0.992), (0.0, 0.0, 1e-4)),
        ((0.0, 0.0, 2e-7), (1 - 1.1e-6, 1 - 1e-6, 1 - 0.9e-6)),
    ],
)
def test_what_is_only_just_broken_is_enlarged(event):
    drawing = trade_off(replace(PICTURES, event=event), violated=True)
    assert drawing.caption.endswith("Enlarged around the dot.")
    root = read(drawing.svg)
    (forbidden,), (dot,) = of_class(root, "dp-forbidden"), of_class(root, "dp-event")
    x, y = float(dot.attrib["cx"]), float(dot.attrib["cy"])
    region = ends(forbidden)
    assert inside((min(max(x, 60.5), 349.5), min(max(y, 12.5), 229.5)), region)
    width = max(a for a, _ in region) - min(a for a, _ in region)
    assert width > 30
    (box,) = of_class(root, "dp-uncertain")
    assert float(box.attrib["width"]) > 10 or event[0][1] == 0


def inside(point, polygon) -> bool:
    """Whether a ray to the right leaves the polygon an odd number of times."""
    x, y = point
    crossings = 0
    for (x1, y1), (x2, y2) in zip(polygon, [*polygon[1:], polygon[0]], strict=True):
        if (y1 > y) != (y2 > y) and x < x1 + (x2 - x1) * (y - y1) / (y2 - y1):
            crossings += 1
    return crossings % 2 == 1


# Axes, lines and numbers


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.integers(3, 8))
def test_ticks_are_a_few_round_values_on_the_axis(low, span, about):
    axis = PictureAxis(low, low + span, 0, 100)
    if axis.high - axis.low < 1e-9 * max(abs(low), 1):
        return
    ticks = axis.ticks(about)
    assert 1 <= len(ticks) <= about + 1
    slack = 1e-6 * (span + abs(low))
    assert all(axis.low - slack <= tick <= axis.high + slack for tick in ticks)


def test_a_curve_is_drawn_where_it_is():
    root = read(trade_off(PICTURES, violated=True).svg)
    x, y = PictureAxis(0, 1, 60, 350), PictureAxis(0, 1, 230, 12)
    (attack,) = of_class(root, "dp-attack")
    drawn = np.array(ends(attack))
    at, rates = zip(*PICTURES.attack, strict=True)
    for share in np.linspace(0, 1, 51):
        there = np.interp(x(share), drawn[:, 0], drawn[:, 1])
        assert there == pytest.approx(y(np.interp(share, at, rates)), abs=0.3)
