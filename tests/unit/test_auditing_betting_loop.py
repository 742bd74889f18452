"""The loop alone: with a sampler that draws answers of known probabilities, and no mechanism."""

import math

import numpy as np
import pytest
import scipy

from pytest_dp.betting.betting_loop import (
    FIRST_BATCH,
    PROPOSED_SHARE,
    WON_BY_CHANCE,
    BettingLoop,
    PairQueue,
    PairState,
)
from pytest_dp.betting.detector import fit_detector, joint_counts
from pytest_dp.data.relations import Pair
from pytest_dp.outputs.features import features
from pytest_dp.outputs.table import tabulate
from pytest_dp.privacy import ApproximateDP
from pytest_dp.statistics.event_bets import rank_for
from pytest_dp.statistics.ledger import Ledger, ledger_of

RANK = rank_for(ApproximateDP(1.0), rarest=0.0)


class Answers:
    """Randomised response on pairs of inputs, each with a loss of its own."""

    def __init__(self, losses, seed, *, coupled=False):
        self.losses, self.coupled = losses, coupled
        self.rng, self.batches = np.random.default_rng(seed), []

    def decide_coupling(self, status):
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
        return [
            joint_counts(one.bins(on_d), one.bins(on_d2), one.width)
            for one in status.detector.binnings
        ]

    def look_at_first_batch(self, status):
        pass

    def fit(self, status):
        table, on_d = status.outputs.table()
        return fit_detector(table, on_d, features(table, on_d), RANK)


def loop_of(losses, claim=1.0, alpha=1e-6, seed=0, **answers):
    pairs = [Pair([k], []) for k in range(len(losses))]
    queue = PairQueue(pairs, lambda: None, PairState)
    sampler = Answers(losses, seed, **answers)
    return BettingLoop(queue, Ledger(ApproximateDP(claim), alpha), sampler), sampler


@pytest.mark.slow
@pytest.mark.parametrize("coupled", [False, True], ids=["independent", "coupled"])
def test_claims_that_are_attained_are_refuted_with_chance_alpha_at_most(coupled):
    """At alpha .2, so that audits come near it; at twice the claim they are refuted."""
    refuted = {1.0: 0, 2.0: 0}
    for loss in refuted:
        for seed in range(12):
            loop, _ = loop_of([loss], alpha=0.2, seed=seed, coupled=coupled)
            loop.play(120)
            refuted[loss] += loop.ledger.is_refuted
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
    assert loop.ledger.is_refuted
    assert loop.ledger.lower == 1.0
    by_pair = np.bincount(*np.array(sampler.batches).T)
    assert by_pair.argmax() == 2
    assert by_pair[2] > 2 * np.delete(by_pair, 2).max()


CLAIM = ApproximateDP(0.1)


def detector_of(outputs):
    table = tabulate(outputs)
    on_d = np.arange(len(table)) < len(table) // 2
    return fit_detector(table, on_d, features(table, on_d), rank_for(CLAIM, rarest=0.0))


@pytest.mark.parametrize("seed", range(2))
def test_counts_of_outputs_that_tell_nothing_are_not_flattered(seed):
    """Six numbers of pure noise: counted through what they taught, they would gain 18 or more."""
    noise = np.random.default_rng(seed).normal(size=(600, 6))
    record = detector_of(noise)[1]
    assert max(ledger_of(CLAIM).growth(record)) < 6.0


def test_a_value_that_is_released_once_in_a_while_is_one_of_the_events():
    """It says nothing yet, and everything later."""
    rng = np.random.default_rng(7)
    outputs = rng.normal(size=4_000)
    outputs[rng.choice(2_000, 12, replace=False)] = 77.0
    detector, _ = detector_of(outputs)
    leak, other = tabulate([77.0]), tabulate([76.0])
    assert any(one.bins(leak) != one.bins(other) for one in detector.binnings[1:])


def pairs(count, start=0):
    return [Pair([k], []) for k in range(start, start + count)]


def queue_of(count, proposed=()):
    waiting = iter(proposed)
    return PairQueue(pairs(count), lambda: next(waiting, None), PairState)


def draw(status, size, edge_bound):
    status.drawn += size
    status.edge_bound = edge_bound


def test_the_largest_bound_is_next_once_all_were_looked_at():
    queue = queue_of(3)
    for bound in (0.1, 0.3, 0.2):
        draw(queue.pick_pair(), 12, bound)
    assert queue.pick_pair() is queue.seen[1]
    draw(queue.seen[1], 12, 0.15)
    assert queue.pick_pair() is queue.seen[2]
    assert queue.draw_count == 48


def test_refused_pairs_are_never_drawn_again():
    queue = queue_of(2)
    first = queue.pick_pair()
    first.refused = True
    second = queue.pick_pair()
    second.refused = True
    assert (second.pair.d1, queue.pick_pair()) == ([1], None)


def test_proposed_pairs_get_a_bounded_share():
    queue = queue_of(1, pairs(100, start=1))
    draw(queue.pick_pair(), 40_000, 0.0)
    while (status := queue.pick_pair()) is not queue.seen[0]:
        draw(status, 100, 0.0)
    on_proposed = queue.draw_count - 40_000
    assert (
        PROPOSED_SHARE * queue.draw_count < on_proposed <= PROPOSED_SHARE * queue.draw_count + 100
    )


def test_proposed_pairs_that_win_are_drawn_beyond_their_share():
    queue = queue_of(1, pairs(1, start=1))
    draw(queue.pick_pair(), 100, 0.1)
    winning = queue.pick_pair()
    draw(winning, 5_000, 0.3)
    winning.earned = WON_BY_CHANCE
    assert queue.pick_pair() is winning
    winning.earned = WON_BY_CHANCE / 2
    assert queue.pick_pair() is queue.seen[0]
