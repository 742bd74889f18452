"""What users see of several results: the table, -v, and what GitHub gets, with its escaping."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from results import COUNT, PASSED, VIOLATION, rows

from pytest_dp.claiming.claim import Claim, Promise
from pytest_dp.privacy import ApproximateDP
from pytest_dp.report import files
from pytest_dp.report.record import Record
from pytest_dp.report.summary_table import (
    legend,
    short_finding,
    table,
    total,
    verbose_lines,
    verdict,
)
from pytest_dp.report.violation import headline
from pytest_dp.results.outcome import Estimate

TABLE = """\
claim                            promised  result                           time
shop/stats.py::noisy_count       eps 1.0   VIOLATED  eps >= 1.89           0.8 s
shop/stats.py::noisy_max         eps 1.0   pass  detects eps >= 1.32       0.8 s
shop/stats.py::noisy_max         eps 0.5   pass  detects eps >= 0.624      125 s
...ector_with_gap[threshold=12]  eps 0.5   inconclusive  nothing is known   60 s
  912 runs in 60 s are too few: raise max_seconds, or make the mechanism faster
shop/stats.py::mean              eps 1.0   NOT AUDITED                         -

detects: 19 of 20 audits find a loss that large. No test can prove privacy."""


def test_table_exactly():
    assert table([]) == []
    assert "\n".join(line for line, _ in table(rows())) == TABLE


@pytest.mark.parametrize("unreached", [(), ("stats.py:3",)], ids=["all-code", "some-code"])
@pytest.mark.parametrize("mode", ["exact", "aligned"])
def test_a_pass_by_a_known_loss_says_it_in_place_of_what_would_be_caught(mode, unreached):
    known = Estimate(1.0, 0.0, mode, pairs=1, runs=200)
    passed = replace(PASSED, estimate=known, resolution=1.0, unreached=unreached)
    assert passed.strength == ("fair" if unreached else mode)
    loss = "loss at most 1.00" if mode == "aligned" else "loss 1.00, computed"
    assert headline(passed) == f"no violation of eps = 1.0 found: {loss} ({passed.strength})"
    record = Record.of(passed, COUNT, "shop/stats.py", 8)
    assert short_finding(record) == loss
    lines = "\n".join(verbose_lines(record))
    assert "caught" not in lines
    assert ("at most fair: not all of its code ran" in lines) == bool(unreached)
    assert "1 pairs" not in lines


@pytest.mark.parametrize("width", [80, 132])
def test_each_claim_has_one_line_that_fits(width):
    far = replace(rows()[1], nodeid="test_stats.py::test_" + "a" * 200, samples=10**9)
    records = [*rows(), replace(far, seconds=4_000.0)]
    lines = [line for line, _ in table(records, width)]
    assert max(map(len, lines)) <= width
    assert all(line == line.rstrip() for line in lines)
    assert sum("eps 1.0" in line or "eps 0.5" in line for line in lines) == len(records)
    assert any(re.search(r"\.\.\.a{9}.* detects eps >= 1.32 +4000 s$", line) for line in lines)


def test_what_was_found_stands_in_a_few_words():
    known = Estimate(1.0, 0.0, "aligned", pairs=1, runs=200)
    for given, said in [
        ({"estimate": known, "resolution": 1 + 4e-15}, "loss at most 1.00"),
        ({"estimate": known, "resolution": 1.0001}, "loss at most 1.01"),
        ({"estimate": known, "resolution": 3.846e-10}, "loss at most 3.85e-10"),
        ({"estimate": known, "resolution": 9.990007e-07}, "loss at most 1.00e-06"),
        (
            {"estimate": known, "resolution": 0.9, "parameter": "scale"},
            "loss at most 0.900 times the claim",
        ),
        ({"parameter": "scale", "resolution": 1.3}, "detects loss >= 1.30 times the claim"),
        ({"over_now": True, "may_lose": 1.26}, "up to 1.26 not ruled out"),
        ({"over_now": True, "may_lose": None}, "nothing ruled out"),
        ({"resolution": None}, "detects nothing"),
        ({"resolution": None, "far_below": 0.27}, "strongest attack 0.270"),
        (
            {"status": "unchanged", "unchanged_since": "2026-11-20T03:17"},
            "unchanged since 2026-11-20",
        ),
        ({"status": "inconclusive", "strength": "blind"}, "nothing tells D from D'"),
        ({"status": "violated", "one_sided": True}, "S comes on D only"),
    ]:
        assert short_finding(replace(rows()[1], **given)) == said


def test_a_violation_beyond_the_examples_is_told_as_such():
    row = replace(rows()[0], outside="0 (they have 18 to 90)")
    lines = [line for line, _ in table([row])]
    assert "  outside the declared inputs: 0 (they have 18 to 90)" in lines
    assert "fails no test" not in " ".join(lines)
    passed = replace(rows()[1], beyond=replace(row, status="beyond"))
    assert legend([passed])[-2] == "outside the declared inputs: fails no test."
    assert not any("beyond" in said for said in legend([rows()[1]]))


def test_the_strength_of_a_pass():
    for eps in [0.1, 7.0]:
        for resolution, strength in [
            (1.25, "strong"),
            (1.26, "fair"),
            (2.01, "weak"),
            (math.inf, "weak"),
        ]:
            passed = replace(
                PASSED, claim=Claim(Promise(ApproximateDP(eps))), resolution=resolution * eps
            )
            row = Record.of(passed, COUNT, "shop/stats.py", 8)
            told, sign = ("weak", "⚠️") if strength == "weak" else ("pass", "✅")
            assert (passed.strength, verdict(row)) == (strength, told)
            assert any(f"  {told}  " in line for line, _ in table([row]))
            assert f"| {sign} {told} |" in files.job_summary([row])
            for other in ("violated", "inconclusive"):
                assert replace(passed, verdict=other).strength == ""


def test_verbose():
    assert verbose_lines(rows()[3]) == [
        "sparse_vector_with_gap[eps=0.5-threshold=12]",
        "  inconclusive: could not test eps = 0.5 with 912 samples in 1 min",
        "  method       sequential, alpha 1e-06 (chance of a false alarm)",
        "  pairs tried  12 of 40",
        "  strongest    output >= 1.0",
        "  e-value      0.65 after 1,840 samples",
        "  samples      912 in 1 min",
        "  seed         8f2c",
        "  reason       912 runs in 60 s are too few: raise max_seconds, or make the",
        "               mechanism faster",
        "  note         stopped by max_seconds=60",
    ]
    assert verbose_lines(rows()[4]) == ["mean[eps=1.0]", "  The mechanism raised on all 50 runs."]


def test_annotation():
    line = files.annotation(rows()[0], "src/shop/stats.py")
    assert line.startswith(
        "::error file=src/shop/stats.py,line=8,"
        "title=Privacy claim violated%3A noisy_count[eps=1.0]::"
        "claimed eps = 1.0, but eps >= 1.89 (99.9999 %25 confidence)%0A%0AS = {output >= 1.0}"
    )
    assert "\n" not in line
    assert files.annotation(rows()[0], "").startswith("::error line=8,title=")


def test_annotation_escapes_properties_and_message():
    row = replace(rows()[4], name="f[a,b:c\r\n%]", line=None, headline="50 %, a: b\r\n::error::c")
    assert files.annotation(row, "a,b:c.py") == (
        "::error file=a%2Cb%3Ac.py,title=Privacy claim not audited%3A f[a%2Cb%3Ac%0D%0A%25]::"
        "50 %25, a: b%0D%0A::error::c"
    )


def cells_of(markdown):
    """The cells of each line of the table; an escaped bar is no border."""
    lines = [line for line in markdown.splitlines() if line.startswith("| ")]
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]


def test_summary():
    assert files.job_summary([]) == ""
    text = files.job_summary(rows())
    first, *_ = text.splitlines()
    assert first == "## ❌ Privacy: 5 claims, 1 violated, 1 not audited, 1 inconclusive"
    order = ["### ❌ `noisy_count", "### ❌ `mean", "### ⚠️ `sparse", "| verdict |"]
    assert sorted(order, key=text.index) == order
    assert text.count(VIOLATION) == 1
    assert "stopped by max\\_seconds=60" in text
    cells = cells_of(text)
    assert {len(line) for line in cells} == {5}
    assert [line[0].split(" ", 2)[2].strip() for line in cells[2:]] == [
        "violated",
        "not audited",
        "inconclusive",
        "pass",
        "pass",
    ]


def test_all_of_it_in_one_line():
    violated, weak, blind = rows()[0], *rows()[2:4]
    weak, blind = replace(weak, strength="weak"), replace(blind, strength="blind")
    records = [violated, *[rows()[1]] * 13, weak, weak, blind]
    assert total(records, loud=True) == "17 claims, 1 VIOLATED, 1 blind, 2 weak"
    others = [replace(violated, expected=True), replace(violated, status="weakened"), rows()[4]]
    assert total(others, loud=True) == (
        "2 claims, 1 NOT AUDITED, 1 broken as expected, 1 not as on record"
    )
    assert total([weak]) == "1 claim, no violation found, 1 weak"


def test_summary_survives_hostile_text():
    row = replace(
        rows()[0],
        nodeid="a.py::f[a|b`c``d\n<img src=x>]",
        name="f[a|b`c``d\n<img src=x>]",
        headline="<b>|*x* `y`\nz",
        details="````\n</details>\n\x1b[31mred\x1b[0m\n```",
    )
    text = files.job_summary([row])
    assert {len(line) for line in cells_of(text)} == {5}
    assert "| ```f" not in text
    assert "```a.py::f[a\\|b`c``d <img src=x>]```" in text
    quiet = files.job_summary([replace(row, details="")])
    assert "&lt;b&gt;\\|\\*x\\* \\`y\\` z" in quiet
    assert "`````text\n````\n</details>\nred\n```\n`````" in text


def test_summary_stays_below_the_limit_of_github():
    large = replace(rows()[0], details="x" * 200_000)
    text = files.job_summary([large] * 10)
    assert len(text.encode()) < 1024**2
    assert "6 more did not fit here" in text
    assert len(cells_of(text)) == 12


def test_the_reason_of_a_grade_is_one_sentence():
    for changed, said in [
        ({"strength": "strong"}, None),
        ({"strength": "weak"}, "grade        weak: noise 2 times too small might"),
        ({"strength": "weak", "over_now": True}, "grade        weak: a loss above the claim"),
        ({"strength": "fair"}, "grade        fair: noise 1.25 times too small"),
        ({"strength": "fair", "delta": 1e-5}, "fair: noise 1.25 times too small, or a leak"),
        ({"strength": "fair", "unreached": ("a.py:3",)}, "at most fair: not all of its code"),
    ]:
        record = replace(Record.of(PASSED, COUNT, "shop/stats.py", 8), **changed)
        lines = [line for line in verbose_lines(record) if " grade " in line]
        assert len(lines) == (said is not None)
        assert said is None or said in lines[0]
