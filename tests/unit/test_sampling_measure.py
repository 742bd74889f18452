"""Outputs measured where they are drawn: as `draw` gives them, in little memory, looked after."""

from __future__ import annotations

import itertools
import os
import time
import tracemalloc

import numpy as np
import pytest
from drawing import at_work, draws_of, measure, scalar, warm

from pytest_dp.outputs.raised import equal_outputs
from pytest_dp.running.chunks import (
    MAX_CHUNKS,
    MAX_SCALAR,
    MAX_VECTORIZED,
    MIN_CHUNK,
    Chunk,
    cut_draw,
)
from pytest_dp.running.deadline import Deadline, OutOfTime

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("always_share", "stop_workers")]


def in_rows(data, rng, size):
    return rng.laplace(size=(size, 3))


def moments(outputs):
    array = np.asarray(outputs)
    return len(outputs), float(array.sum()), float((array * array).sum())


@pytest.mark.parametrize(
    ("mechanism", "vectorized", "n_jobs"),
    [(scalar, None, 1), (scalar, None, 2), (in_rows, "size", 2)],
)
def test_what_is_measured_is_what_would_be_drawn(mechanism, vectorized, n_jobs):
    some, given = warm(mechanism, n_jobs, vectorized=vectorized)
    draws = draws_of(given, 300, 5, 30_000)
    drawn = some.draw(draws, Deadline(60))
    results = some.measure(draws, moments, Deadline(60))
    whole = some.measure(draws, list, Deadline(60))
    assert some.n_jobs == n_jobs
    assert not some.notes
    for outputs, parts, kept in zip(drawn, results, whole, strict=True):
        assert all(map(equal_outputs, outputs, [output for part in kept for output in part]))
        starts = np.cumsum([0] + [len(part) for part in kept])
        assert parts == [moments(outputs[one:two]) for one, two in itertools.pairwise(starts)]


@pytest.mark.parametrize(("vectorized", "slow"), [(False, False), (True, False), (False, True)])
def test_chunks_are_small_and_cover_a_draw_in_order(vectorized, slow):
    """None has one run alone, in which it could not be seen that all return the same object."""
    for count in (1, 2, 3, 5, 16, 33, 63, 500, 8_192, 10_001, 1_000_000):
        chunks = cut_draw(Chunk(count, (2, 0)), vectorized, slow=slow)
        runs = [chunk.count for chunk in chunks]
        assert sum(runs) == count
        assert len({chunk.key for chunk in chunks}) == len(chunks)
        assert count == 1 or min(runs) > 1
        assert max(runs) <= (MAX_VECTORIZED if vectorized else MAX_SCALAR) + 1
        assert slow or len(runs) >= min(-(-count // MIN_CHUNK), MAX_CHUNKS) // 2


def test_measuring_happens_in_the_workers():
    results, _ = measure(scalar, lambda outputs: os.getpid(), 2, counts=(20_000,))
    assert os.getpid() not in results


def test_memory_does_not_grow_with_the_number_of_runs():
    some, given = warm(lambda data, rng: rng.random(100))
    tracemalloc.start()
    try:
        results = some.measure(draws_of(given, 50_000), np.mean, Deadline(120))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert np.mean(results) == pytest.approx(0.5, abs=0.01)
    assert peak < 0.15 * 40e6


def test_out_of_time_leaves_no_worker_at_work():
    def spins(data, rng):
        until = time.perf_counter() + 0.005
        while time.perf_counter() < until:
            pass
        return rng.random()

    with pytest.raises(OutOfTime):
        measure(spins, len, 2, counts=(20_000,), seconds=1.5)
    for _ in range(20):  # ending takes its time on a busy machine
        before = at_work()
        time.sleep(0.5)
        if at_work() == before:
            break
    assert at_work() == before
