"""The loop alone: with a sampler that draws answers of known probabilities, and no mechanism."""

import math

import numpy as np
import pytest
import scipy
from learning import count_batch

from pytest_dp.betting.betting_loop import (
    FIRST_BATCH,
    BettingLoop,
)
from pytest_dp.betting.detector import fit_detector
from pytest_dp.betting.pair_queue import PairQueue, PairStatus
from pytest_dp.data.relations import Pair
from pytest_dp.outputs.features import features
from pytest_dp.outputs.table import tabulate
from pytest_dp.privacy import ApproximateDP
from pytest_dp.statistics.event_bets import rank_for
from pytest_dp.statistics.ledger import Ledger

RANK = rank_for(ApproximateDP(1.0), rarest=0.0)


class Answers:
    """Randomised response on pairs of inputs, each with a loss of its own."""

    def __init__(self, losses, seed, *, coupled=False):
        self.losses, self.coupled = losses, coupled
        self.rng, self.batches = np.random.default_rng(seed), []

    def can_couple(self, status):
        return self.coupled

    def draw(self, status, size):
        loss = self.losses[status.number]
        honest = 1 / (1 + math.exp(-loss))
        coins = self.rng.random(size)
        others = coins if status.coupled else self.rng.random(size)
        on_d, on_d2 = (tabulate(list(side)) for side in (coins < honest, others >= honest))
        status.drawn += size
        status.batches += 1
        status.outputs.add(on_d, on_d2, coupled=status.coupled)
        self.batches.append((status.number, size))
        binnings = status.detector.binnings
        return count_batch(binnings, *([one.bins(t) for one in binnings] for t in (on_d, on_d2)))

    def look_at_first_batch(self, status):
        pass

    def fit(self, status):
        table, on_d = status.outputs.table()
        return fit_detector(table, on_d, features(table, on_d), RANK)


def loop_of(losses, claim=1.0, alpha=1e-6, seed=0, **answers):
    pairs = [Pair([k], []) for k in range(len(losses))]
    queue = PairQueue(pairs, lambda: None, PairStatus)
    sampler = Answers(losses, seed, **answers)
    return BettingLoop(queue, Ledger(ApproximateDP(claim), alpha), sampler), sampler


@pytest.mark.parametrize("coupled", [False, True], ids=["independent", "coupled"])
def test_a_claim_that_is_broken_is_refuted_and_bounded(coupled):
    loop, _ = loop_of([2.0], coupled=coupled)
    loop.play(20_000)
    assert loop.ledger.refuted
    assert loop.ledger.lower == 1.0
    assert loop.queue.drawn < 1_000
    assert loop.ledger.p_value <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("coupled", [False, True], ids=["independent", "coupled"])
def test_claims_that_are_attained_are_refuted_with_chance_alpha_at_most(coupled):
    """At alpha .2, so that audits come near it; at twice the claim they are refuted."""
    refuted = {1.0: 0, 2.0: 0}
    for loss in refuted:
        for seed in range(12):
            loop, _ = loop_of([loss], alpha=0.2, seed=seed, coupled=coupled)
            loop.play(120)
            refuted[loss] += loop.ledger.refuted
    assert refuted[1.0] <= scipy.stats.binom.ppf(0.999, 12, 0.2)
    assert refuted[2.0] >= 10


def test_bets_are_fixed_before_their_batch_is_drawn(monkeypatch):
    loop, sampler = loop_of([2.0])
    order, draw, stake, settle = [], sampler.draw, loop.ledger.stake, loop.ledger.settle

    def drawing(status, size):
        order.append("draw")
        return draw(status, size)

    def staking(record, cash):
        order.append(("stake", record.pairs))
        return stake(record, cash)

    def settling(portfolio, batch):
        order.append("settle")
        settle(portfolio, batch)

    monkeypatch.setattr(sampler, "draw", drawing)
    monkeypatch.setattr(loop.ledger, "stake", staking)
    monkeypatch.setattr(loop.ledger, "settle", settling)
    loop.play(2 * FIRST_BATCH)
    assert order == ["draw", ("stake", FIRST_BATCH), "draw", "settle"]


def test_the_pair_that_breaks_the_claim_gets_most_outputs():
    loop, sampler = loop_of([0.2, 0.2, 1.4, 0.2])
    loop.play(50_000)
    assert loop.ledger.refuted
    by_pair = np.bincount(*np.array(sampler.batches).T)
    assert by_pair.argmax() == 2
    assert by_pair[2] > 2 * np.delete(by_pair, 2).max()


def test_the_same_outputs_give_the_same_batches():
    """Whatever the time that runs take: sizes depend on counts alone."""
    played = []
    for _ in range(2):
        loop, sampler = loop_of([1.3, 0.5], seed=3)
        loop.play(5_000)
        played.append((sampler.batches, loop.ledger.log_e_value))
    assert played[0] == played[1]
