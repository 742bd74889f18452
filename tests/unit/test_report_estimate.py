"""A loss that is known: in the table, among the facts, and through JSON."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, datetime

import json_report
import jsonschema
import pytest
from results import BROKEN

from pytest_dp.report.files import as_json
from pytest_dp.report.record import Record
from pytest_dp.report.table import table
from pytest_dp.report.text import estimated, facts
from pytest_dp.results.estimate import Estimate

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def known(value=1.0, pairs=1, available=1, error=1e-15):
    estimate = Estimate(value, error, "exact", pairs=pairs, basis="32 outcomes")
    result = replace(BROKEN, verdict="no violation", counterexample=None, estimate=estimate)
    return Record.of(replace(result, pairs=(available, available)))


def test_what_is_said():
    assert estimated(known()) == "exact on these pairs: eps = 1.000000 (32 outcomes)"
    assert estimated(known(math.log(3), 3, 10)) == (
        "exact on 3 of 10 pairs: eps = 1.098612 (32 outcomes)"
    )
    assert estimated(known(math.inf)) == "exact on these pairs: eps = infinity (32 outcomes)"
    assert estimated(Record.of(BROKEN)) == ""
    assert estimated(replace(known(), delta=1e-5)).endswith(
        "eps = 1.000000 at delta = 1e-05 (32 outcomes)"
    )


@pytest.mark.parametrize("value", [1.0, math.inf])
@pytest.mark.parametrize("error", [math.inf, math.nan])
def test_what_may_be_off_by_anything_is_not_said(value, error):
    assert estimated(known(value, error=error)) == ""


def test_where_it_is_said():
    lines = [line for line, _ in table([known()])]
    assert "  exact on these pairs: eps = 1.000000 (32 outcomes)" in lines
    assert estimated(known()) in dict(facts(known())).values()


@pytest.mark.parametrize("value", [0.0, 1.25, math.inf])
def test_through_json(value):
    record = known(value)
    written = json.loads(json.dumps(record.as_dict(), allow_nan=False))
    jsonschema.validate(json.loads(as_json([record], NOON)), json_report.schema())
    assert Record.from_dict(written) == record
