"""Outputs one part of which says where to look in another: an index, or the cohort of a report."""

from __future__ import annotations

import math
from hashlib import sha256

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


def hashed(cohort, value, size):
    return int.from_bytes(sha256(f"{cohort}:{value}".encode()).digest()[:4], "big") % size


def sketch(eps, hashes=64, size=32):
    """Of a count-mean sketch: a hash function, and signs, one of which is the value's."""

    def report(value, rng):
        at = int(rng.integers(hashes))
        signs = -np.ones(size)
        signs[hashed(at, value, size)] = 1
        return at, np.where(rng.random(size) < 1 / (1 + math.exp(-eps / 2)), signs, -signs)

    return report


def cohort(eps, cohorts=64, size=32):
    """As RAPPOR: a cohort, and the bits of a Bloom filter with two hashes, by names."""

    def report(value, rng):
        of, bits = int(rng.integers(cohorts)), np.zeros(size, bool)
        for k in range(2):
            bits[hashed(f"{of}-{k}", value, size)] = True
        noisy = bits ^ (rng.random(size) < 1 / (1 + math.exp(eps / 4)))
        return {"cohort": f"c{of}", "bits": noisy.tolist()}

    return report


def coordinate(eps, size=32):
    """One coordinate of a vector, in a vector of other noise."""

    def report(values, rng):
        at, noise = int(rng.integers(size)), rng.laplace(scale=5.0, size=size)
        noise[at] = values[at] + rng.laplace(scale=1 / eps)
        return at, noise

    return report


WORDS = [("rome", "oslo")]


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("is_broken", [True, False])
@pytest.mark.parametrize(
    ("kind", "pairs"),
    [(sketch, WORDS), (cohort, WORDS), (coordinate, [([0] * 32, [1] * 32)])],
)
def test_reports_that_say_where_to_look_are_found_broken_and_only_where_they_are(
    kind, pairs, is_broken
):
    mechanism = kind(4.0 if is_broken else 2.0)
    result = audit(mechanism, eps=2.0, pairs=pairs, seed=1, n_jobs=1, max_samples=30_000)
    assert result.violated == is_broken
