"""Audits that enumerate: false alarms stay within their bound, and what is called exact is."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest

from benchmarks.exact_random import compare, compiled, known, program
from pytest_dp import audit
from pytest_dp.running.generator_stand_ins import CannotInstrument


@pytest.fixture(autouse=True)
def _without_alignments(monkeypatch):
    """Outcomes are enumerated where no alignment bounds the loss."""

    def refuse(*_, **__):
        raise CannotInstrument("not aligned")

    monkeypatch.setattr("pytest_dp.known_losses.align_within_claim", refuse)


def unseen(x):
    """Randomised response on bits that no stand-in sees, as those of compiled code."""
    source = os.open("/dev/urandom", os.O_RDONLY)
    byte = os.read(source, 1)[0]
    os.close(source)
    return x if byte < 192 else 1 - x


def test_noise_that_no_stand_in_sees_stays_green_and_is_not_called_exact():
    result = audit(unseen, eps=math.log(3), pairs=[(0, 1)], n_jobs=1, max_samples=40_000)
    assert result.verdict == "no violation"
    assert result.estimate is None
    assert result.not_exact == "real runs give other outputs than derived"


def rare(x, rng):
    if rng.random() < 4e-4:
        return "leak" if x else "other"
    return bool(rng.random() < 0.5)


@pytest.mark.usefixtures("_verdict_only")
def test_what_is_rare_and_enumerated_is_bet_on_until_it_shows():
    result = audit(rare, eps=1.0, pairs=[(0, 1)], seed=2, n_jobs=1)
    assert result.violated  # without enumeration, this audit ends at its margin after 16,046
    assert result.bet_samples > 200_000


def rarer(x, rng):
    return "leak" if x and rng.random() < 1e-9 else bool(rng.random() < 0.5)


def test_a_loss_that_no_run_can_show_is_not_called_exact():
    result = audit(rarer, eps=1.0, pairs=[(0, 1)], seed=2, n_jobs=1)
    assert (result.verdict, result.strength) == ("inconclusive", "")
    assert "suspect: exact eps = inf" in result.reason


def test_random_programs_are_distributed_as_enumerated():
    compared = []
    rng = np.random.default_rng(5)
    for seed in range(5_000, 5_025):
        mechanism = compiled(program(seed))
        try:
            distribution = known(mechanism, 1)
        except CannotInstrument:
            continue
        p, outside = compare(distribution, [mechanism(1, rng) for _ in range(1_000)])
        assert not outside, seed
        compared.append(p)
    assert len(compared) > 15
    assert min(compared) > 1e-4 / len(compared)


def test_no_loss_is_told_where_what_was_left_out_loses_more():
    """Of rounded Gaussian noise it has no bound; that of what was enumerated is 2.2."""

    def rounded(data, rng):
        return round(data + rng.normal(scale=3.0))

    result = audit(rounded, eps=2.8, pairs=[(1, 0)], seed=1, n_jobs=1, max_samples=20_000)
    assert result.estimate is None
    assert "tails" in result.not_exact
