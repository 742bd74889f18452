"""Claims are tests like any other to pytest's own options."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from projects import QUICK, laplace

pytestmark = pytest.mark.usefixtures("_without_blame")

MARKED = f"""
@pytest.mark.dp_claim(eps=1.0, {QUICK})
def test_vendor(dp_check):
    dp_check(lambda d, rng, size: len(d) + rng.laplace(size=size))
"""
ALL = ["test_a.py::good[eps=1.0]", "test_a.py::broken[eps=1.0]", "test_a.py::test_vendor"]


@pytest.fixture
def mixed(project):
    """A claim that holds, a broken one, a marked test and a plain one."""
    project.write(
        "test_a.py",
        laplace("good", 1.0),
        laplace("broken", 0.2),
        MARKED,
        "def test_plain(): pass",
    )
    return project


def test_selecting(mixed):
    assert mixed.ids("--strict-markers", "-m", "dp_claim") == ALL
    assert mixed.ids("-k", "good") == ALL[:1]
    assert mixed.ids("--deselect", ALL[1]) == [ALL[0], ALL[2], "test_a.py::test_plain"]
    assert mixed.ids(ALL[1]) == [ALL[1]]


@pytest.mark.usefixtures("no_audits")
def test_junit(mixed):
    mixed.write("test_b.py", "@dp_claim(eps=-1, pairs=[(0, 1)])", "def bad(d): return 0")
    mixed.run("--junitxml=report.xml")
    suite = ET.parse(mixed.root / "report.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("5", "2", "0")
    message = {
        case.get("name"): failure.get("message")
        for case in suite
        for failure in case.findall("failure")
    }
    assert message.keys() == {"broken[eps=1.0]", "bad[invalid claim]"}
    assert message["broken[eps=1.0]"].startswith("PrivacyViolation: claimed eps = 1.0, but eps >= ")
    assert message["bad[invalid claim]"].startswith("ClaimError: Invalid eps=-1.")
    text = suite.find("./testcase[@name='broken[eps=1.0]']/failure").text
    assert "Pr[M(D)  in S]" in text
    assert "@dp_claim(" in text


def test_without_the_plugin_production_code_and_its_tests_still_work(project):
    project.write("shop/stats.py", laplace("noisy", 0.2))
    project.write(
        "tests/test_stats.py",
        "import numpy as np\nfrom shop.stats import noisy\n",
        "def test_shape(): assert noisy([], np.random.default_rng(), 3).shape == (3,)",
        imports="",
    )
    project.ini("dp_modules = true", "pythonpath = .")
    result = project.run("-p", "no:dp")
    result.assert_outcomes(passed=1)
    assert "privacy claims" not in result.stdout.str()


def test_a_project_without_claims_sees_nothing_of_the_plugin(project):
    project.write("test_a.py", "def test_plain(): pass", imports="")
    outputs = []
    for options in ([], ["-p", "no:dp"]):
        lines = project.run(*options).outlines
        outputs.append([line for line in lines if not line.startswith(("plugins:", "==="))])
    assert outputs[0] == outputs[1]
