"""How audits are wired: samples are fresh, shares of alpha add up, and red means what it says.

None of these repeats an audit to count its errors: what is spent and drawn is written down.
"""

from __future__ import annotations

import math
from functools import partial
from types import SimpleNamespace

import pandas as pd
import pytest

from pytest_dp import DPSniper, MechanismError, Sequential, StatDP, audit
from pytest_dp.auditors import sequential, violation_shown
from pytest_dp.auditors.budget import COUPLED_SHARE
from pytest_dp.methods import dpfinder
from pytest_dp.running.coupling import CannotCouple
from pytest_dp.running.sampler import Sampler
from pytest_dp.statistics.event_test import EventTest, StatDPTest

pytestmark = pytest.mark.usefixtures("_without_blame")

PAIRS = {"pairs": [([1], []), ([1, 1], [1])], "n_jobs": 1, "seed": 1}


def laplace(records, rng, size, scale=0.5):
    return len(records) + rng.laplace(scale=scale, size=size)


quick = partial(audit, vectorized="size", max_samples=20_000, **PAIRS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [Sequential(coupled=True), Sequential(coupled=False), StatDP(), DPSniper(coupled=False)],
    ids=str,
)
def test_no_random_numbers_are_drawn_twice(monkeypatch, method):
    """Whatever is tested is drawn with a key that nothing before had, on either input."""
    draws, measure = [], Sampler.measure

    def noted(self, wanted, function, deadline):
        draws.extend(wanted)
        return measure(self, wanted, function, deadline)

    monkeypatch.setattr(Sampler, "measure", noted)
    assert quick(laplace, eps=1.0, method=method).violated
    own = [draw.key for draw in draws if not draw.shared]
    shared = {draw.key for draw in draws if draw.shared}
    used = [(draw.key, id(draw.dataset)) for draw in draws if draw.shared]
    assert len(set(own)) == len(own)
    assert len(set(used)) == len(used)
    assert not shared & set(own)


@pytest.mark.slow
def test_all_that_is_shown_spends_alpha_once(monkeypatch):
    """A divergence and an event, each at a share of alpha."""
    spent = []
    best, bound = violation_shown.best_bet, EventTest.bound

    def divergence(joint, scores, guarantee, pairs, alpha):
        spent.append(alpha)
        return best(joint, scores, guarantee, pairs, alpha)

    def proof(self, counts, alpha):
        spent.append(alpha)
        return bound(self, counts, alpha)

    monkeypatch.setattr(violation_shown, "best_bet", divergence)
    monkeypatch.setattr(EventTest, "bound", proof)

    def gaussian(records, rng, size):
        return len(records) + rng.normal(scale=0.5, size=size)

    assert quick(gaussian, mu=1.0).violated
    assert len(spent) >= 2
    assert sum(spent) <= 1e-6 * (1 + 1e-12)


def test_what_is_told_beside_the_verdict_of_dpfinder_has_its_own_share(monkeypatch):
    shares = []

    def noted(session, found, share, given=()):
        shares.append(share)
        return SimpleNamespace(violated=False)

    inside, beyond = SimpleNamespace(pair="inside"), SimpleNamespace(pair="beyond")
    monkeypatch.setattr(dpfinder, "_audit_pairs", noted)
    deadline = SimpleNamespace(with_reserve=lambda share: None)
    session = SimpleNamespace(
        is_report_only=lambda pair: pair == "beyond",
        pairs=(),
        budget=SimpleNamespace(max_samples=100, deadline=deadline),
        sampler=SimpleNamespace(notes=[]),
    )
    for found in ([inside], [inside, beyond]):
        monkeypatch.setattr(dpfinder, "_run_restarts", lambda _, found=found: found)
        dpfinder.audit(session)
    assert shares[0] == sum(shares[1:]) == 1.0
    assert len(shares) == 3


