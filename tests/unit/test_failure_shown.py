"""What fails in pytest, and how it shows a failure of ours, without an audit."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from results import BROKEN, COUNT, PASSED

from pytest_dp import RenyiDP, audit
from pytest_dp.auditors.session import PrivacyViolation
from pytest_dp.basics.errors import RAISING, noting_faults, pop_noted
from pytest_dp.claiming.claim import Claim, Promise
from pytest_dp.plugin.check import _grade_reason
from pytest_dp.plugin.claim_session import represent
from pytest_dp.privacy import read_guarantee
from pytest_dp.report import numbers
from pytest_dp.report.record import Record
from pytest_dp.report.summary_table import total
from pytest_dp.report.violation import violation


@pytest.mark.parametrize(
    ("claim", "last"),
    [
        ({"eps": 1.0}, "claimed eps = 1.0, but eps >= 1.89"),
        ({"eps": 1.0, "delta": 1e-6}, "claimed eps = 1.0, delta = 1e-06, but eps >= 1.89"),
        (
            {"guarantee": RenyiDP({8: 0.5})},
            "claimed eps = 0.5 at order 8, but eps >= 1.89 at order",
        ),
    ],
)
def test_the_last_line_has_all_but_the_confidence(claim, last, tmp_path):
    result = replace(BROKEN, claim=Claim(Promise(read_guarantee(claim))))
    error = PrivacyViolation(violation(result), result)
    shown = represent(error, SimpleNamespace(rootpath=tmp_path), tmp_path / "stats.py", 5)
    place = shown.reprtraceback.reprentries[0].reprfileloc
    assert place.path == "stats.py"
    assert place.message.startswith(f"PrivacyViolation: {last}")


RISING = ("inconclusive", "weak", "fair", "strong", "aligned", "exact")


def test_a_pass_below_the_floor_of_its_claim_is_red():
    for strength in RISING[1:]:
        for at_least in RISING:
            passed = SimpleNamespace(verdict="no violation", strength=strength, unreached=())
            passed.far_below, passed.not_exact, passed.stopped_early = None, "hash", False
            said = _grade_reason(passed, at_least)
            is_red = RISING.index(strength) < RISING.index(at_least)
            asked = f"The pass is {strength}, and at_least={at_least!r} is asked for"
            assert (asked in said) is is_red
            computed = is_red and at_least in ("aligned", "exact")
            assert ("a loss that is computed" in said) is computed
            assert _grade_reason(SimpleNamespace(verdict="violated", strength=""), at_least) == ""
            record = replace(Record.of(PASSED, COUNT, "shop/stats.py", 8), too_little=said)
            assert ("1 less than asked for" in total([record])) is is_red


def own_function():
    return numbers.format_count("no number")


def users_code():
    return {}["missing"]


def test_a_fault_is_raised_in_tests():
    with pytest.raises(ValueError, match="no number"), noting_faults("reading a number"):
        own_function()


def test_a_fault_is_a_note_in_a_run_of_a_user(monkeypatch):
    monkeypatch.delenv(RAISING)
    with noting_faults("reading a number"):
        own_function()
    with noting_faults("running the code of a user"):
        users_code()
    (note,) = pop_noted()
    assert note.startswith("reading a number failed: ")
    assert "(pytest_dp/report/numbers.py:" in note
    assert note.endswith("This is a fault of pytest-dp: please report it")
    assert pop_noted() == ()


@pytest.mark.slow
def test_a_fault_within_an_audit_is_a_note_of_its_result(monkeypatch):
    monkeypatch.delenv(RAISING)
    monkeypatch.setattr(
        "pytest_dp.proposers.interesting_values._constants_in_code", lambda code: own_function()
    )
    claim = {"eps": 1.0, "inputs": [[1]], "neighbors": "add_remove_one"}
    result = audit(lambda records, rng: len(records) + rng.laplace(scale=0.2), **claim)
    assert result.violated
    assert any("reading constants of code failed: " in str(note) for note in result.notes)
