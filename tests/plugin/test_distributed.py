"""The same verdicts and numbers, whoever runs the claims and in which order."""

from __future__ import annotations

import json

import pytest
from projects import QUICK, laplace

pytestmark = pytest.mark.slow


@pytest.fixture
def shop(project):
    vendor = "dp_check(lambda d, rng, size: len(d) + rng.laplace(scale=0.3, size=size))"
    marked = f"@pytest.mark.dp_claim(eps=1.0, {QUICK})\ndef test_vendor(dp_check): {vendor}\n"
    project.write("test_a.py", laplace("good", 1.0), laplace("broken", 0.2), marked)
    project.write("test_b.py", laplace("good", 1.2), laplace("other", 0.3))
    return project


def seen(shop, *options: str) -> tuple:
    """Outcomes, facts, the table, what -v tells, and one failure, but for times."""
    result = shop.run("-v", *options)
    lines = result.outlines
    start = next(i for i, line in enumerate(lines) if " broken[eps=1.0] " in line)
    end = next(i for i, line in enumerate(lines[start:]) if line.startswith("test_a.py:"))
    failure = [line for line in lines[start : start + end + 1] if not line.startswith("[gw")]
    outcomes, facts = result.parseoutcomes(), shop.facts(result)
    return outcomes, facts, shop.table(result), shop.told(result), failure


def test_workers_and_order_change_no_number_table_or_failure(shop):
    outcomes, facts, table, told, failure = alone = seen(shop)
    reverse = "def pytest_collection_modifyitems(items): items.reverse()\n"
    shop.write("conftest.py", reverse, imports="")
    assert seen(shop, "-n", "2") == alone
    assert outcomes == {"passed": 2, "failed": 3}
    assert len(facts) == len(told) == 5
    assert sum("eps 1.0 " in line for line in table) == 5
    assert len(failure) > 10


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


def test_a_claim_at_which_a_worker_crashed_is_an_error(project):
    """With other workers in place of those that crashed, the others are audited."""
    project.write("test_a.py", "import os", laplace("first", 1.0), CRASHES, laplace("last", 1.0))
    result = project.run("--dp-report=dp.json", "-n1")
    assert result.ret != 0
    claims = json.loads((project.root / "dp.json").read_text())["claims"]
    told = {claim["name"]: claim for claim in claims}
    crashed = {"test_crashes", "test_audits_and_crashes"}
    assert set(told) == {"first[eps=1.0]", "last[eps=1.0]"} | crashed
    for name, claim in told.items():
        assert claim["status"] == ("error" if name in crashed else "no violation")
        if name in crashed:
            assert claim["details"].startswith("This claim was not audited: ")
            assert "crashed" in claim["details"]
            assert (claim["path"], claim["line"] > 1) == ("test_a.py", True)
