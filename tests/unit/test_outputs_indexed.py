"""Outputs one part of which says where to look in another: an index."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_dp import audit
from pytest_dp.outputs.table import tabulate
from pytest_dp.readers.indexed import at_indices


def sequences(rng, n=400):
    return [(int(rng.integers(5)), rng.normal(size=5).tolist()) for _ in range(n)]


def test_what_stands_at_an_index_is_what_python_says():
    outputs = sequences(np.random.default_rng(1))
    (at,) = at_indices(tabulate(outputs))
    assert str(at) == "output[1][output[0]]"
    numbers, codes = at.column(tabulate(outputs))
    assert numbers.tolist() == [eval(str(at), {"output": output}) for output in outputs]
    assert (codes == -1).all()


def test_an_index_beyond_the_end_has_nothing_there():
    outputs = sequences(np.random.default_rng(1))
    (at,) = at_indices(tabulate(outputs))
    numbers, codes = at.column(tabulate([(7, [1.0] * 5), (-1, [1.0] * 5), (4, [0.0] * 4 + [2.0])]))
    assert np.isnan(numbers[:2]).all()
    assert codes.tolist() == [-2, -2, -1]
    assert numbers[2] == 2.0


@pytest.mark.parametrize(
    "outputs",
    [
        [[float(i), 0.5] for i in range(50)],  # no whole sequence beside it
        [np.random.default_rng(i).normal(size=6) for i in range(50)],
        [3.0] * 50,
        [(i % 2, [0, 1]) for i in range(50)],  # two values say no more than others
    ],
    ids=["not inside", "numbers", "bare", "two values"],
)
def test_where_nothing_is_an_index_nothing_is_asked(outputs):
    assert list(at_indices(tabulate(outputs))) == []


def coordinate(eps, size=32):
    """One coordinate of a vector, in a vector of other noise."""

    def report(values, rng):
        at, noise = int(rng.integers(size)), rng.laplace(scale=5.0, size=size)
        noise[at] = values[at] + rng.laplace(scale=1 / eps)
        return at, noise

    return report


@pytest.mark.spot(5)
@pytest.mark.slow
@pytest.mark.parametrize("is_broken", [True, False])
def test_reports_that_say_where_to_look_are_found_broken_and_only_where_they_are(is_broken):
    mechanism, pairs = coordinate(4.0 if is_broken else 2.0), [([0] * 32, [1] * 32)]
    result = audit(mechanism, eps=2.0, pairs=pairs, seed=1, n_jobs=1, max_samples=30_000)
    assert result.violated == is_broken
