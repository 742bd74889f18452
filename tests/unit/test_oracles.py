"""Losses by alignment are those of closed forms; mechanisms that leak have no alignment."""

# ruff: noqa: NPY002
from __future__ import annotations

import csv
import io
import json
import math
import random

import numpy as np
import pytest
import scipy
from numpy.random import default_rng

from pytest_dp.oracles.alignment import align
from pytest_dp.oracles.checking import NotAligned
from pytest_dp.oracles.handing_out import Plan
from pytest_dp.privacy.stated import gdp_to_eps
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.laws import UNIFORM, Law

RATIO = 1 - math.exp(-1.0)


@pytest.fixture(scope="module", autouse=True)
def _laws():
    """Load the laws of scipy before a mechanism draws from one."""
    assert scipy.stats.norm


def aligned(mechanism, d1, d2, *, claim=1.0, delta=0.0):
    has_rng = "rng" in mechanism.__code__.co_varnames
    call = Call(mechanism, {}, "rng" if has_rng else None, pristine=Pristine((mechanism, {})))
    within = lambda bound: bound.eps_at(delta) <= claim + 1e-9  # noqa: E731
    return align(call, (d1, d2), within, 200, Deadline(60.0), None)


def histogram_as_json(data, rng):
    noisy = {str(k): round(max(0.0, data.count(k) + rng.laplace()), 2) for k in range(4)}
    return json.dumps(noisy)


def largest_of_list(data, rng):
    noisy = [value + rng.laplace(scale=2.0) for value in data]
    return max(range(len(data)), key=noisy.__getitem__)


def sparse_vector(data, rng):
    found, threshold = [], 1.0 + rng.laplace(scale=2.0)
    for value in data:
        found.append(bool(value + rng.laplace(scale=4.0) >= threshold))
        if found[-1]:
            break
    return found


LOST = {
    "far from zero": lambda data, rng: 1e13 + len(data) + rng.laplace(scale=1.0),
    "numpy module": lambda data: len(data) + np.random.laplace(scale=1.0),
    "Python": lambda data: len(data) + random.expovariate(1.0) - random.expovariate(1.0),
    "scipy": lambda data, rng: scipy.stats.laplace.rvs(len(data), 1.0, random_state=rng),
    "geometric": lambda data, rng: len(data) + rng.geometric(RATIO) - rng.geometric(RATIO),
    "both of an array": lambda data, rng: rng.laplace([len(data), sum(data)], 3.0),
    "json": histogram_as_json,
}
"""Mechanisms that lose 1 if a record is added."""
QUERIES = [0.0, 1.0, 2.0, 1.0, 0.0], [1.0, 0.0, 1.0, 2.0, 1.0]
VALUES = [1.0, 2.0, 3.0], [2.0, 1.0, 2.0]
CHOSEN = {
    "list": (largest_of_list, VALUES, 1.0),
    "array": (lambda data, rng: np.argmax(data + rng.gumbel(scale=2.0, size=3)), VALUES, 1.0),
    "cumulated": (lambda data, rng: np.cumsum(rng.laplace(size=3)) + len(data), ([1], []), 1.0),
    "sparse vector": (sparse_vector, QUERIES, 0.75),
}


@pytest.mark.parametrize("name", LOST)
def test_noise_loses_what_is_known(name):
    assert aligned(LOST[name], [1, 2], [1]).bound.eps_at(0.0) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("name", CHOSEN)
def test_bound_is_that_of_the_best_alignment(name):
    mechanism, pair, loss = CHOSEN[name]
    assert aligned(mechanism, *pair).bound.eps_at(0.0) == pytest.approx(loss, rel=1e-9)


def exact_far_out(data, rng):
    noise = rng.laplace()
    return float(len(data)) if abs(noise) > 13.8 else len(data) + noise  # one run of 1,000,000


def scaled_by_noise(data, rng):
    noisy = len(data) + rng.laplace(scale=2.0)
    return noisy, sum(data) + rng.laplace(scale=1 / max(noisy, 1.0))


def unseen(data):
    import os

    return len(data) + int.from_bytes(os.urandom(2), "big") / 1000


KEPT: list[float] = []


def kept(data, rng):
    KEPT.append(len(data) + rng.laplace())
    return KEPT[0]


