"""Whether the time of an audit is predictable: what it takes, beside what it may take.

In one run: how far audits go beyond ``max_seconds``, what a slow mechanism gains by more processes,
what a claim on a quick mechanism costs, and how many samples large outputs get in their time.
Ratios are taken side by side and CPU time is that of this process, as wall time on a busy machine
says little. Exit status 1 if a target is missed.

Run with ``python -m benchmarks.audit_time [--only PART]``; parts: limit, parallel, fixed, large.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np

from benchmarks.common import count, progress, table
from pytest_dp import audit

Row = list[object]


def quick(records, rng):
    return len(records) + rng.laplace()


def sleeps(records, rng, seconds):
    time.sleep(seconds)
    return len(records) + rng.laplace()


def no_noise(records, seconds):
    time.sleep(seconds)
    return len(records)


def wide(answers, rng, size):
    return np.asarray(answers) + rng.laplace(scale=1.0, size=(size, len(answers)))


def image(answers, rng):
    return np.reshape(answers, (28, 28)) + rng.laplace(scale=1.0, size=(28, 28))


def cells(answers, rng):
    return np.asarray(answers) + rng.laplace(scale=0.5, size=len(answers))


def slow_features(output):
    time.sleep(1e-3)
    return [output, abs(output)]


ONE = {"eps": 1.0, "pairs": [([0], [])]}
SOME = {"eps": 1.0, "neighbors": "add_remove_one", "inputs": [[1], [1, 1], [1, 2]]}


def unit(length: int) -> list[tuple[Any, Any]]:
    """Two vectors that differ by 1 in one place."""
    return [(np.zeros(length), np.eye(1, length, length // 3)[0])]


def timed(mechanism: Any, **keywords: Any) -> tuple[Any, float, float]:
    """The result, wall seconds and CPU seconds of this process."""
    started, cpu = time.monotonic(), time.process_time()
    result = audit(mechanism, **{"seed": 1, "n_jobs": 1, **keywords})
    return result, time.monotonic() - started, time.process_time() - cpu


def limit() -> list[Row]:
    """Seconds of 5: at most a tenth, and one run, more."""
    cases: list[tuple[str, Any, dict[str, Any], float]] = [
        ("100 answers", wide, {"pairs": unit(100), "vectorized": "size"}, 0.0),
        ("28 x 28 image", image, {"pairs": unit(784)}, 0.0),
        ("10,000 cells", cells, {"pairs": unit(10_000)}, 0.0),
        ("features of 1 ms", quick, {**ONE, "features": slow_features}, 0.0),
        ("50 ms a run", sleeps, {**SOME, "params": {"seconds": 0.05}}, 0.05),
        ("1 s a run", sleeps, {**SOME, "params": {"seconds": 1.0}}, 1.0),
    ]
    rows = []
    for name, mechanism, keywords, a_run in cases:
        result, seconds, _ = timed(mechanism, eps=1.0, max_seconds=5, **_but_eps(keywords))
        allowed = 5 * 1.1 + a_run
        said = f"{seconds:.2f} s of 5, {result.verdict}, {count(result.samples)} samples"
        rows.append([f"max_seconds, {name}", said, f"{allowed:g} s", seconds <= allowed])
        progress(str(rows[-1]))
    return rows


def _but_eps(keywords: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in keywords.items() if name != "eps"}


def parallel() -> list[Row]:
    """50 ms of sleep, 1,500 runs; and what 60 s are enough for at 1 s a run."""
    common = {**ONE, "params": {"seconds": 0.05}, "max_samples": 1_500, "max_seconds": 600}
    alone = timed(sleeps, **common)[1]
    rows: list[Row] = []
    for n_jobs, wanted in ((2, 1.8), (8, 6.0)):
        gain = alone / timed(sleeps, n_jobs=n_jobs, **common)[1]
        rows.append([f"50 ms a run, {n_jobs} processes", f"{gain:.2f} times", wanted])
        rows[-1].append(gain >= wanted)
        progress(str(rows[-1]))
    keywords = {**ONE, "params": {"seconds": 1.0}, "n_jobs": 2}
    result, seconds, _ = timed(no_noise, **keywords)
    said = f"{result.verdict} after {seconds:.0f} s and {result.samples} runs"
    rows.append(["1 s a run, no noise", said, "violated", result.violated])
    result, seconds, _ = timed(sleeps, **keywords)
    said = f"{result.verdict}, would catch {result.resolution:.3g}, {seconds:.0f} s"
    rows.append(["1 s a run, correct", said, "67 s", seconds <= 67])
    return rows


def fixed() -> list[Row]:
    """A scalar mechanism of a microsecond, and a handful of pairs; imports have been paid for."""
    timed(quick, **SOME, max_samples=1_000)
    costs = sorted((timed(quick, **{**SOME, "seed": seed}) for seed in range(5)), key=_cpu)
    result, _, cpu = costs[2]
    said = f"{cpu:.2f} CPU s, {count(result.samples)} samples, would catch {result.resolution:.3g}"
    return [["1 µs a run, until the margin", said, "0.7 CPU s", cpu <= 0.7]]


def _cpu(timing: tuple[Any, float, float]) -> float:
    return timing[2]


def large() -> list[Row]:
    """Samples in the time that large outputs are given."""
    common = {"pairs": unit(100), "vectorized": "size", "max_seconds": 20}
    result, seconds, _ = timed(wide, eps=1.0, **common)
    done = result.resolution <= 1.25 or result.samples >= 399_000
    said = (
        f"{count(result.samples)} samples in {seconds:.0f} s, would catch {result.resolution:.3g}"
    )
    rows: list[Row] = [["100 answers, vectorised", said, "1.25 or 400 k", done]]
    result, seconds, _ = timed(cells, eps=1.0, pairs=unit(10_000))
    said = f"{result.verdict} after {seconds:.1f} s"
    rows.append(["10,000 cells, half the noise", said, "5 s", result.violated and seconds <= 5])
    return rows


PARTS = {"limit": limit, "parallel": parallel, "fixed": fixed, "large": large}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="one part")
    options = parser.parse_args()
    rows = []
    for name, part in PARTS.items():
        if options.only in (None, name):
            rows += part()
            progress(f"{name} done")
    print(
        table(
            ["what", "found", "wanted", ""],
            [[*row[:3], "" if row[3] else "missed"] for row in rows],
        )
    )
    sys.exit(not all(row[3] for row in rows))


if __name__ == "__main__":
    main()
