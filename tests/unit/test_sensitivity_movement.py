"""Movements of noiseless answers against closed forms, and what they are infinite for."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from pytest_dp.claiming.claim import Arguments
from pytest_dp.outputs.raised import Raised
from pytest_dp.pairs.movement import Movement, Movements
from pytest_dp.pairs.noiseless import NoiselessRunner
from pytest_dp.running.calling import prepare
from pytest_dp.running.deadline import Deadline


def movement(mechanism, d1, d2) -> Movement | None:
    runner = NoiselessRunner(prepare(mechanism, Arguments()))
    movements = Movements(runner)
    with runner.in_place(Deadline(20)):
        one, other = movements.run_on(d1, twice=True), movements.run_on(d2, twice=True)
        return None if one is None or other is None else movements.between(one, other)


def noisy_sum(records, rng):
    return sum(records) + rng.laplace(scale=2.0)


def large_groups(records, rng):
    """Counts with noise, if they are large: noise decides which of them there are."""
    counts = {record: records.count(record) for record in sorted(set(records))}
    noisy = {record: count + rng.laplace() for record, count in counts.items()}
    return {record: count for record, count in noisy.items() if count > 4.5}


def prefix_sums(records, rng):
    noise = rng.laplace(scale=0.5, size=3)
    return np.cumsum(noise) + np.cumsum(records)


def gaussians(records, rng):
    return np.array([sum(records), len(records)]) + rng.normal(scale=[1.0, 2.0])


def test_movement_is_the_loss_in_closed_form():
    for mechanism, d1, d2, loss in [
        (noisy_sum, [1, 2], [1, 2, 6], 6 / 2),
        (noisy_sum, [1, 2], [2, 1], 0.0),
        (prefix_sums, [1, 2, 3], [1, 7, 3], 5 / 0.5),
        (gaussians, [1], [1, 3], math.hypot(3.0, 1 / 2)),
        (lambda records, rng: round(noisy_sum(records, rng)), [1], [1, 6], 6 / 2),
    ]:
        assert movement(mechanism, d1, d2).loss == pytest.approx(loss, rel=1e-6)


WRAPPED = {
    "text": lambda noisy, n: f"about {noisy} of many",
    "polars": lambda noisy, n: pl.DataFrame({"sum": [noisy]}),
    "pandas": lambda noisy, n: pd.DataFrame({"row": ["a"], "sum": [noisy]}),
    "object": lambda noisy, n: SimpleNamespace(sum=noisy),
}
"""The same noisy number inside of outputs of all kinds."""


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
def test_a_number_moves_alike_whatever_it_is_inside_of(wrap):
    def wrapped(records, rng):
        return wrap(noisy_sum(records, rng), len(records))

    assert movement(wrapped, [1, 2], [1, 2, 6]).loss == pytest.approx(3.0, rel=1e-4)


class Private:
    def __init__(self, noisy, n):
        self.noisy, self._n = noisy, n


TELLING = {
    "dtype": lambda noisy, n: np.array([noisy], "f4" if n > 2 else "f8"),
    "order of keys": lambda noisy, n: {"a": 0, "b": noisy} if n > 2 else {"b": noisy, "a": 0},
    "private attribute": Private,
    "message": lambda noisy, n: Raised("ValueError", message=f"{noisy}: only {n} rows"),
}
"""Outputs in which something beside the noisy number tells how many records there are."""


@pytest.mark.parametrize("tell", TELLING.values(), ids=TELLING)
def test_what_an_event_can_tell_of_an_output_moves_without_end(tell):
    def telling(records, rng):
        return tell(sum(records) + rng.laplace(scale=100.0), len(records))

    assert movement(telling, [1, 2], [1, 2, 6]).loss == math.inf


def same_noise_twice(records, rng):
    noise = rng.laplace(scale=100.0)
    return sum(records) + noise, len(records) + noise


def raises_on_negative(records, rng):
    if min(records) < 0:
        raise ValueError("negative")
    return len(records) + rng.laplace(scale=100.0)


UNCOVERED = {
    "number without noise": (lambda d, rng: [d.count(0), noisy_sum(d, rng)], [1, 0], [1, 0, 0]),
    "shared noise": (same_noise_twice, [1], [1, 3]),
    "exception": (raises_on_negative, [1], [1, -1]),
    "nan": (noisy_sum, [1.0], [1.0, math.nan]),
}


@pytest.mark.parametrize("name", UNCOVERED)
def test_what_no_noise_covers_is_infinite(name):
    assert movement(*UNCOVERED[name]).loss == math.inf


def test_what_shares_noise_and_moves_alike_is_finite():
    assert movement(same_noise_twice, [1], [1, 1]).loss == pytest.approx(1 / 100)


def gated_factor(records, rng):
    noise = rng.laplace()
    return len(records) + (noise / 4 if 7 in records else noise)


def test_noise_of_another_size_counts_by_the_smaller_one():
    assert movement(gated_factor, [1], [1, 2]).loss == pytest.approx(1.0)
    assert movement(gated_factor, [1], [1, 7]).loss == pytest.approx(4 + math.log(4))
    assert movement(gated_factor, [7], [7, 1]).loss == pytest.approx(4.0)


def test_a_category_that_noise_decides_is_not_infinite():
    def largest_noisy(records, rng):
        return int(np.argmax([record + rng.laplace(scale=100.0) for record in records])) > 0

    assert movement(largest_noisy, [1, 2], [2, 1]).loss < math.inf


def test_inputs_stay_as_they_are():
    def changes_its_input(records, rng):
        records.append(100)
        return sum(records) + rng.laplace()

    d1, d2 = [1], [1, 3]
    assert movement(changes_its_input, d1, d2).loss == pytest.approx(3.0)
    assert (d1, d2) == ([1], [1, 3])


def mean_of_some(records, rng):
    total, count = sum(records) + rng.laplace(scale=9.0), len(records) + rng.laplace()
    return total / max(count, 1)


@pytest.mark.parametrize("empty", [[], [9.0]])
def test_a_number_without_noise_on_one_input_alone_moves_without_end(empty):
    def special(records, rng):
        return 0.0 if records == empty else mean_of_some(records, rng)

    for pair in ((empty, [1.0, 2.0]), ([1.0, 2.0], empty)):
        assert movement(special, *pair).loss == math.inf
        assert movement(mean_of_some, *pair).loss < math.inf


def test_runs_are_compared_at_draws_that_leave_the_form_of_outputs_alone():
    """With draws at their centres one group is in the output, and with others both."""
    d1 = ["a"] * 9 + ["b"] * 4
    assert 0.3 < movement(large_groups, d1, [*d1, "a"]).loss < 3
