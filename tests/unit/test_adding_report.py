"""A report format is added in one place: an entry under its ending. The help names it."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from results import BROKEN, PASSED

from pytest_dp.basics.errors import ClaimError
from pytest_dp.plugin import pytest_addoption
from pytest_dp.plugin.summary import write_reports
from pytest_dp.report.files import FORMATS, format_suffix
from pytest_dp.report.record import Record

RECORDS = [replace(Record.of(result), path="shop/stats.py") for result in (BROKEN, PASSED)]


def as_csv(records, run):
    table = io.StringIO()
    lines = csv.writer(table, lineterminator="\n")
    lines.writerow(["file", "name", "status", "lower"])
    lines.writerows([run.linked(r.path), r.name, r.status, r.lower] for r in records)
    return table.getvalue()


def test_records_become_lines(pytestconfig, tmp_path, monkeypatch):
    monkeypatch.setitem(FORMATS, ".csv", as_csv)
    file = tmp_path / "out/claims.CSV"
    assert write_reports([file], RECORDS, pytestconfig) == []
    broken, passed = csv.DictReader(file.read_text().splitlines())
    assert broken["name"] == "noisy_count[eps=1.0]"
    assert broken["file"].endswith("/shop/stats.py")
    assert (broken["status"], broken["lower"]) == ("violated", "1.8909")
    assert (passed["status"], passed["lower"]) == ("no violation", "0.71")


def test_without_the_entry_its_ending_names_no_format():
    with pytest.raises(ClaimError, match=r"claims\.csv names no format\. Allowed: \.json, "):
        format_suffix(Path("claims.csv"))


def test_the_help_names_each_ending():
    parser = MagicMock()
    pytest_addoption(parser, MagicMock())
    options = parser.getgroup.return_value.addoption.call_args_list
    (named,) = (each.kwargs["help"] for each in options if each.args[0] == "--dp-report")
    assert all(known in named for known in FORMATS)
