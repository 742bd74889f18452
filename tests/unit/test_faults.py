"""Faults of this package surface: raised in its tests, named by a note in a run of a user."""

from __future__ import annotations

import pytest

from pytest_dp import audit
from pytest_dp.basics.faults import RAISING, is_own, note_fault, noting_faults, pop_noted
from pytest_dp.report import numbers


def raised_by(function, *args):
    try:
        function(*args)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def own_function():
    return numbers.short_count("no number")


def users_code():
    return {}["missing"]


def test_who_raised_an_error_is_read_from_its_innermost_line():
    assert not is_own(raised_by(users_code))
    assert not is_own(ValueError("never raised"))
    assert is_own(raised_by(own_function))


def test_a_fault_is_raised_in_tests():
    error = raised_by(own_function)
    with pytest.raises(type(error)):
        note_fault(error, "reading a number")
    with noting_faults("running the code of a user"):
        users_code()
    assert pop_noted() == ()


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


def broken(records, rng):
    return len(records) + rng.laplace(scale=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["lines", "idle"])
def test_what_fails_after_a_violation_is_named_beside_it(monkeypatch, part):
    def fails(*args):
        raise LookupError("a mistake in this check")

    name = "blame_lines" if part == "lines" else "idle_fields"
    monkeypatch.setattr(f"pytest_dp.explain.{name}", fails)
    result = audit(broken, eps=1.0, pairs=[([1], [])])
    assert result.violated
    (note,) = [str(note) for note in result.notes if "LookupError" in str(note)]
    assert note.startswith(
        "looking for the lines that leak failed: LookupError: a mistake in this check"
    )


@pytest.mark.slow
def test_a_fault_within_an_audit_is_a_note_of_its_result(monkeypatch):
    monkeypatch.delenv(RAISING)
    monkeypatch.setattr("pytest_dp.proposers.constants._in_code", lambda code: own_function())
    result = audit(broken, eps=1.0, inputs=[[1]], neighbors="add_remove_one")
    assert result.violated
    assert any("reading constants of code failed: " in str(note) for note in result.notes)
