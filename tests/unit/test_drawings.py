"""Pictures as SVG: what they show, and that they show it where it belongs."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

from results import PICTURES

from pytest_dp.report.drawings import (
    WIDTH,
    trade_off,
)


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


def ends(path: ET.Element) -> list[tuple[float, float]]:
    return [tuple(map(float, at.split())) for at in re.findall(r"[ML]([\d. -]+)", path.attrib["d"])]


# Outputs


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


def inside(point, polygon) -> bool:
    """Whether a ray to the right leaves the polygon an odd number of times."""
    x, y = point
    crossings = 0
    for (x1, y1), (x2, y2) in zip(polygon, [*polygon[1:], polygon[0]], strict=True):
        if (y1 > y) != (y2 > y) and x < x1 + (x2 - x1) * (y - y1) / (y2 - y1):
            crossings += 1
    return crossings % 2 == 1
