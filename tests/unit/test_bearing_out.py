"""Passes by known losses: what is borne out ends early, what is in doubt does not."""

from __future__ import annotations

import functools
import math
import re
import threading
from dataclasses import replace

import numpy as np
import pytest
from exact import call_of

from benchmarks.attacked_traces import audited, is_wrong
from benchmarks.unlike_traces import MEMBERS
from pytest_dp import audit, known_losses
from pytest_dp.oracles.alignment import check_rows
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.generator_stand_ins import CannotInstrument

looked_up, kept = functools.lru_cache(abs), []


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda x, rng: looked_up(x) + rng.laplace(),
        lambda x, rng: kept.append(1) or x + rng.laplace(),
    ],
    ids=["cached", "keeps"],
)
def test_what_may_differ_between_runs_is_in_doubt(mechanism):
    with pytest.raises(CannotInstrument, match="keeps something"):
        known_losses.check_keeps_nothing(call_of(mechanism), 1, Deadline(5.0))


@pytest.mark.slow
def test_a_loss_above_the_claim_is_suspect_where_runs_are_few():
    def with_half_the_noise(x, rng):
        return bool(x) ^ (rng.random() < 1 / (1 + math.e**2))

    claim = {"eps": 1.0, "pairs": [(0, 1)], "seed": 1, "n_jobs": 1}
    result = audit(with_half_the_noise, **claim, max_samples=60)
    assert result.verdict == "inconclusive"
    assert result.reason.startswith("suspect: exact eps = 2, above the claim of 1")
    assert re.search("D = [01] and D' = [01]: S = {.*} came in", result.reason)
    assert audit(with_half_the_noise, **claim, max_samples=1_000).violated


def rounded_steps(x, rng):
    """Its loss is the claim's, but 1 - 0.7 and 0.3 are different doubles."""
    return x + round(rng.laplace(), 1)


def far_but_known(x, rng):
    told = rng.random() < 1e-4
    return ("it is", x) if told else bool(x) ^ (rng.random() < 0.4)


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "suspect"), [(rounded_steps, False), (far_but_known, True)])
def test_what_differs_by_rounding_alone_is_not_suspect(mechanism, suspect):
    result = audit(mechanism, eps=1.0, pairs=[(1, 0)], seed=1, n_jobs=1, max_samples=10_000)
    assert any(note.startswith("suspect: ") for note in result.notes) == suspect
    assert result.verdict == ("inconclusive" if suspect else "no violation")


@pytest.mark.slow
@pytest.mark.parametrize("member", MEMBERS[::19], ids=lambda member: member.name)
def test_no_attacked_mechanism_passes_by_it(member):
    assert not is_wrong(member, audited(member, max_samples=70))


def rows_alone(x, rng, size):
    return np.array([x, 1]) + rng.laplace(scale=[1.0, 2.0], size=(size, 2))


def some_rows_without_noise(x, rng, size):
    noise = rng.laplace(size=size)
    noise[500::1_000] = 0
    return x + noise


def less_noise_in_the_last_of_odd_rows(x, rng, size):
    """Not in calls of one row."""
    noise = rng.laplace(size=size)
    noise[-1] *= 0.3 if size % 2 and size > 1 else 1
    return x + noise


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "known"),
    [
        (rows_alone, True),
        (some_rows_without_noise, False),
        (less_noise_in_the_last_of_odd_rows, False),
    ],
)
def test_vectorised_functions_pass_by_rows_with_given_numbers(mechanism, known):
    claim = {"eps": 1.0, "pairs": [(1, 0)], "vectorized": True, "max_samples": 6_000}
    result = audit(mechanism, **claim, seed=1, n_jobs=1)
    assert (result.strength == "aligned") == known
    if known:  # rows with given numbers are no runs
        assert result.estimate.runs <= result.samples


@pytest.mark.parametrize(
    ("mechanism", "same"),
    [
        (rows_alone, True),
        (lambda x, rng, size: [[x, rng.laplace()] for _ in range(size)], False),
        (lambda x, rng, size: x + rng.laplace(size=size) + (size > 1), False),
        (lambda x, rng, size: x + rng.choice(3, size=size), False),
        (lambda x, rng, size: np.sort(x + rng.laplace(size=size)), False),
    ],
    ids=["array", "one-by-one", "by-size", "unseen-draws", "sorted"],
)
def test_rows_are_held_against_calls_of_one_row(mechanism, same):
    call = replace(call_of(mechanism), size="size")
    if same:
        assert check_rows(call, 1, [12, 13], Deadline(5.0)) == 12 + 11 + 13 + 13 + 12 + 14
    else:
        with pytest.raises(CannotInstrument, match="rows of a vectorised call"):
            check_rows(call, 1, [12, 13], Deadline(5.0))


SEARCHED = {"eps": 1.0, "neighbors": "add_remove_one", "inputs": [[1, 2]], "seed": 1, "n_jobs": 1}


@pytest.mark.slow
@pytest.mark.usefixtures("_verdict_only")
def test_what_a_proposed_pair_loses_is_told_beside_a_pass_by_known_losses():
    """A dozen runs on it, as on each proposed pair, would not show it."""

    def counted(records, rng):
        return len(records) + rng.laplace(scale=0.5 if 77 in records else 1.0)

    result = audit(counted, **SEARCHED)
    assert (result.verdict, result.strength) == ("no violation", "aligned")
    assert result.beyond.violated


@pytest.mark.slow
@pytest.mark.usefixtures("_verdict_only")
def test_a_proposed_pair_whose_loss_is_not_known_is_bet_on():
    def counted(records, rng):
        return len(records) + (0.4 * rng.standard_t(df=1) if 77 in records else rng.laplace())

    assert audit(counted, **SEARCHED, beyond="fail").violated


class Unpicklable:
    def __init__(self, number):
        self.number, self.lock = number, threading.Lock()


def test_a_law_belongs_to_its_data_however_short_they_live(monkeypatch):
    """Data that cannot be pickled are known by their id, which another object may get."""
    monkeypatch.setattr(known_losses, "enumerate_law", lambda call, data, deadline: data.number)
    monkeypatch.setattr(known_losses, "compare_laws", lambda one, other: (one, other))
    enumerator = known_losses.Enumerator(call_of(abs))
    for number in range(50):
        inputs = Unpicklable(number), Unpicklable(-number)
        assert enumerator.enumerate_pair(inputs, Deadline(math.inf)) == (number, -number)
