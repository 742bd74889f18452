"""Audits by betting: what is drawn, what is shared between inputs, and what breaks that."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
from boundary import COUNTS, run

from pytest_dp import Sequential, audit
from pytest_dp.auditors import sequential
from pytest_dp.auditors.budget import COUPLED_SHARE
from pytest_dp.auditors.loss_oracle import KnownLosses
from pytest_dp.claiming.setting_fields import SEARCHES
from pytest_dp.running.sampler import Sampler
from pytest_dp.running.streams import Purpose
from pytest_dp.statistics.ledger import Ledger

ALPHA = 0.05


@pytest.fixture
def watched(monkeypatch):
    """Every measurement's keys, how many there were at each stake, and all ledgers with alphas."""
    seen = SimpleNamespace(draws=[], stakes=[], alphas=[], ledgers=[])
    measure, stake, ledger = Sampler.measure, Ledger.stake, Ledger.__init__

    def measured(self, draws, function, deadline):
        seen.draws.append([(draw.key, draw.shared) for draw in draws])
        return measure(self, draws, function, deadline)

    def staked(self, record, cash):
        seen.stakes.append(len(seen.draws))
        return stake(self, record, cash)

    def opened(self, guarantee, *more):
        if more:  # others are only asked what bets would gain
            seen.alphas.append(more[0])
            seen.ledgers.append(self)
        ledger(self, guarantee, *more)

    monkeypatch.setattr(Sampler, "measure", measured)
    monkeypatch.setattr(Ledger, "stake", staked)
    monkeypatch.setattr(Ledger, "__init__", opened)
    return seen


def assert_all_new(draws):
    keys = [{key for key, _ in batch} for batch in draws]
    for one, other in itertools.combinations(keys, 2):
        assert not one & other


def test_no_sample_is_drawn_twice_and_all_are_bet_on_before_they_are_seen(watched, monkeypatch):
    # else half of its runs need no bets
    monkeypatch.setattr(sequential, "losses_of", lambda _: KnownLosses())
    result = run("histogram", 1.0, 1.0, 3, max_samples=6_000, search=SEARCHES)
    assert not result.violated
    expected = watched.ledgers[0].p_value / COUPLED_SHARE  # this game has a part of alpha
    assert result.p_value == pytest.approx(min(expected, 1.0))
    assert_all_new(watched.draws)
    purposes = Purpose.BET, Purpose.OUTSIDE
    bets = [batch for batch in watched.draws if batch[0][0][0] in purposes]
    looks = [batch for batch in bets if batch[0][0][2] == 0]  # the first ones on a pair
    assert len(looks) >= result.pairs[0] + result.proposed
    assert len(bets) == len(watched.stakes) + len(looks)
    for batch in bets:
        assert len({key for key, shared in batch if shared}) == 1


def test_a_second_game_is_about_new_samples_with_what_is_left_of_alpha(watched):
    common = {"alpha": ALPHA, "max_samples": 6_000, "seed": 0, "n_jobs": 1}
    result = audit(Late(), eps=1.0, **COUNTS, **common)
    assert "started again" in " ".join(result.notes)
    games = set(watched.alphas)  # a ledger of pairs beyond the claim has the alpha of its game
    assert len(games) == 2
    assert sum(games) <= ALPHA * (1 + 1e-12)
    assert_all_new(watched.draws)
    games = [key[0] for batch in watched.draws for key, shared in batch if not shared]
    assert Purpose.BET not in games  # it may have drawn some pairs apart itself
    assert Purpose.RESTART in games


# Coupled draws


def shuffled(records, scale, rng, size):
    """Right noise, dealt in an order that depends on the data."""
    noise = rng.laplace(scale=scale, size=size)
    return len(records) + (noise if records else noise[::-1])


class Buffered:
    """Right noise, drawn ahead in large amounts, for each input by itself."""

    def __init__(self):
        self.noise = {}

    def __call__(self, records, rng):
        mine = self.noise.setdefault(len(records), [])
        if not mine:
            mine.extend(rng.laplace(size=500))
        return len(records) + mine.pop() if len(records) else len(records) + mine.pop(0)


class Late(Buffered):
    """Behaves for a while."""

    calls = 0

    def __call__(self, records, rng):
        self.calls += 1
        if self.calls < 1_000:
            return len(records) + rng.laplace()
        return super().__call__(records, rng)


def rejecting(records, scale, rng, size):
    """Right noise, in a loop that draws more for one input than for another."""
    noise = rng.laplace(scale=scale, size=size)
    for _ in range(len(records)):
        noise = rng.laplace(scale=scale, size=size)
    return len(records) + noise


@pytest.mark.spot(2)
@pytest.mark.usefixtures("_without_blame", "_by_samples")  # what is known needs no shared draws
@pytest.mark.parametrize(
    ("mechanism", "more", "note"),
    [
        (shuffled, {"vectorized": "size", "params": {"scale": 1.0}}, "are not shared"),
        (rejecting, {"vectorized": "size", "params": {"scale": 1.0}}, "are not shared"),
        (Buffered, {}, ""),  # runs cannot be repeated, which shows before
        (Late, {}, "started again without shared random numbers"),
    ],
)
def test_mechanisms_that_coupling_would_break_are_drawn_independently(mechanism, more, note):
    one = mechanism() if isinstance(mechanism, type) else mechanism
    common = {"alpha": ALPHA, "max_samples": 6_000, "seed": 0, "n_jobs": 1}
    result = audit(one, eps=1.0, **COUNTS, **common, **more)
    assert not result.violated
    assert any(note in said for said in (*result.notes, ""))
    assert result.replayable == (mechanism in (shuffled, rejecting))  # no buffer served a batch


def test_coupling_can_be_turned_off():
    here = run("laplace", 0.2, 0.4, 1)
    apart = run("laplace", 0.2, 0.4, 1, method=Sequential(coupled=False))
    assert here.violated
    assert apart.violated
    assert 3 * here.bet_samples < apart.bet_samples