LEAKING = {
    "exact far out": (exact_far_out, "no shift"),
    "identifier": (lambda data, rng: (2.0**50 + len(data), len(data) + rng.laplace()), "no shift"),
    "scale by data": (lambda data, rng: rng.laplace(len(data), 1.0 + len(data)), "other laws"),
    "scale by noise": (scaled_by_noise, "scale of a draw depends"),
    "seeded": (lambda data: len(data) + default_rng(3).laplace(), "seed of its own"),
    "bytes of the system": (unseen, "no shift"),
    "kept": (kept, "keeps something"),
    "noiseless": (lambda data: len(data), "nothing that it draws"),
}


@pytest.mark.parametrize("name", LEAKING)
def test_mechanisms_that_leak_have_no_alignment(name):
    mechanism, reason = LEAKING[name]
    with pytest.raises(NotAligned, match=reason):
        aligned(mechanism, [1, 1], [1])


@pytest.mark.parametrize("seed", range(4))
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


@pytest.mark.parametrize("edge", [6.0, 12.0])
def test_coarse_rounding_does_not_hide_that_a_shift_is_wrong(edge):
    def coarse(data, rng):
        return round((len(data) + float(rng.laplace(scale=0.5))) / (2 * edge))

    with pytest.raises(NotAligned):
        aligned(coarse, [1, 1], [1])


def unlimited_sparse_vector(data, rng):
    threshold = 1.0 + rng.laplace(scale=2.0)
    return [bool(value + rng.laplace(scale=4.0) >= threshold) for value in data]


@pytest.mark.slow
def test_loss_above_the_claim_is_not_hidden():
    def truths_of_many(data, rng):
        return [bool(value + rng.laplace() > 0.0) for value in data]

    assert aligned(unlimited_sparse_vector, *QUERIES).bound.eps_at(0.0) >= 1.25 - 1e-9
    far = [-6.0, 6.0] * 6, [-7.0, 7.0] * 6
    assert aligned(truths_of_many, *far).bound.eps_at(0.0) >= 12.0 - 1e-4  # on rare paths


def test_gaussian_noise_is_bounded_by_mu():
    def gaussian(data, rng):
        return np.array([sum(data), len(data)]) + rng.normal(scale=2.0, size=2)

    bound = aligned(gaussian, [1, 2], [1], claim=5.0, delta=1e-5).bound
    assert bound.mu == pytest.approx(math.hypot(1.0, 0.5))
    assert bound.eps_at(1e-5) == pytest.approx(gdp_to_eps(bound.mu, 1e-5))
    assert bound.delta_at(bound.eps_at(1e-5)) <= 1e-5
    assert bound.eps_at(0.0) == math.inf


def test_group_of_one_record_without_a_threshold_has_no_alignment():
    def groups(data, rng):
        return {key: data.count(key) + rng.laplace() for key in sorted(set(data))}

    with pytest.raises(NotAligned):
        aligned(groups, ["a", "a", "b"], ["a", "a"], delta=1e-5)


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


LEGAL, SALES = ("legal", 78_000), ("sales", 41_000)


def moves(mechanism, d1, d2):
    call = Call(mechanism, {}, "rng", None, pristine=Pristine((mechanism, {})))
    return align(call, (d1, d2), lambda _: False, 40, Deadline(60.0))


def exported(staff, rng):
    """Return noisy figures of two teams as CSV: clipped, rounded and written as text."""
    file = io.StringIO()
    for team in ("legal", "sales"):
        paid = [salary for own, salary in staff if own == team]
        people = len(paid) + rng.laplace(scale=4.0)
        salaries = sum(paid) + rng.laplace(scale=100_000)
        row = [round(people, 2), round(float(np.clip(salaries, 0, None)))]
        csv.writer(file).writerow(row)
    return file.getvalue()


def mixed(data, rng):
    first = len(data) + rng.laplace(scale=2.0)
    second = np.array([sum(data), 7.0]) + rng.normal(scale=4.0, size=2)
    return first, second


def test_losses_of_lines_add_up_to_that_of_the_pair():
    found = moves(exported, [LEGAL, SALES], [SALES, SALES])
    by_line = {}
    for move in found.moves:
        by_line.setdefault(move.stack[0].line, []).append(move)
    people, salaries = (by_line[line] for line in sorted(by_line))
    assert sum(move.loss.pure for move in people) == pytest.approx(2 / 4)
    assert sum(move.loss.pure for move in salaries) == pytest.approx(0.78 + 0.41)
    assert [abs(move.distances[0]) for move in salaries] == pytest.approx([78_000, 41_000])
    assert found.bound.pure == pytest.approx(0.5 + 0.78 + 0.41)
    assert found.bound.replay is None  # results keep no runs


def test_draws_that_do_not_move_are_left_out():
    assert moves(mixed, [3, 5], [5, 3]).moves == ()
