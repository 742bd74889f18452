"""Losses by alignment are those of closed forms; mechanisms that leak have no alignment."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy
from numpy.random import default_rng

from pytest_dp.oracles.alignment import Alignment, align
from pytest_dp.oracles.checking import Memory, NotAligned
from pytest_dp.oracles.numbers import Plan
from pytest_dp.oracles.shift_loss import LossBound
from pytest_dp.privacy.conversions import gdp_to_eps
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.laws import (
    UNIFORM,
    Law,
)

RATIO = math.exp(-1.0)


@pytest.fixture(scope="module", autouse=True)
def _laws() -> None:
    """Load the laws of scipy before a mechanism draws from one."""
    assert scipy.stats.norm


def aligned(
    mechanism: Callable[..., Any],
    d1: Any,
    d2: Any,
    *,
    claim: float = 1.0,
    delta: float = 0.0,
    replays: int = 200,
    memory: Memory | None = None,
) -> Alignment:
    has_rng = "rng" in mechanism.__code__.co_varnames
    pristine = Pristine((mechanism, {}))
    call = Call(mechanism, {}, "rng" if has_rng else None, None, pristine=pristine)

    def within(bound: LossBound) -> bool:
        return bound.eps_at(delta) <= claim + 1e-9

    return align(call, (d1, d2), within, replays, Deadline(60.0), memory)


def count(data, rng):
    return len(data) + rng.laplace(scale=1.0)


def far_from_zero(data, rng):
    return 1e13 + len(data) + rng.laplace(scale=1.0)


def by_loc(data, rng):
    return rng.laplace(len(data), 1.0)


def by_numpy(data):
    return len(data) + np.random.laplace(scale=1.0)  # noqa: NPY002


def by_python(data):
    return len(data) + random.expovariate(1.0) - random.expovariate(1.0)


def by_scipy(data, rng):
    return scipy.stats.laplace.rvs(loc=len(data), scale=1.0, random_state=rng)


def rounded_and_clipped(data, rng):
    return max(0, round(len(data) + rng.laplace()))


def ratio(data, rng):
    return (sum(data) + rng.laplace(scale=2.0)) / (len(data) + rng.laplace(scale=2.0))


def histogram_as_json(data, rng):
    noisy = {str(k): round(max(0.0, data.count(k) + rng.laplace()), 2) for k in range(4)}
    return json.dumps(noisy)


def geometric(data, rng):
    return len(data) + rng.geometric(1 - RATIO) - rng.geometric(1 - RATIO)


def largest_of_list(data, rng):
    noisy = [value + rng.laplace(scale=2.0) for value in data]
    return max(range(len(data)), key=noisy.__getitem__)


def largest_of_array(data, rng):
    return int(np.argmax(np.array(data) + rng.laplace(scale=2.0, size=len(data))))


def exponential_mechanism(data, rng):
    return int(np.argmax(np.array(data) + rng.gumbel(scale=2.0, size=len(data))))


def top_two_of_order(data, rng):
    return np.argsort(-(np.array(data) + rng.gumbel(scale=2.0, size=len(data))))[:2].tolist()


def top_two_of_reversed_order(data, rng):
    noisy = np.array(data) + rng.gumbel(scale=2.0, size=len(data))
    return set(noisy.argsort()[::-1][:2].tolist())


def last_of_order(data, rng):
    return int((np.array(data) + rng.gumbel(scale=2.0, size=len(data))).argsort()[-1])


def cumulated(data, rng):
    return np.cumsum(rng.laplace(size=3)) + len(data)


def mixed_by_matrix(data, rng):
    matrix = np.array([[1.0, 0.5], [0.0, 1.0]])
    return np.array([len(data), sum(data)]) + matrix @ rng.laplace(scale=1.25, size=2)


def sparse_vector(data, rng):
    found, threshold = [], 1.0 + rng.laplace(scale=2.0)
    for value in data:
        found.append(bool(value + rng.laplace(scale=4.0) >= threshold))
        if found[-1]:
            break
    return found


def sparse_vector_of_two(data, rng):
    found, threshold, left = [], 1.0 + rng.laplace(scale=4.0), 2
    for value in data:
        found.append(bool(value + rng.laplace(scale=8.0) >= threshold))
        if found[-1]:
            threshold = 1.0 + rng.laplace(scale=4.0)
            left -= 1
        if not left:
            break
    return found


QUERIES = [0.0, 1.0, 2.0, 1.0, 0.0], [1.0, 0.0, 1.0, 2.0, 1.0]
VALUES = [1.0, 2.0, 3.0], [2.0, 1.0, 2.0]
COUNTS = [5.0, 3.0, 4.0, 4.0, 2.0], [5.0, 3.0, 4.0, 4.0, 1.0]


@pytest.mark.spot(2)
@pytest.mark.parametrize(
    ("mechanism", "pair", "loss"),
    [
        pytest.param(count, ([1, 2], [1]), 1.0, id="count"),
        pytest.param(by_loc, ([1, 2], [1]), 1.0, id="loc"),
        pytest.param(far_from_zero, ([1, 2], [1]), 1.0, id="far-from-zero"),
        pytest.param(by_numpy, ([1, 2], [1]), 1.0, id="numpy-module"),
        pytest.param(by_python, ([1, 2], [1]), 1.0, id="python-random"),
        pytest.param(by_scipy, ([1, 2], [1]), 1.0, id="scipy-rvs"),
        pytest.param(rounded_and_clipped, ([1, 2], [1]), 1.0, id="rounded-and-clipped"),
        pytest.param(ratio, ([1.0, 0.5], [1.0]), 0.75, id="ratio"),
        pytest.param(histogram_as_json, ([1, 2], [1]), 1.0, id="histogram-as-json"),
        pytest.param(geometric, ([1, 2], [1]), 1.0, id="geometric"),
        pytest.param(largest_of_list, VALUES, 1.0, id="noisy-max-of-list"),
        pytest.param(largest_of_array, VALUES, 1.0, id="noisy-max-of-array"),
        pytest.param(exponential_mechanism, VALUES, 1.0, id="exponential-mechanism"),
        pytest.param(top_two_of_order, COUNTS, 1.0, id="top-two-of-order"),
        pytest.param(top_two_of_reversed_order, COUNTS, 1.0, id="top-two-of-reversed-order"),
        pytest.param(last_of_order, COUNTS, 0.5, id="last-of-order"),
        pytest.param(cumulated, ([1, 2], [1]), 1.0, id="cumulated"),
        pytest.param(mixed_by_matrix, ([1, 0.5], [1]), 1.0, id="mixed-by-matrix"),
        pytest.param(sparse_vector, QUERIES, 0.75, id="sparse-vector"),
        pytest.param(sparse_vector_of_two, QUERIES, 0.5, id="sparse-vector-of-two"),
    ],
)
def test_bound_is_that_of_the_best_alignment(mechanism, pair, loss):
    bound = aligned(mechanism, *pair).bound
    assert bound.eps_at(0.0) == pytest.approx(loss, rel=1e-9)


def exact(data, rng):
    return len(data), len(data) + rng.laplace()


def exact_in_one_of_50(data, rng):
    noisy = len(data) + rng.laplace()
    return float(len(data)) if rng.random() < 0.02 else noisy


def exact_far_out(data, rng):
    noise = rng.laplace()
    return float(len(data)) if abs(noise) > 13.8 else len(data) + noise  # one run of 1,000,000


def identifier(data, rng):
    return 2.0**50 + len(data), len(data) + rng.laplace()


def used_twice(data, rng):
    noise = rng.laplace()
    return len(data) + noise, 2 * len(data) + noise


def scaled_by_data(data, rng):
    return len(data) + rng.laplace(scale=1.0 + len(data))


def scaled_by_noise(data, rng):
    noisy = len(data) + rng.laplace(scale=2.0)
    return noisy, sum(data) + rng.laplace(scale=1 / max(noisy, 1.0))


def seeded(data):
    return len(data) + default_rng(3).laplace()


def unseen(data):
    import os

    return len(data) + int.from_bytes(os.urandom(2), "big") / 1000


KEPT: list[float] = []


def kept(data, rng):
    KEPT.append(len(data) + rng.laplace())
    return KEPT[0]


def noiseless(data):
    return len(data)


@pytest.mark.parametrize(
    ("mechanism", "reason"),
    [
        pytest.param(exact, "no shift", id="exact-count-beside-it"),
        pytest.param(exact_in_one_of_50, "no shift", id="exact-in-one-of-50"),
        pytest.param(exact_far_out, "no shift", id="exact-far-out"),
        pytest.param(identifier, "no shift", id="long-identifier"),
        pytest.param(used_twice, "no shift", id="used-twice"),
        pytest.param(scaled_by_data, "other laws", id="scale-by-data"),
        pytest.param(scaled_by_noise, "scale of a draw depends", id="scale-by-noise"),
        pytest.param(seeded, "seed of its own", id="seeded"),
        pytest.param(unseen, "no shift", id="bytes-of-the-system"),
        pytest.param(kept, "keeps something", id="kept-answer"),
        pytest.param(noiseless, "nothing that it draws", id="noiseless"),
    ],
)
def test_mechanisms_that_leak_have_no_alignment(mechanism, reason):
    with pytest.raises(NotAligned, match=reason):
        aligned(mechanism, [1, 1], [1])


@pytest.mark.spot(4)
@pytest.mark.parametrize("seed", range(20))
def test_leak_in_one_of_50_runs_is_seen_whatever_decides_it(seed):
    generator = default_rng(seed)
    low = generator.uniform(0.0, 0.98)
    order = int(generator.integers(3))

    def leaks(data, rng):
        before = [rng.random() for _ in range(order)]
        noisy = len(data) + rng.laplace()
        return float(len(data)) if low < rng.random() < low + 0.02 else noisy + 0 * sum(before)

    with pytest.raises(NotAligned):
        aligned(leaks, [1, 1], [1])


@pytest.mark.parametrize("edge", [5.0, 6.0, 7.0, 12.0])
def test_coarse_rounding_does_not_hide_that_a_shift_is_wrong(edge):
    def coarse(data, rng):
        return round((len(data) + float(rng.laplace(scale=0.5))) / (2 * edge))

    with pytest.raises(NotAligned):
        aligned(coarse, [1, 1], [1])


def unlimited_sparse_vector(data, rng):
    threshold = 1.0 + rng.laplace(scale=2.0)
    return [bool(value + rng.laplace(scale=4.0) >= threshold) for value in data]


def truths_of_many(data, rng):
    return [bool(value + rng.laplace() > 0.0) for value in data]


FAR = [-6.0, 6.0] * 6, [-7.0, 7.0] * 6


def half_the_noise(data, rng):
    return len(data) + rng.laplace(scale=0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "pair", "loss"),
    [
        pytest.param(half_the_noise, ([1, 1], [1]), 2.0, id="half-the-noise"),
        pytest.param(unlimited_sparse_vector, QUERIES, 1.25, id="sparse-vector-without-limit"),
        pytest.param(truths_of_many, FAR, 12.0 - 1e-4, id="rare-paths-that-lose-most"),
    ],
)
def test_loss_above_the_claim_is_not_hidden(mechanism, pair, loss):
    assert aligned(mechanism, *pair).bound.eps_at(0.0) >= loss - 1e-9


def gaussian(data, rng):
    return np.array([sum(data), len(data)]) + rng.normal(scale=2.0, size=2)


def test_gaussian_noise_is_bounded_by_mu():
    bound = aligned(gaussian, [1, 2], [1], claim=5.0, delta=1e-5).bound
    assert bound.mu == pytest.approx(math.hypot(1.0, 0.5))
    assert bound.eps_at(1e-5) == pytest.approx(gdp_to_eps(bound.mu, 1e-5))
    assert bound.delta_at(bound.eps_at(1e-5)) <= 1e-5
    assert bound.eps_at(0.0) == math.inf


def by_groups(data, rng):
    noisy = {key: data.count(key) + rng.laplace() for key in sorted(set(data))}
    return {key: value for key, value in noisy.items() if value > 15}


def by_arrays_of_groups(data, rng):
    keys, counts = np.unique(data, return_counts=True)
    noisy = counts + rng.laplace(size=len(keys))
    return {str(key): float(value) for key, value in zip(keys, noisy, strict=True) if value > 15}


@pytest.mark.parametrize("mechanism", [by_groups, by_arrays_of_groups])
def test_group_of_one_record_below_a_threshold_costs_delta(mechanism):
    pair = ["a"] * 20 + ["b"] + ["c"] * 20, ["a"] * 20 + ["c"] * 20
    bound = aligned(mechanism, *pair, delta=1e-5).bound
    assert bound.rare == pytest.approx(math.exp(-14.0) / 2, rel=1e-4)
    assert bound.eps_at(1e-5) == 0.0
    assert bound.eps_at(1e-7) == math.inf


def groups_without_threshold(data, rng):
    return {key: data.count(key) + rng.laplace() for key in sorted(set(data))}


def test_group_of_one_record_without_a_threshold_has_no_alignment():
    with pytest.raises(NotAligned):
        aligned(groups_without_threshold, ["a", "a", "b"], ["a", "a"], delta=1e-5)


def test_replays_reach_each_quantile_of_each_draw():
    plan = Plan(0, 60, 40)
    values = plan.standard(3, Law(UNIFORM), 5)[:60]
    assert (np.sort((values * 60).astype(int), axis=0) == np.arange(60)[:, None]).all()
    assert not np.array_equal(values[:, 0].argsort(), values[:, 1].argsort())


def test_shift_of_one_sided_noise_does_not_bound_the_other_direction():
    """An output below 1 shows that there is no record."""

    def above(data, rng):
        return len(data) + rng.exponential()

    assert aligned(above, [1], []).bound.pure == math.inf
    assert aligned(above, [], [1]).bound.pure == math.inf


def test_noise_of_a_function_of_numpy_that_was_replaced_is_not_known(monkeypatch):
    def noisy_count(data):
        return len(data) + np.random.laplace()  # noqa: NPY002

    assert aligned(noisy_count, [1], []).bound.pure == pytest.approx(1.0)
    laplace = np.random.laplace
    monkeypatch.setattr(np.random, "laplace", lambda: 0.5 * laplace())
    with pytest.raises(NotAligned):
        aligned(noisy_count, [1], [])
