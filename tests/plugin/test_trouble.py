"""Mechanisms that hang, Ctrl-C, frozen clocks: no orphan is left and other tests go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")

HANGS = """
@dp_claim(eps=1.0, pairs=[([1], [])], max_seconds={seconds})
def mechanism(d, rng):
    if {when}:
        pathlib.Path("hung-" + str(os.getpid())).touch()
        while True:
            time.sleep(0.01)
    time.sleep(0.001)
    return len(d) + rng.laplace()
"""
ENDLESS = """
@dp_claim(eps=1.0, pairs=[([1], [])], max_seconds=300, max_samples=500_000)
def mechanism(d, rng):
    pathlib.Path("started-" + str(os.getpid())).touch()
    time.sleep(0.0005)
    return len(d) + rng.gamma(1) - rng.gamma(1)  # Laplace noise, not traced
"""
WITH_MANY_RUNS = "rng.laplace()", "rng.gamma(1) - rng.gamma(1)"
"""Laplace noise in place of that of one draw, which is aligned by few runs: no workers start."""


@pytest.fixture
def marked(project, monkeypatch):
    """Marks every process of the project's runs; finds those that still live."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv("PYTEST_DP_TEST_MARK", mark)
    project.write("unused.py", imports="")

    def alive() -> list[int]:
        found = []
        for process in Path("/proc").iterdir():
            try:
                if process.name.isdigit() and mark.encode() in (process / "environ").read_bytes():
                    found.append(int(process.name))
            except OSError:
                continue
        return [pid for pid in found if pid != os.getpid()]

    def write(body: str) -> None:
        head = "import os, pathlib, threading, time\nHOME = int(os.environ.get('HOME_PID', 0))\n"
        head += "os.environ['HOME_PID'] = str(HOME or os.getpid())\nHOME = HOME or os.getpid()\n"
        project.write("test_a.py", head, body, "def test_plain(): pass")
        # Use the workers at once, not only from some seconds of work on.
        eager = "from pytest_dp.running import sampler\nassert sampler.START_WORKERS_FROM\n"
        project.write("conftest.py", eager + "sampler.START_WORKERS_FROM = 0.01\n", imports="")

    project.mark = write
    project.alive = alive
    return project


def gone(project) -> bool:
    """Whether all processes end, given a moment."""
    until = time.monotonic() + 60
    while project.alive() and time.monotonic() < until:
        time.sleep(0.1)
    return not project.alive()


@needs_proc
@pytest.mark.parametrize(
    ("jobs", "when", "seconds"),
    [
        pytest.param(1, "True", 1, id="always"),
        pytest.param(2, "os.getpid() != HOME", 6, id="in-workers"),
    ],
)
def test_a_mechanism_that_hangs(marked, jobs, when, seconds):
    source = HANGS.format(when=when, seconds=seconds)
    marked.mark(source if jobs == 1 else source.replace(*WITH_MANY_RUNS))
    result = marked.run_apart(f"--dp-jobs={jobs}")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        [
            f"E   MechanismError: mechanism hangs: *max_seconds={seconds}*",
            "E*time.sleep(0.01)",
            "test_a.py:*: MechanismError",
        ]
    )
    assert "pytest_dp/" not in result.stdout.str()
    assert gone(marked)


@needs_proc
@pytest.mark.parametrize("jobs", [2, 1])
def test_ctrl_c(marked, jobs):
    marked.mark(ENDLESS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--dp-jobs={jobs}"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=marked.root,
        # Shells start background jobs with Ctrl-C ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    until = time.monotonic() + 60
    wanted = 1 if jobs == 1 else 2  # with workers: once this process and one of theirs were seen
    while len(list(marked.root.glob("started-*"))) < wanted and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert len(list(marked.root.glob("started-*"))) >= wanted, output
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert "KeyboardInterrupt" in output
    assert "INTERNALERROR" not in output
    assert "Traceback" not in output
    assert gone(marked), output


FREEZERS = {
    "freezegun": "freezegun.freeze_time('2001-02-03')",
    "time-machine": "time_machine.travel(0, tick=False)",
}


@pytest.mark.parametrize("freeze", FREEZERS.values(), ids=FREEZERS)
def test_a_frozen_clock_switches_no_limit_off(project, freeze):
    project.write(
        "conftest.py",
        f"""
        import freezegun, pytest, time_machine
        @pytest.fixture(autouse=True)
        def frozen():
            with {freeze}:
                yield
        """,
        imports="",
    )
    project.write(
        "test_a.py",
        """
        import time
        @pytest.mark.dp_claim(eps=1.0, pairs=[([1], [])], max_seconds=0.5)
        def test_slow(dp_check):
            def mechanism(d, rng):
                time.sleep(0.01)
                return len(d) + rng.laplace()
            started = time.time()
            result = dp_check(mechanism)
            assert time.time() == started
            assert 0.25 < result.seconds
        """,
    )
    assert project.run_apart("-p", "no:cacheprovider").ret == 0
