"""What pytest prints of mistakes in real kinds of code, as files that people read one by one.

`tests/golden/<name>.py` is code as a data team writes it, with one mistake, and `<name>.txt` what
is printed. `GOLDEN=write pytest -m "" tests/plugin/test_golden.py` writes the texts anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"
NAMES = sorted(file.stem for file in GOLDEN.glob("*.py"))
SLOW = {"visits_by_city", "centroid"}
"""Each takes as long as ten others."""
WITHOUT_FILE = {"average_basket", "season_shape", "survey_service"}
"""The claim names the pair, or the mechanism is a service that has no name to import it by."""
SEEDED = {"survey_service": ["--dp-seed=1"]}
"""Where the seed would follow from a port."""
NOT_REPLAYABLE = "randomness that cannot be seeded"


def printed(result: pytest.RunResult) -> str:
    """The failure alone, from its title to its end."""
    text = str(result.stdout).partition(" FAILURES ===")[2].partition("\n")[2]
    return text.partition("\n===")[0] + "\n"


def comparable(text: str) -> str:
    """What is the same each time: without numbers of counts, which depend on the time there is.

    Those of the lines and of D and D' stay, but for thresholds in S, which are learned from as many
    outputs as there were; where randomness cannot be seeded, the beginning alone.
    """
    evidence = r"^E +Evidence: .*(\nE {5}.*)*"
    text = re.sub(rf" at 0x\w+|:\d{{5}}'|{evidence}", "", text, flags=re.MULTILINE)
    text = re.sub(r"\nE +", " ", text)
    before, leaks, rest = text.partition(" Leaks at ")
    if not leaks:
        before, leaks, rest = text.partition(" D  = ")
    shown, said, after = rest.partition(" S  = ")
    number = re.compile(r"-?\d[\d.,]*(e[-+]?\d+)?|infinite")
    before, after = number.sub("#", before), number.sub("#", after)
    if NOT_REPLAYABLE in text:  # nor are D, D' and S
        return " ".join(before.split())
    return " ".join(f"{before}{leaks}{shown}{said}{after}".split())


@pytest.fixture
def patient(monkeypatch):
    """No time limit leaves anything out, however busy the machine is."""
    monkeypatch.setattr("pytest_dp.auditors.budget.BLAME_SECONDS", 60.0)
    monkeypatch.setattr("pytest_dp.auditors.budget.SHOWN_SECONDS", 60.0)
    monkeypatch.setattr("pytest_dp.basics.clocks.WALL_FACTOR", 60.0)


@pytest.mark.slow
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.nightly] * (name in SLOW)) for name in NAMES],
)
def test_a_failure_is_told_as_it_was_read(project, name):
    project.ini("dp_modules = true")
    project.write(f"{name}.py", (GOLDEN / f"{name}.py").read_text(), imports="")
    result = project.run(f"{name}.py", "--dp-jobs=1", *SEEDED.get(name, ()))
    result.assert_outcomes(failed=1)
    text, file = printed(result), GOLDEN / f"{name}.txt"
    if os.environ.get("GOLDEN") == "write":
        file.write_text(text, encoding="utf-8")
    assert (".dp/pairs/" in text) is (name not in WITHOUT_FILE)
    assert comparable(text) == comparable(file.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.usefixtures("_without_blame", "patient")
@pytest.mark.parametrize("name", ["salary_export", "store_report", "age_histogram", "busy_hours"])
def test_its_pair_runs_as_a_test(project, name):
    project.ini("dp_modules = true")
    project.write(f"{name}.py", (GOLDEN / f"{name}.py").read_text(), imports="")
    project.run(f"{name}.py", "--dp-jobs=1")
    (file,) = (project.root / ".dp/pairs").glob("*.py")
    result = project.run(str(file), "--dp-jobs=1")
    result.assert_outcomes(failed=1)
    assert "PrivacyViolation: claimed" in str(result.stdout)
