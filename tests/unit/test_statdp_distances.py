"""Distances from the answer without noise, by which StatDP compares vectors."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from drawing import sampler

from pytest_dp import StatDP, audit
from pytest_dp.methods.statdp import answer_without_noise, distance_from
from pytest_dp.outputs.table import tabulate


def noiseless(mechanism, data=(1, 2), privacy_param=None, **keywords):
    return answer_without_noise(sampler(mechanism, **keywords).call, data, privacy_param)


def test_noiseless_answers():
    assert noiseless(lambda d, rng: [x + rng.laplace() for x in d]) == [1, 2]
    assert noiseless(lambda d, rng: sum(d) + rng.laplace(0, 3)) == 3
    assert noiseless(lambda d, rng: np.argmax(np.asarray(d) + rng.exponential(2, len(d)))) == 1
    assert noiseless(lambda d: sum(d) + np.random.laplace() + random.gauss(0.0, 1.0)) == 3  # noqa: NPY002
    inverted = lambda d, eps: sum(d) - math.log(1.0 - random.random()) / eps  # noqa: E731
    assert noiseless(inverted, params={"eps": 1.0}, privacy_param="eps") == 3
    by_vector = noiseless(lambda d, rng, size: sum(d) + rng.laplace(size=size), vectorized="size")
    assert by_vector == 3


@pytest.mark.parametrize(
    "mechanism", [lambda d: sum(d) + random.random(), lambda d, rng: None, lambda d, rng: 1 / 0]
)
def test_no_noiseless_answer(mechanism):
    assert noiseless(mechanism) is None


@pytest.mark.slow
def test_noiseless_does_not_hang():
    def waits(data, rng):
        while rng.laplace() < 1:
            pass

    assert noiseless(waits) is None


def test_distances_against_a_count_by_hand():
    answer = [True, "a", 0.3, None]
    outputs = [answer, [True, "b", 0.1 + 0.2, None], [], [False], [*answer, 1], [0.3] * 4]
    found = distance_from(answer).columns(tabulate(outputs))[0].tolist()
    assert found == [0, 1, 4, 4, 1, 3]
    assert np.isnan(distance_from(answer).columns(tabulate([0.5]))[0]).all()


@pytest.mark.slow
def test_a_vector_of_answers_is_found_broken_by_its_distance():
    def above(data, rng):
        return [bool(x) ^ bool(rng.random() < (0.5 if x else 0.25)) for x in data]

    result = audit(above, eps=0.5, pairs=[([1] * 6, [0] * 6)], method=StatDP(), seed=1, n_jobs=1)
    assert result.violated
