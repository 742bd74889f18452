"""What it costs to have pytest-dp: in production code, and in test runs without claims.

Run with ``python -m benchmarks.import_time [--imports 20] [--runs 30]``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.common import cpu_seconds, progress, table

HEAVY = ("numpy", "scipy", "pytest", "hypothesis", "joblib")
IMPORTS = ("import pytest_dp", "from pytest_dp import dp_claim")
PROBE = """
import json, sys, time
start = time.perf_counter()
{statement}
seconds = time.perf_counter() - start
print(json.dumps([seconds, [name for name in {heavy!r} if name in sys.modules]]))
"""
TESTS = "def test_one():\n    assert True\n\n\ndef test_two():\n    assert 1 + 1 == 2\n"


def environment(cache: str) -> dict[str, str]:
    """Byte code is kept, as on any user's second run, whatever the caller's settings."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": cache}


def import_cost(statement: str, runs: int, variables: dict[str, str]) -> tuple[float, list[str]]:
    """Median milliseconds of the statement in a fresh interpreter, and what it loaded."""
    command = [sys.executable, "-c", PROBE.format(statement=statement, heavy=HEAVY)]
    seconds, loaded = [], []
    for _ in range(runs + 1):
        out = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
        once, loaded = json.loads(out.stdout)
        seconds.append(once)
    return median(seconds[1:]) * 1e3, loaded  # The first may have had to compile.


def pytest_cost(folder: str, options: list[str], variables: dict[str, str]) -> np.ndarray:
    """Wall-clock and processor milliseconds of one pytest run."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    start, cpu = time.perf_counter(), cpu_seconds()
    subprocess.run(command, cwd=folder, env=variables, capture_output=True, check=True)
    return np.array([time.perf_counter() - start, cpu_seconds() - cpu]) * 1e3


def plugin_cost(folder: str, runs: int, variables: dict[str, str], alone: bool) -> list[str]:
    """Medians of runs with and without the plugin, and of the differences of paired runs.

    The two take turns, and in turn go first, so that a drift of the machine hits both alike.
    """
    variants = [["-p", "dp"], []] if alone else [[], ["-p", "no:dp"]]
    if alone:
        variables = variables | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    for options in variants:
        pytest_cost(folder, options, variables)
    cost = np.empty((runs, 2, 2))
    for run in range(runs):
        for which in (run % 2, 1 - run % 2):
            cost[run, which] = pytest_cost(folder, variants[which], variables)
        progress(
            f"pytest {run + 1}/{runs}: {cost[run, 0].round()} ms, without {cost[run, 1].round()}"
        )
    difference = cost[:, 0] - cost[:, 1]
    wall, cpu = np.median(difference, axis=0)
    deviation = 1.4826 * np.median(np.abs(difference[:, 0] - wall))
    spread = 1.2533 * deviation / runs**0.5  # standard error of a median, if roughly normal
    middle = np.median(cost[:, :, 0], axis=0)
    return [f"{middle[0]:.1f}", f"{middle[1]:.1f}", f"{wall:.1f} ± {spread:.1f}", f"{cpu:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--imports", type=int, default=20)
    parser.add_argument("--runs", type=int, default=30)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as folder:
        variables = environment(cache)
        rows = []
        for statement in IMPORTS:
            cost, loaded = import_cost(statement, options.imports, variables)
            rows.append([f"`{statement}`", f"{cost:.2f} ms", ", ".join(loaded) or "none of them"])
        header = [f"median of {options.imports}", "limit 5 ms", f"loads of {', '.join(HEAVY)}"]
        print(table(header, rows), flush=True)

        Path(folder, "test_nothing.py").write_text(TESTS)
        Path(folder, "pytest.ini").write_text("[pytest]\n")
        beside = plugin_cost(folder, options.runs, variables, alone=False)
        alone = plugin_cost(folder, options.runs, variables, alone=True)
    header = [f"pytest run without claims, {options.runs} each", "with, ms", "without, ms"]
    header += ["median difference (limit 10)", "of CPU"]
    rows = [
        ["beside all installed plugins (`-p no:dp`)", *beside],
        ["as the only plugin (`-p dp`)", *alone],
    ]
    print("\n" + table(header, rows))


if __name__ == "__main__":
    main()
