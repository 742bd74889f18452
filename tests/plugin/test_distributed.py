"""The same verdicts and numbers, whoever runs the claims and in which order."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

import pytest
from projects import QUICK, laplace

pytestmark = pytest.mark.slow

FLAT = f"""
@pytest.mark.dp_claim(eps=1.0, {QUICK})
def test_vendor(dp_check):
    dp_check(lambda d, rng, size: len(d) + rng.laplace(scale=0.3, size=size))
"""


@pytest.fixture
def shop(project):
    project.write("test_a.py", laplace("good", 1.0), laplace("broken", 0.2), FLAT)
    project.write("test_b.py", laplace("good", 1.2), laplace("other", 0.3))
    return project


class Seen(NamedTuple):
    """What a run of the shop showed, but for times."""

    outcomes: dict[str, int]
    facts: dict[str, list[tuple]]
    table: list[str]
    told: list[list[str]]
    failure: list[str]
    junit: str


def seen(shop, *options: str) -> Seen:
    report = shop.root / "report.xml"
    result = shop.run("-v", f"--junitxml={report}", *options)
    lines = result.outlines
    start = next(i for i, line in enumerate(lines) if " broken[eps=1.0] " in line)
    end = next(i for i, line in enumerate(lines[start:]) if line.startswith("test_a.py:"))
    failure = [line for line in lines[start : start + end + 1] if not line.startswith("[gw")]
    outcomes, facts = result.parseoutcomes(), shop.facts(result)
    return Seen(outcomes, facts, shop.table(result), shop.told(result), failure, report.read_text())


@pytest.fixture(scope="module")
def remembered():
    """Runs that several tests look at."""
    return {}


@pytest.fixture
def alone(shop, remembered) -> Seen:
    if "alone" not in remembered:
        remembered["alone"] = seen(shop)
    return remembered["alone"]


REVERSE = """
def pytest_collection_modifyitems(items):
    items.reverse()
"""


def test_workers_and_order_change_no_number_table_or_failure(shop, alone):
    shop.write("conftest.py", REVERSE, imports="")
    shared = seen(shop, "-n", "2")
    assert shared.outcomes == alone.outcomes == {"passed": 2, "failed": 3}
    assert shared.facts == alone.facts
    assert len(alone.facts) == 5
    assert shared.table == alone.table
    assert sum("eps 1.0 " in line for line in alone.table) == 5
    assert shared.failure == alone.failure
    assert len(alone.failure) > 10
    assert shared.junit.count("PrivacyViolation: claimed eps = 1.0, but eps &gt;= ") >= 3
    assert shared.told == alone.told
    number = r"[\d,.]+(?:e-?\d+)?"
    for lines in alone.told:
        assert [line for line in lines if "  method       sequential, " in line]
        assert [line for line in lines if re.fullmatch(rf"  e-value +{number} after .*", line)]


def test_what_a_worker_sees_is_kept_and_told_by_the_run(shop, monkeypatch):
    """It is told the profile and the seed; evidence, annotations and reports come of its claims."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = shop.run("-n", "1", "--dp-profile=nightly", "--dp-report=dp.json", "test_b.py")
    result.assert_outcomes(passed=1, failed=1)
    claims = json.loads((shop.root / "dp.json").read_text())["claims"]
    assert {claim["status"] for claim in claims} == {"no violation", "violated"}
    [seed] = {claim["seed"] for claim in claims}
    result.stdout.fnmatch_lines([f"dp: seed {seed}; repeat this run *"])
    assert len(list(shop.root.glob(".dp/**/*.json"))) == 2, "the profile accumulates"
    assert len([line for line in result.outlines if line.startswith("::error")]) == 1


CRASHES = """
def test_crashes(): os._exit(3)
@pytest.mark.dp_claim(eps=1.0, pairs=[([1], [])], max_samples=10)
def test_audits_and_crashes(dp_check):
    dp_check(lambda d, rng: len(d) + rng.laplace())
    os._exit(3)
"""


@pytest.mark.parametrize(
    ("options", "audited"),
    [
        (("-n1",), {"first[eps=1.0]", "last[eps=1.0]"}),
        (("-n1", "--max-worker-restart=0"), {"first[eps=1.0]"}),
        # Here, xdist runs the test again that crashed.
        (("-n1", "--dist=loadscope", "--max-worker-restart=1"), {"first[eps=1.0]"}),
    ],
)
def test_claims_that_a_crash_kept_from_being_audited_are_errors(project, options, audited):
    """With other workers in place of those that crashed, and without."""
    project.write("test_a.py", "import os", laplace("first", 1.0), CRASHES, laplace("last", 1.0))
    result = project.run("--dp-report=dp.json", *options)
    assert result.ret != 0
    claims = json.loads((project.root / "dp.json").read_text())["claims"]
    told = {claim["name"]: claim for claim in claims}
    assert set(told) == {"first[eps=1.0]", "test_audits_and_crashes", "last[eps=1.0]"}
    for name, claim in told.items():
        assert claim["status"] == ("no violation" if name in audited else "error")
        if name not in audited:
            assert claim["details"].startswith("This claim was not audited: ")
            assert "crashed" in claim["details"]
            assert (claim["path"], claim["line"] > 1) == ("test_a.py", True)
