"""The page on released libraries says what reports and counts say, and what nobody counted."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.libraries.counting import bounds, counted
from benchmarks.libraries.page import is_public, reasons_in, section

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
PACKS = re.findall(r"^LIBRARIES \?= (.*)$", MAKEFILE, re.MULTILINE)[0].split()


def test_bounds_are_those_of_clopper_and_pearson():
    low, high = bounds(0, 100)
    assert low == 0.0
    assert (1 - high) ** 100 == pytest.approx(1e-9 / 4)
    assert bounds(100, 100) == pytest.approx((1 - high, 1.0))


def test_a_count_is_held_against_what_is_allowed():
    row = counted(lambda x: x, (1, 0), lambda out: out == 1, lambda q: 3 * q, runs=1_000, why="")
    assert row["counts"] == [1_000, 0]
    assert row["broken"]
    assert row["allowed"] == 3 * bounds(0, 1_000)[1]


@pytest.mark.parametrize("pack", PACKS)
def test_a_pack_is_short_and_says_what_it_needs(pack):
    source = (ROOT / f"benchmarks/libraries/{pack}.py").read_text()
    assert source.count("\n") < 60
    assert re.search(r"^# requirements: \S+==\S+", source, re.MULTILINE)
    assert f"\n## {pack}\n" in (ROOT / "docs/libraries.md").read_text()


@pytest.mark.parametrize(
    ("status", "expected", "broken", "fine"),
    [
        ("no violation", False, None, True),
        ("violated", True, True, True),
        ("violated", True, False, False),
        ("violated", True, None, False),
        ("violated", False, True, False),
        ("error", False, None, False),
    ],
)
def test_violations_are_known_and_counted_or_it_fails(tmp_path, status, expected, broken, fine):
    record = {
        "name": "opendp[Laplace threshold]",
        "claim": "eps=1.0",
        "status": status,
        "strength": "",
    }
    record |= {"expected": expected, "samples": 1_000, "seconds": 1.0, "witness": {"text": "D = 1"}}
    report = {"created": "2026-11-25T00:00:00", "versions": {"python": "3.11"}, "claims": [record]}
    (tmp_path / "opendp.json").write_text(json.dumps(report))
    if broken is not None:
        count = {
            "counts": [9, 0],
            "runs": 10,
            "at_least": 0.5,
            "allowed": 0.25,
            "broken": broken,
            "why": "Kept.",
        }
        (tmp_path / "opendp_counts.json").write_text(json.dumps({"Laplace threshold": count}))
    text, as_expected, hidden = section("opendp", tmp_path)
    assert as_expected is fine
    assert hidden == 0
    assert ("### Laplace threshold" in text) is (status == "violated")
    assert ("9 and 0 of 10 runs" in text) is (broken is not None)
    assert ("Known: opendp/opendp#2922." in text) is (broken is not None)


UNKNOWN = """
import pytest
known = pytest.mark.xfail(strict=True, reason="owner/name#12")
new = pytest.mark.xfail(strict=True, reason="not reported yet")
test = claims({"one": entry(marks=known), "two": entry(marks=new), "three": entry()})
"""


def test_a_violation_that_nobody_knows_of_is_counted_and_not_named(tmp_path, monkeypatch):
    assert reasons_in(UNKNOWN) == {"one": "owner/name#12", "two": "not reported yet"}
    monkeypatch.setattr("benchmarks.libraries.page.reasons_in", lambda _: reasons_in(UNKNOWN))
    usual = {"claim": "eps=1.0", "strength": "", "samples": 1, "seconds": 1.0}
    usual |= {"witness": {"text": "D = 1"}}
    records = [
        {"name": f"opendp[{name}]", "status": status, "expected": status == "violated", **usual}
        for name, status in (("one", "violated"), ("two", "violated"), ("three", "no violation"))
    ]
    report = {"created": "2026-11-25T00:00:00", "versions": {}, "claims": records}
    (tmp_path / "opendp.json").write_text(json.dumps(report))
    text, fine, hidden = section("opendp", tmp_path)
    assert not fine, "nobody has counted"
    assert hidden == 1
    assert "| two |" not in text
    assert "### two" not in text
    assert "2 claims, 1 violated, 2 s." in text
    assert "### one" in text


def test_the_page_names_public_violations_only():
    """Those of the packs, whose reasons are public; of others it says how many there are."""
    text = (ROOT / "docs/libraries.md").read_text()
    shown = {pack: part for pack in PACKS for part in text.split("\n## ") if part.startswith(pack)}
    for pack in PACKS:
        reasons = reasons_in((ROOT / f"benchmarks/libraries/{pack}.py").read_text())
        assert all(map(is_public, reasons.values())), pack
        assert sorted(re.findall(r"^### (.*)", shown[pack], re.MULTILINE)) == sorted(reasons)
        assert f" claims, {len(reasons)} violated, " in shown[pack]
        for label, reason in reasons.items():
            assert f"| {label} |" in shown[pack]
            assert f"Known: {reason}." in shown[pack]
    [[claims, packages]] = re.findall(r"^(\d+) more claims, of (\d+) of these", text, re.MULTILINE)
    assert 0 < int(packages) <= min(len(PACKS), int(claims))
    assert "eported yet" not in text
