"""Does the net hold? One-line faults in statistical code, each of which a fast test has to see.

``python tests/mutants.py`` makes a copy of ``pytest_dp`` and puts one fault of `faults` after
the other into it. A fault is killed if the test that is named beside it fails on the copy. The exit
status is 1 if one survives, or if a test fails on the copy before any fault is in it.
"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from faults import ROOT, Fault, auditing, audits, known, oracles, results, runs, statistics

FAULTS: tuple[Fault, ...] = (
    *statistics.FAULTS,
    *auditing.FAULTS,
    *audits.FAULTS,
    *known.FAULTS,
    *oracles.FAULTS,
    *runs.FAULTS,
    *results.FAULTS,
)
FAILED = 1
"""The status of pytest where tests failed; others say that they could not be run."""
NOT_THE_COPY = 90
"""Status of a process that imported another ``pytest_dp`` than the copy."""
PATIENCE = 120.0
"""Seconds after which a test is stopped: what hangs tells nothing. The killers take a few."""
RUN = f"""
import sys, pytest
status = pytest.main(sys.argv[2:])
import pytest_dp
sys.exit(status if pytest_dp.__file__.startswith(sys.argv[1]) else {NOT_THE_COPY})
"""


class Copy:
    """A copy of the package, in which one file at a time can be spoiled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "pytest_dp", folder / "pytest_dp")

    @contextmanager
    def with_fault(self, fault: Fault) -> Iterator[None]:
        """The copy with a fault, and afterwards as it was."""
        file = self.folder / "pytest_dp" / fault.file
        file.write_text(fault.spoiled(), encoding="utf-8")
        try:
            yield
        finally:
            shutil.copy2(ROOT / "pytest_dp" / fault.file, file)

    def status(self, tests: Sequence[str], *, compile_it: bool = False) -> tuple[int | None, str]:
        """The status of pytest on tests, None if it hangs, and what it said.

        The copy stands before the installed package for pytest, and for processes that tests start.
        Bytecode is written before there are faults only: files that change within a second, and
        keep their size, would be taken for the compiled ones.
        """
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(self.folder), str(ROOT)])}
        if not compile_it:
            environment["PYTHONDONTWRITEBYTECODE"] = "1"
        command = [sys.executable, "-P", "-c", RUN, str(self.folder), "-x", "-q", "--no-header"]
        command += ["-m", ""]  # all cases of a test, also those that are run by night
        command += ["-p", "no:cacheprovider", "-o", f"pythonpath={self.folder} {ROOT}"]
        command += [f"tests/{test}" for test in tests]
        try:
            ended = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True,
                timeout=PATIENCE * len(tests),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return None, "it hangs"
        return ended.returncode, ended.stdout + ended.stderr


def outcome(copies: queue.Queue[Copy], fault: Fault) -> tuple[str, float]:
    """Whether a fault was killed, in a word, and the seconds that it took."""
    copy, started = copies.get(), monotonic()
    try:
        with copy.with_fault(fault):
            status, said = copy.status([fault.test])
    finally:
        copies.put(copy)
    words = {FAILED: "killed", 0: "SURVIVES", None: "HANGS"}
    word = words.get(status, f"NO TEST: status {status}")
    if word.startswith("NO"):
        print(said[-2000:], file=sys.stderr)
    return word, monotonic() - started


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these faults alone")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    options = parser.parse_args(arguments)
    faults = [fault for fault in FAULTS if not options.only or fault.name in options.only]
    if unknown := set(options.only or ()) - {fault.name for fault in faults}:
        parser.error(f"there is no fault {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as folder:
        parts = [Path(folder).resolve() / str(job) for job in range(max(options.jobs, 1))]
        first = Copy(parts[0])
        status, said = first.status(sorted({fault.test for fault in faults}), compile_it=True)
        if status != 0:
            print(f"{said}\nWithout any fault, the tests have to pass (status {status}).")
            return 1
        copies: queue.Queue[Copy] = queue.Queue()
        for copy in (first, *map(Copy, parts[1:])):
            copies.put(copy)
        survived = 0
        with ThreadPoolExecutor(len(parts)) as pool:
            outcomes = pool.map(lambda fault: outcome(copies, fault), faults)
            for fault, (word, seconds) in zip(faults, outcomes, strict=True):
                survived += word != "killed"
                print(f"{word:9}{seconds:5.1f} s  {fault.name:36} {fault.test}", flush=True)
    print(f"{len(faults) - survived} of {len(faults)} faults killed.")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