@pytest.mark.slow
def test_a_game_that_starts_again_has_only_the_share_that_is_left(monkeypatch):
    shares = []

    class Noted(sequential.BettingAudit):
        def __init__(self, session, key, share, *args, **more):
            shares.append((key, share))
            super().__init__(session, key, share, *args, **more)

        def play(self, deadline):
            super().play(deadline)
            if self.coupled:
                raise CannotCouple("it does not share them")

    monkeypatch.setattr(sequential, "BettingAudit", Noted)
    result = quick(laplace, eps=1.0)
    keys, parts = zip(*shares, strict=True)
    assert len(set(keys)) == 2
    assert sum(parts) == pytest.approx(1.0)
    assert result.violated


@pytest.mark.slow
def test_red_is_wealth_of_one_over_alpha(monkeypatch):
    games = []

    class Noted(sequential.BettingAudit):
        def __init__(self, *args, **more):
            super().__init__(*args, **more)
            games.append(self)

    monkeypatch.setattr(sequential, "BettingAudit", Noted)
    enough, wealths = -math.log(COUPLED_SHARE * 1e-6), []
    for most in (100, 200, 400, 4_000):
        result = quick(laplace, eps=1.0, max_samples=most)
        wealths.append(float(games[-1].ledger.highest.min()))
        assert result.violated == (wealths[-1] >= enough)
    assert any(0 < wealth < enough for wealth in wealths)
    assert wealths[-1] >= enough


def test_what_is_lost_in_a_game_that_was_given_up_is_lost():
    """Only the share of the other game is left to win with."""
    game = SimpleNamespace(refuted_before=False, ledger=SimpleNamespace(p_value=1e-7), share=0.05)
    assert sequential.BettingAudit.p_value.fget(game) == pytest.approx(2e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("lower", "red"), [(1.0, False), (1.0 + 1e-12, True)])
def test_a_bound_at_the_claim_does_not_break_it(monkeypatch, lower, red):
    monkeypatch.setattr(EventTest, "lower", lambda *_: lower)
    monkeypatch.setattr(EventTest, "p_value", lambda *_: 0.5)
    result = quick(laplace, eps=1.0, method="dpsniper")
    assert result.violated == red
    assert (result.p_value <= result.alpha) == red


@pytest.mark.slow
def test_proofs_get_counts_as_the_search_turned_them(monkeypatch):
    """Which input is called first is not by the counts that are tested: proofs are one way.

    Nothing tells these inputs apart, so that either is the likelier one in about half of all tests.
    """
    turned = []

    def noted(self, counts, *rest):
        turned.append(counts.c1 < counts.c2)
        return bound(self, counts, *rest)

    bound = StatDPTest.bound
    monkeypatch.setattr(StatDPTest, "bound", noted)
    coin = {"mechanism": lambda _, rng: rng.random() < 0.5, "eps": 0.1, "method": "statdp"}
    for seed in range(8):
        audit(**coin, pairs=[([1], [])], max_samples=500, n_jobs=1, seed=seed)
    assert 0 < sum(turned) < 8


@pytest.mark.slow
def test_an_index_that_neighbours_lack_is_named_where_all_runs_raise():
    def mechanism(frame, rng):
        return frame.groupby(level="user")["paid"].sum().clip(0, 1).sum() + rng.laplace()

    example = pd.DataFrame({"paid": [1.0]}, index=pd.Index(["a"], name="user"))
    with pytest.raises(MechanismError, match=r"If the index holds data, write \.reset_index\(\)"):
        audit(mechanism, eps=1.0, neighbors="add_remove_one", inputs=[example], n_jobs=1)


def test_what_is_kept_from_run_to_run_is_no_violation():
    answers = {}

    def cached(records, rng):
        key = len(records)
        if key not in answers:
            answers[key] = key + rng.laplace()
        return answers[key]

    with pytest.raises(MechanismError, match="keeps something from run to run"):
        audit(cached, eps=1.0, pairs=[([1], [])], max_samples=2_000, n_jobs=1, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [Sequential(coupled=False), DPSniper(coupled=False), StatDP()], ids=str
)
def test_what_tells_no_inputs_apart_is_blind(method):
    def noise(records, rng, size):
        return rng.gamma(4.0, size=size)  # of which nothing is known without samples

    result = quick(noise, eps=1.0, method=method)
    assert (result.verdict, result.blind, result.strength) == ("inconclusive", True, "blind")
