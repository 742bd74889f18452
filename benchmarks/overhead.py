"""What an audit costs beside the mechanism, and what a second process gains (DP-Sniper).

Time inside the mechanism is measured by a wrapper around it, in the audit's own process; the
wrapper counts as outside.

Run with ``python -m benchmarks.overhead [--repeats 5] [--scale 1] [--skip-workers]``.
"""

from __future__ import annotations

import argparse
import functools
import time
import timeit
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from benchmarks import vectorized
from benchmarks.common import count, progress, table
from pytest_dp import audit

VECTORIZED = (400_000, 4_000_000, 40_000_000)
SCALAR = 400_000
SHARED = 2_000_000
"""Runs over which two processes are compared with one: some 40 s of work, in which the start of a
process, about a second, is lost."""
A_CALL = 20e-6
"""Seconds that a call of the scalar mechanism takes."""


def slow(answer, eps, rng, steps=100):
    """Laplace noise, and some work in Python."""
    total = 0
    for step in range(steps):
        total += step
    return answer + rng.laplace(scale=1 / eps) + 0 * total


def as_slow_as_wanted() -> Callable[..., Any]:
    """The scalar mechanism with as many steps as take `A_CALL` on this machine."""
    rng = np.random.default_rng(1)

    def seconds(steps: int) -> float:
        return min(timeit.repeat(lambda: slow(0.0, 1.0, rng, steps), number=2_000)) / 2_000

    few, many = seconds(0), seconds(1_000)
    return functools.partial(slow, steps=round(1_000 * (A_CALL - few) / (many - few)))


class Timed:
    """A mechanism that adds up the time spent in it."""

    def __init__(self, mechanism: Callable[..., Any]) -> None:
        functools.update_wrapper(self, mechanism)
        self.mechanism, self.seconds = mechanism, 0.0

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        start = time.perf_counter()
        result = self.mechanism(*args, **keywords)
        self.seconds += time.perf_counter() - start
        return result


def run(mechanism: Callable[..., Any], max_samples: int, n_jobs: int = 1, **keywords: Any) -> float:
    """Wall-clock seconds of one audit."""
    start = time.perf_counter()
    audit(
        mechanism,
        eps="eps",
        params={"eps": 1.0},
        pairs=[(0.0, 1.0)],
        method="dpsniper",
        max_samples=max_samples,
        max_seconds=3600,
        seed=1,
        n_jobs=n_jobs,
        **keywords,
    )
    return time.perf_counter() - start


def inside_and_outside(
    mechanism: Callable[..., Any], max_samples: int, **keywords: Any
) -> tuple[float, float]:
    """Seconds inside the mechanism, and outside of it."""
    timed = Timed(mechanism)
    wall = run(timed, max_samples, **keywords)
    return timed.seconds, wall - timed.seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies all samples")
    parser.add_argument("--skip-workers", action="store_true", help="only what one process does")
    options = parser.parse_args()

    run(slow, 10_000)  # the first audit of a process pays for imports
    scalar = as_slow_as_wanted()
    rows = []
    measured = [("Laplace, vectorised", vectorized.laplace, n) for n in VECTORIZED]
    for name, mechanism, samples in [*measured, ("20 µs of Python", scalar, SCALAR)]:
        samples = round(samples * options.scale)
        keywords = {} if mechanism is scalar else {"vectorized": "size"}
        repeats = options.repeats if samples < 10_000_000 else 1
        costs = [inside_and_outside(mechanism, samples, **keywords) for _ in range(repeats)]
        inside, outside = (median(cost[i] for cost in costs) for i in (0, 1))
        ratio = median(cost[1] / cost[0] for cost in costs)
        target = 0.15 if mechanism is scalar else 2
        rows.append([name, count(samples), repeats, f"{inside:.3f}", f"{outside:.3f}"])
        rows[-1] += [f"{1e6 * inside / samples:.3g}", f"{ratio:.3g}", target]
        progress(f"{rows[-1]}")
    header = ["mechanism", "samples", "repeats", "s inside", "s outside", "µs a run, inside"]
    print(table([*header, "outside / inside", "target, at most"], rows))
    if options.skip_workers:
        return

    samples = round(SHARED * options.scale)
    seconds = [[run(scalar, samples, jobs) for jobs in (1, 2)] for _ in range(options.repeats)]
    progress(f"{seconds}")
    one, two = (median(column) for column in zip(*seconds, strict=True))
    gain = median(first / second for first, second in seconds)
    print(
        f"\nTwo processes instead of one, {count(samples)} runs of the scalar mechanism, "
        f"alternately {options.repeats} times: {one:.1f} s and {two:.1f} s (medians), "
        f"{gain:.2f} times as fast (median of the ratios; target: 1.7). "
        "On a busy machine the second process gains less."
    )


if __name__ == "__main__":
    main()
