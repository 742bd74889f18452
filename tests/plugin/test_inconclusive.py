"""An audit that could tell nothing is seen as such, and is no failure."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from projects import QUICK, laplace

FEW = QUICK.replace("2000", "20")
REASON = "  max_samples=20 is too few: raise it"


@pytest.fixture
def mixed(project):
    """A claim that holds, two that cannot be told, and a plain test."""
    project.write(
        "test_a.py",
        laplace("good", 1.0),
        laplace("few", 1.0, f"eps=1.0, {FEW}"),
        f"@pytest.mark.dp_claim(eps=1.0, {FEW})\n"
        "def test_few(dp_check):\n"
        "    assert dp_check(lambda d, rng, size: len(d) + rng.laplace(size=size)).reason\n",
        "def test_plain(): pass",
    )
    return project


COUNTS = {"passed": 2, "inconclusive": 2, "warnings": 2}


def test_its_own_word_and_warning(mixed):
    result = mixed.run("-v")
    result.stdout.fnmatch_lines(
        ["test_a.py::good* PASSED *", "*::few* INCONCLUSIVE *", "*::test_few INCONCLUSIVE *"]
    )
    assert result.parseoutcomes() == COUNTS
    result.stdout.fnmatch_lines(["  reason       max_samples=20 is too few: raise it"])
    said = "*InconclusiveWarning: test_a.py::{}*inconclusive: could not test*"
    for name in ("few", "test_few"):
        result.stdout.fnmatch_lines([said.format(name)])
    mixed.ini("filterwarnings = error")
    result = mixed.run()
    assert result.parseoutcomes() == {"failed": 2, "passed": 2}
    result.stdout.fnmatch_lines(["E   InconclusiveWarning: test_a.py::few*inconclusive: could*"])
    assert "pytest_dp/" not in result.stdout.str(), "nothing of ours is shown"


@pytest.mark.slow
def test_reruns_workers_and_junit(mixed):
    result = mixed.run("-n", "1", "--reruns", "2", "-v", "--junitxml=report.xml")
    assert result.ret == 0
    assert result.parseoutcomes() == COUNTS
    assert result.outlines.count(REASON) == 2
    result.stdout.fnmatch_lines(["*InconclusiveWarning: test_a.py::few*inconclusive: could not*"])
    suite = ET.parse(mixed.root / "report.xml").getroot()[0]
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == list("4000")
    verdicts = {
        case.get("name"): [
            p.get("value") for p in case.iter("property") if p.get("name") == "dp_verdict"
        ]
        for case in suite
    }
    assert verdicts.pop("good[eps=1.0]") == ["no violation"]
    assert verdicts.pop("few[eps=1.0]") == verdicts.pop("test_few") == ["inconclusive"]
    assert not any(verdicts.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("max_samples", "said"),
    [
        (4_000, "asked for: more samples or seconds may help."),
        (400_000, "asked for: the audit stopped by itself, so more samples or seconds alone"),
    ],
    ids=["samples-used-up", "own-end"],
)
def test_more_samples_are_advised_only_if_they_were_used_up(project, max_samples, said):
    project.write(
        "test_a.py",
        "@dp_claim(eps=1.0, delta=1e-4, pairs=[([1], [])], vectorized='size', max_samples="
        f"{max_samples})\n"
        "def noisy(d, rng, size):  # Laplace noise, not traced\n"
        "    return len(d) + rng.gamma(1, size=size) - rng.gamma(1, size=size)\n",
    )
    result = project.run("--dp-at-least=strong")
    assert result.parseoutcomes() == {"failed": 1}
    result.stdout.fnmatch_lines([f"E   The pass is *{said}*"])
