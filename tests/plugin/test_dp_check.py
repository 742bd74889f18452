"""The marker and the fixture ``dp_check``."""

from __future__ import annotations

import pytest
from projects import QUICK

pytestmark = pytest.mark.usefixtures("_without_blame")

NOISY = """
def noisy(scale):
    return lambda d, rng, size: len(d) + rng.laplace(scale=scale, size=size)
"""


MARK = f"@pytest.mark.dp_claim(eps=1.0, {QUICK})\n"


RETURNED = f"""
{MARK}
def test_the_result_is_returned(dp_check):
    result = dp_check(noisy(1.0))
    assert result.verdict == "no violation" and not result.violated
    assert 0 <= result.eps_lower < 1.0 <= result.resolution
    assert result.name == "test_a.py::test_the_result_is_returned"
    assert result.method == "sequential" and not result.claim.effort.get("method")
    assert 0 < result.e_value < 1e6 and 0 < result.bet_samples < result.samples <= 2000

{MARK}
def test_overrides_win_over_the_marker(dp_check):
    assert dp_check(noisy(0.5), eps=4.0).claimed == 4.0
    assert dp_check(noisy(1.0), max_samples=3000).samples <= 3000
    assert dp_check(noisy(1.0), method="statdp").e_value is None
    apart = dp_check(noisy(1.0), method=Sequential(coupled=False))
    assert not apart.claim.effort["method"].coupled
    of_inputs = dp_check(noisy(1.0), inputs=[[1]], neighbors="add_remove_one")
    assert of_inputs.claim.promise.pairs is None
    assert dp_check(lambda d, rng: len(d) + rng.laplace(), vectorized=None).violated is False

@pytest.mark.dp_claim
def test_the_marker_may_leave_everything_to_the_call(dp_check):
    assert dp_check(noisy(1.0), eps=1.0, {QUICK}).verdict == "no violation"
"""


@pytest.mark.slow
def test_what_is_returned(project):
    project.write("test_a.py", NOISY, RETURNED)
    result = project.run()
    assert result.ret == 0
    rows = project.rows(result)
    assert len(rows) == 3
    assert len({row["seed"] for of_test in rows.values() for row in of_test}) == 8


@pytest.mark.slow
def test_an_expected_violation_alarms_nobody(project, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.root / "summary.md"))
    body = """def test_a(dp_check):
    with pytest.raises(PrivacyViolation, match="claimed eps = 1.0") as caught:
        dp_check(noisy(0.2))
    assert caught.value.result.violated
    assert dp_check(noisy(1.0)).verdict == "no violation"
"""
    project.write("test_a.py", NOISY, MARK + body)
    result = project.run("--color=yes")
    result.assert_outcomes(passed=1)
    text = result.stdout.str()
    assert "VIOLATED" not in text
    assert "::error" not in text
    assert "\x1b[31m" not in text, "nothing is red"
    assert "broken, as the test expects: test_a" in text
    summary = (project.root / "summary.md").read_text()
    assert summary.startswith("## ✅ Privacy: 1 claim, no violation found")
    assert "❌" not in summary


CLAIMED = f"@pytest.mark.dp_claim(eps=9.0, {QUICK})\n"


@pytest.mark.parametrize(
    ("tests", "who"),
    [
        (f"{CLAIMED}def test_a(): pass", "This test"),
        (f"{CLAIMED}class TestClass:\n    def test_a(self): pass", "TestClass"),
        ("pytestmark = [pytest.mark.dp_claim(eps=1)]\ndef test_a(): pass", "test_a.py"),
    ],
)
def test_a_marker_that_nothing_makes_use_of_is_an_error(project, tests, who):
    project.write("test_a.py", NOISY, tests)
    result = project.run()
    assert result.parseoutcomes()["errors"] == 1
    result.stdout.fnmatch_lines(
        [f"E   ClaimError: {who} has the marker dp_claim but never audits*"]
    )
    assert "pytest_dp/" not in result.stdout.str()


def test_dp_check_without_a_marker_is_an_error(project):
    project.write("test_a.py", "def test_a(dp_check): pass\ndef test_plain(): pass\n")
    result = project.run()
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(["dp_check audits the claim of the test's marker, and this test*"])


