"""A debugger in a mechanism: after a violation, and where it calls `breakpoint`."""

from __future__ import annotations

import re
import sys

import pytest
from projects import QUICK, laplace

STOPS = f"""
@dp_claim(eps=1.0, {QUICK.replace("2000", "500")})
def stops(records, rng, size):
    if not records:
        breakpoint()
    return len(records) + rng.laplace(size=size)
"""


MINE = """
import pdb

class Mine(pdb.Pdb):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.prompt = "mine> "
"""


def typed(project, *lines: str, options: tuple[str, ...] = ()) -> pytest.RunResult:
    """A run of pytest with what somebody types."""
    command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options)
    return project.pytester.run(*command, stdin="\n".join([*lines, ""]).encode(), timeout=90)


@pytest.mark.nightly
@pytest.mark.slow
def test_after_a_violation_one_run_on_either_input_with_the_same_numbers(project):
    project.write("test_a.py", laplace("broken", 0.2), laplace("other", 0.2))
    project.write("mine.py", MINE, imports="")
    lines = ("p d1, d2, mechanism, arguments['size']", "s", "p records", "c", "p rng", "c", "q")
    result = typed(project, *lines, options=("--dp-debug", "--pdbcls=mine:Mine"))
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(
        [
            "E   PrivacyViolation: claimed eps = 1.0, *",
            ">* broken[[]eps=1.0[]] on D: *>",
            "mine>* <function broken at *, 1)",
            "> */test_a.py(*)broken()",
            ">* broken[[]eps=1.0[]] on D': *>",
            "mine>*Generator(*",
            "on D: *, on D': *",
            ">* other[[]eps=1.0[]] on D: *>",
            "FAILED test_a.py::other*",
            "!* _pytest.outcomes.Exit: Quitting debugger !*",
        ]
    )
    [shown] = [line for line in result.outlines if line.startswith("on D: ")]
    on_d, on_d_prime = map(float, re.findall(r"\[(.*?)\]", shown))
    assert abs(on_d - on_d_prime) == pytest.approx(1.0), "the noise is the same"


@pytest.mark.slow
@pytest.mark.parametrize("last", ["c", "q"])
def test_a_breakpoint_stops_once(project, last):
    project.write("test_a.py", STOPS, "def test_b():\n    pass\n")
    result = typed(project, "p records", last)
    text = result.stdout.str()
    assert text.count(" PDB set_trace ") == 1
    assert "(Pdb) []" in text
    ended = "Quitting debugger" in text
    assert (result.parseoutcomes().get("passed"), ended) == ((None, True), (2, False))[last == "c"]


def test_breakpoints_can_be_switched_off_and_are_told_where_they_do_not_stop(project, monkeypatch):
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")
    project.write("test_a.py", STOPS)
    assert project.run().parseoutcomes() == {"passed": 1}


@pytest.mark.parametrize("options", [("-n", "1"), ("-n", "2", "--dist=load")])
def test_a_debugger_needs_the_process_of_pytest(project, options):
    result = project.run("--dp-debug", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --dp-debug: * Add -n 0."])
