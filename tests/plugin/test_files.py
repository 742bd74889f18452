"""Reports as files: written whole, at the end, by the main process; and the hook."""

from __future__ import annotations

import json

import pytest
from projects import QUICK, laplace

from pytest_dp.report import files

pytestmark = pytest.mark.usefixtures("_without_blame")

STATED = f"eps=1.0, {QUICK}"
STATS = laplace("good", 1.0), laplace("broken", 0.2)


@pytest.fixture
def stats(project):
    project.write("test_stats.py", *STATS)
    return project


@pytest.mark.usefixtures("no_audits")
def test_claims_that_are_not_as_on_record_are_in_all_of_them(stats):
    stats.run("--dp-claims=update", "-k", "good")
    stats.write("test_stats.py", laplace("good", 1.0, STATED.replace("eps=1.0", "eps=2.0")))
    kinds = ("json", "sarif", "gitlab.json", "html")
    result = stats.run(*(f"--dp-report=dp.{kind}" for kind in kinds))
    assert result.ret == 1
    told = {kind: (stats.root / f"dp.{kind}").read_text() for kind in kinds}
    claims = json.loads(told["json"])["claims"]
    assert sorted(claim["status"] for claim in claims) == ["no violation", "weakened"]
    assert claims[1]["headline"] == "eps=1.0 -> eps=2.0 is less than dp-claims.json has on record"
    (alert,) = json.loads(told["sarif"])["runs"][0]["results"]
    assert alert["ruleId"] == "dp-claim-not-as-on-record"
    assert "eps=1.0 -> eps=2.0" in alert["message"]["text"]
    place = alert["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("test_stats.py", 3)
    assert len(json.loads(told["gitlab.json"])) == 1
    assert "❌ not as on record" in told["html"]
    assert sum(line.startswith("test_stats.py::good  ") for line in result.outlines) == 1


@pytest.mark.usefixtures("no_audits")
def test_ini_keys_are_relative_to_the_root_and_options_come_on_top(stats):
    stats.ini("dp_report = reports/dp.json\n  reports/DP.HTML")
    stats.run("-k", "good", "--dp-report=other.json")
    assert (stats.root / "reports/dp.json").exists()
    assert "<html" in (stats.root / "reports/DP.HTML").read_text()
    assert (stats.root / "other.json").exists()


def test_a_directory_is_refused_at_the_start(stats):
    (stats.root / "out").mkdir()
    result = stats.run("--dp-report=out")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*--dp-report=*out: this is a directory. Write the name of a file*"]
    )


@pytest.mark.usefixtures("no_audits")
def test_what_cannot_be_written_is_said_and_fails_the_run(stats):
    (stats.root / "file").write_text("in the way")
    result = stats.run("-k", "good", "--dp-report=file/dp.json", "--dp-report=dp.sarif")
    assert result.ret == 1
    result.assert_outcomes(passed=1, deselected=1, errors=1)
    result.stdout.fnmatch_lines(["ERROR: --dp-report=*file/dp.json could not be written: *"])
    assert (stats.root / "dp.sarif").exists()


KINDS = tuple(ending.removeprefix(".") for ending in files.FORMATS)


@pytest.mark.slow
def test_no_report_of_an_earlier_run_stands_while_another_runs(project):
    """Nor after it, should it be killed."""
    files = [project.write(f"dp.{kind}", "\n") for kind in KINDS]
    options = [f"--dp-report=dp.{kind}" for kind in KINDS]
    project.write(
        "test_it.py",
        "from pathlib import Path",
        "def test_it(): assert not list(Path(__file__).parent.glob('dp.*'))",
    )
    project.run(*options, "--collect-only")
    assert all(file.read_text() == "\n" for file in files)
    project.run(*options, "-n", "1").assert_outcomes(passed=1)
    assert all(file.read_text() != "\n" for file in files)


@pytest.mark.slow
def test_no_verdict_depends_on_what_can_be_written(stats, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    for place in ("tempfile.mkstemp", "tempfile.mkdtemp", "os.mkdir"):
        monkeypatch.setattr(place, full)
    result = stats.run("--dp-accumulate", "--dp-claims=check", "--dp-report=deep/dp.json")
    assert result.parseoutcomes()["passed"] == 1
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(["E   PrivacyViolation: *"])
    assert "Error: [" not in result.stdout.str()
    for said in (
        "PytestCacheWarning: *.json could not be written, so this run is not kept: ",
        "ERROR: --dp-report=*dp.json could not be written: No space left on device",
    ):
        result.stdout.fnmatch_lines([f"*{said}*"])


@pytest.mark.usefixtures("no_audits")
@pytest.mark.parametrize("kind", ["sarif", "table"])
def test_one_format_that_fails_costs_nothing_else(stats, monkeypatch, kind):
    def fails(*_, **__):
        raise OverflowError("cannot convert float infinity to integer")

    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    if kind in KINDS:
        monkeypatch.setitem(files.FORMATS, f".{kind}", fails)
    else:
        monkeypatch.setattr("pytest_dp.plugin.summary.table", fails)
    result = stats.run(*(f"--dp-report=dp.{each}" for each in KINDS))
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["E   PrivacyViolation: *", "ERROR: *OverflowError: cannot convert float infinity*"]
    )
    written = [each for each in KINDS if (stats.root / f"dp.{each}").exists()]
    assert written == [each for each in KINDS if each != kind]
    assert stats.run("-k", "good", *(f"--dp-report=dp.{each}" for each in KINDS)).ret == 1


@pytest.mark.usefixtures("no_audits")
def test_a_hook_that_fails_costs_nothing_else(stats):
    stats.write("conftest.py", "def pytest_dp_report(): 1 / 0", imports="")
    result = stats.run("--dp-report=dp.json", "-k", "good")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["*privacy claims*", "ERROR: pytest_dp_report of another plugin failed: ZeroDivision*"]
    )
    assert (stats.root / "dp.json").exists()


@pytest.mark.usefixtures("no_audits")
def test_the_hook_gets_the_records(stats):
    stats.write(
        "conftest.py",
        """
        def pytest_dp_report(records, config):
            for record in records:
                print("told", record.name, record.status, config.rootpath.name)
        """,
        imports="",
    )
    result = stats.run("-s")
    result.stdout.fnmatch_lines(["*told good* no violation *", "*told broken* violated *"])