MARKED = {
    "test_several.py": f"""
        @pytest.mark.dp_claim(eps=1.0, {QUICK})
        @pytest.mark.dp_claim(eps=5.0, {QUICK})
        def test_good(dp_check): dp_check(noisy(0.25))
        """,
    "test_params.py": f"""
        @pytest.mark.parametrize("factor", [1.0, 4.0])
        @pytest.mark.dp_claim(eps="epsilon", params={{"epsilon": [0.5, 2.0]}}, {QUICK})
        def test_good(dp_check, factor):
            def noisy(d, epsilon, rng, size):
                return len(d) + rng.laplace(scale=factor / epsilon, size=size)
            assert dp_check(noisy).claim.arguments.params["epsilon"] in (0.5, 2.0)
        """,
    "test_class.py": f"""
        @pytest.mark.dp_claim(eps=1.0, {QUICK})
        class TestCounts:
            def test_good(self, dp_check): dp_check(noisy(1.0))
            @pytest.mark.dp_claim(eps=9.0, {QUICK})
            def test_own_good(self, dp_check): dp_check(noisy(0.2))
            def test_plain(self): pass
        """,
    "test_module.py": f"""
        pytestmark = pytest.mark.dp_claim(eps=9.0, {QUICK})
        def test_good(dp_check): assert dp_check(noisy(0.2)).claimed == 9.0
        """,
}


@pytest.mark.usefixtures("no_audits")
def test_markers_on_tests_classes_and_modules_are_an_item_for_each_claim(project):
    for file, code in MARKED.items():
        project.write(file, NOISY, code)
    result = project.run()
    assert result.parseoutcomes() == {"passed": 10}
    claimed = {name: row["claimed"] for name, [row] in project.rows(result).items()}
    assert claimed == {
        **{f"test_several.py::test_good[eps={eps}]": eps for eps in (1.0, 5.0)},
        **{f"test_params.py::test_good[eps={e}-{f}]": e for e in (0.5, 2.0) for f in (1.0, 4.0)},
        "test_class.py::TestCounts::test_good": 1.0,
        "test_class.py::TestCounts::test_own_good": 9.0,
        "test_module.py::test_good": 9.0,
    }


NO_SENSE = (
    ("1.0", "", "pytest.mark.dp_claim was given 1.0 without a keyword"),
    ("epss=1, pairs=[(0, 1)]", "", "A claim has no keyword 'epss'. Did you mean 'eps'?"),
    ("", "noisy(1)", "A claim needs one of eps"),
    ("eps=1.0", "noisy(1)", "A claim needs inputs= or pairs="),
    (f"eps=1.0, {QUICK}", "noisy(1), method=DPSniper(c=2)", "Invalid c=2. Allowed: a probability"),
    (f"eps=1.0, {QUICK}", "noisy(1), epsi=2", "A claim has no keyword 'epsi'."),
    (f"eps=1.0, {QUICK}", "noisy(1), params={'a': [1, 2]}", "params gives 2 claims"),
    (f"eps=1.0, {QUICK}", "3", "The mechanism is 3, which is not callable"),
)


def test_what_makes_no_sense_is_said_without_our_frames(project):
    test = "@pytest.mark.dp_claim({})\ndef test_{}(dp_check): dp_check({})"
    tests = (test.format(marker, n, call) for n, (marker, call, _) in enumerate(NO_SENSE))
    project.write("test_a.py", NOISY, *tests)
    result = project.run()
    reports = {report.nodeid: report.longreprtext for report in result.reprec.getfailures()}
    assert len(reports) == len(NO_SENSE)
    for text, (*_, message) in zip(reports.values(), NO_SENSE, strict=True):
        assert f"ClaimError: {message}" in text
    assert "pytest_dp/" not in result.stdout.str()


def test_a_fixture_that_is_never_called_audits_nothing(project):
    skips = "def test_skips(dp_check): pytest.skip('not today')\n"
    project.write("test_a.py", MARK + "def test_forgot(dp_check): pass\n", MARK + skips)
    result = project.run()
    result.assert_outcomes(failed=1, skipped=1)
    result.stdout.fnmatch_lines(["E   ClaimError: *never called it, so nothing was audited*"])
    result.stdout.fnmatch_lines(["*::test_forgot * NOT AUDITED *"])
