"""Passes that rest on alignments: what they are graded, and what they never hide."""

from __future__ import annotations

import math
import statistics
import threading
from contextlib import suppress

import pytest

from benchmarks.aligned_random import mechanism
from pytest_dp import RenyiDP, audit, estimate
from pytest_dp.oracles.alignment import align
from pytest_dp.oracles.checking import NotAligned
from pytest_dp.oracles.shifts import LossBound
from pytest_dp.privacy.stated import gdp_to_delta
from pytest_dp.report.record import Record
from pytest_dp.report.summary_table import known_loss_text
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.generator_stand_ins import CannotInstrument

PAIRS = [([1.0, 0.5], [1.0]), ([1.0], [])]


def mean(data, rng):
    return (sum(data) + rng.laplace(scale=2.0)) / (len(data) + rng.laplace(scale=2.0))


def gaussian_ratio(data, rng):
    return (sum(data) + rng.normal(scale=2.0)) / (len(data) + rng.normal(scale=2.0))


def test_pass_by_alignment_is_graded_so_and_says_over_what():
    result = audit(mean, eps=1.0, pairs=PAIRS, seed=0)
    assert (result.verdict, result.strength) == ("no violation", "aligned")
    assert result.estimate.value == pytest.approx(1.0)
    assert result.samples < 20_000
    said = known_loss_text(Record.of(result))
    assert said.startswith("aligned on these pairs: eps <= 1.000000 (300 replays)")
    assert "fewer than 1 of" in said


@pytest.mark.slow
def test_answers_that_are_many_deviations_apart_are_red():
    """Their loss is larger than any that can be claimed, which is no error."""
    common = {"pairs": [(0.0, 51.0)], "seed": 0, "n_jobs": 1, "max_samples": 2_000}
    assert audit(lambda x, rng: x + rng.normal(), eps=1.0, delta=1e-5, **common).violated


@pytest.mark.slow
@pytest.mark.parametrize(("order", "times", "is_aligned"), [(8, 1.001, True), (2, 0.99, False)])
def test_gaussian_ratio_is_within_its_renyi_divergence(order, times, is_aligned):
    promise = RenyiDP({order: times * order * 0.5 / 2})
    result = audit(gaussian_ratio, guarantee=promise, pairs=PAIRS, seed=0, max_samples=2_000)
    assert (result.strength == "aligned") == is_aligned


def test_bounds_on_renyi_divergences_are_those_of_gaussian_draws_alone():
    with pytest.raises(CannotInstrument, match="no bound on"):
        LossBound(0.5, 0.8).parameter_of(RenyiDP({3: 1.0}))
    assert LossBound(0.0, 0.8).parameter_of(RenyiDP({3: 1.0})) == pytest.approx(0.96)
    assert LossBound(0.0, 0.8).parameter_of(RenyiDP({2: 0.1, 3: 1.0})) == pytest.approx(6.4)


class Answer:
    def __init__(self, value):
        self.value = value


LOCAL = threading.local()
LOCAL.scale = 1.0


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda data, rng: Answer(sum(data) + rng.laplace()),  # copyreg notes its slots in the class
        lambda data, rng: sum(data) + rng.laplace(scale=LOCAL.scale),
        lambda data, rng: 10**400 * round(10 * float(sum(data) + rng.laplace())),
    ],
    ids=["an object", "of a thread", "too large for floats"],
)
def test_what_a_mechanism_uses_and_returns_leaves_its_alignment_alone(mechanism):
    result = audit(mechanism, eps=1.0, pairs=PAIRS[1:], search=(), n_jobs=1, seed=0)
    assert (result.strength, result.notes) == ("aligned", ())


@pytest.mark.slow
def test_random_mechanisms_have_no_bound_below_their_loss():
    exist = found = 0
    for seed in range(40):
        random = mechanism(seed)
        call = Call(random, {}, "rng", None, pristine=Pristine((random, {})))
        enough, bound = random.loss * (1 + 1e-4), None
        with suppress(NotAligned):
            bound = align(
                call, (0, 1), lambda b, e=enough: b.eps_at(0.0) <= e, 60, Deadline(60.0)
            ).bound.eps_at(0.0)
        assert bound is None or bound >= random.loss - 1e-6, f"seed {seed}: {random}"
        exist += random.alignable
        found += random.alignable and bound is not None and bound < math.inf
    assert found >= 0.8 * exist > 10


@pytest.mark.slow
def test_estimate_says_what_the_loss_is_at_most_and_at_least():
    loss = estimate(mean, pairs=PAIRS[:1], seed=0, max_samples=20_000)
    assert loss.mode == "aligned"
    assert loss.value == pytest.approx(0.75)
    others = [estimate(mean, pairs=PAIRS[:1], seed=seed, max_samples=20_000) for seed in (1, 2)]
    assert 0.2 < statistics.median(x.value - x.error for x in (loss, *others)) < 0.75
    assert str(loss).startswith("eps at most 0.75 by alignment, at least 0.")
    lower, upper = loss.profile(0.5)
    assert lower < upper == 1.0
    assert loss.profile(0.75)[1] == 0.0


@pytest.mark.slow
def test_estimate_bounds_delta_where_noise_is_gaussian():
    loss = estimate(gaussian_ratio, pairs=PAIRS[:1], seed=0, max_samples=20_000)
    assert loss.value == math.inf
    upper = loss.profile(1.0)[1]
    assert upper == pytest.approx(gdp_to_delta(math.hypot(0.25, 0.5), 1.0))


@pytest.mark.slow
def test_a_pair_with_few_replays_does_not_hide_behind_one_with_many():
    """On 1 of 29 runs on the second pair the true sum is added, which loses without end."""

    def mean_of_some(data, rng):
        count = round(sum(data) + rng.laplace(scale=2.0))
        size = max(len(data) + rng.laplace(scale=2.0), 4.0)
        return (count + 0.1 * sum(data) * (count == 7)) / size

    data = [0.0, 1.0, 1.0, 0.0, 1.0]
    for seed in (1, 2):
        pairs = [(data, data[1:]), (data, data[:4])]
        result = audit(mean_of_some, eps=1.0, pairs=pairs, seed=seed, max_samples=1_000)
        assert result.strength != "aligned"
