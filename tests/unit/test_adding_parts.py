"""A type of dataset and a report format are each added in one place: an entry of a table."""

from __future__ import annotations

import csv
import io
from collections import deque
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from results import BROKEN, PASSED

from pytest_dp import audit
from pytest_dp.basics.errors import ClaimError
from pytest_dp.data import describe, types
from pytest_dp.data.types import DataType
from pytest_dp.plugin.summary import write_reports
from pytest_dp.report.files import FORMATS, format_suffix
from pytest_dp.report.record import Record


class Deque(DataType):
    name, brackets = "deque", ("deque([", "])")

    def classes(self):
        return (deque,)

    def records(self, value):
        return list(value)

    def join_rows(self, datasets):
        return list(chain.from_iterable(datasets))

    def take_rows(self, rows, positions):
        return deque(rows[at] for at in positions)

    def rebuild(self, example, records):
        return deque(records)

    def missing_record(self, example):
        return None


def count(data, rng, scale):
    assert type(data) is deque
    data.append(0)  # a deque of its own
    return len(data) + rng.laplace(scale=scale)


@pytest.mark.slow
def test_pairs_are_derived_searched_and_shown(monkeypatch):
    def audited(scale):
        claim = {"eps": 1.0, "neighbors": "add_remove_one", "inputs": [deque([1, 0, 1])]}
        return audit(count, **claim, params={"scale": scale}, max_samples=20_000, seed=1)

    with pytest.raises(ClaimError, match="deque"):
        audited(0.4)
    monkeypatch.setattr(types, "_TYPES", [*types._TYPES, Deque()])
    monkeypatch.setattr(types, "_type_by_class", types._type_by_class.__wrapped__)  # no cache
    result = audited(0.4)
    assert result.verdict == "violated"
    example = result.counterexample
    assert {type(example.d1), type(example.d2)} == {deque}
    assert abs(len(example.d1) - len(example.d2)) == 1
    assert describe(example.d1).startswith("deque([")
    assert audited(1.0).verdict == "no violation"


def as_csv(records, run):
    table = io.StringIO()
    lines = csv.writer(table, lineterminator="\n")
    lines.writerow(["file", "name", "status", "lower"])
    lines.writerows([run.located(r.path), r.name, r.status, r.lower] for r in records)
    return table.getvalue()


def test_records_become_lines(pytestconfig, tmp_path, monkeypatch):
    with pytest.raises(ClaimError, match=r"claims\.csv names no format\. Allowed: \.json, "):
        format_suffix(Path("claims.csv"))
    monkeypatch.setitem(FORMATS, ".csv", as_csv)
    file = tmp_path / "out/claims.CSV"
    records = [replace(Record.of(result), path="shop/stats.py") for result in (BROKEN, PASSED)]
    assert write_reports([file], records, pytestconfig) == []
    broken, passed = csv.DictReader(file.read_text().splitlines())
    assert broken["name"] == "noisy_count[eps=1.0]"
    assert broken["file"].endswith("shop/stats.py")
    assert (broken["status"], broken["lower"]) == ("violated", "1.8909")
    assert (passed["status"], passed["lower"]) == ("no violation", "0.71")
