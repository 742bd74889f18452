"""Whole audits with DP-Sniper in which both inputs are run with the same random numbers."""

from __future__ import annotations

import contextlib
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from boundary import most
from sniping import consistent, run, sniped

from benchmarks.cases import CORPUS
from pytest_dp import DPSniper, MechanismError, audit
from pytest_dp.auditors import held_out
from pytest_dp.evidence.counts import Counts
from pytest_dp.evidence.event_test import SHOWN_AT, Apart, InPairs, event_test
from pytest_dp.limits import ATTACK_SHARE, PAIRED_SHARE
from pytest_dp.privacy import ApproximateDP
from pytest_dp.sampling.per_run import CannotCouple
from pytest_dp.sampling.sampler import Sampler
from pytest_dp.sampling.streams import Purpose

ALPHA = 0.1


pytestmark = pytest.mark.usefixtures("_without_blame")


@pytest.mark.spot(2)
@pytest.mark.parametrize(
    ("name", "audits"),
    [
        ("laplace", 7),
        ("geometric", 7),
        *(pytest.param(name, 30, marks=pytest.mark.nightly) for name in ("laplace", "geometric")),
    ],
)
def test_the_bound_of_pairs_exceeds_the_truth_no_more_often_than_alpha(name, audits):
    """Where nearly all noise is shared; `test_dpsniper_audit` has larger losses.

    Of 30 audits, a bound that fails in 0.3 of them instead of 0.1 passes one of six such tests. The
    chance that a bound of pairs is too high is computed in `test_shown_validity`.
    """
    results = [run(name, 0.09, 0.1, k, alpha=ALPHA, max_samples=12_000) for k in range(audits)]
    assert sum(result.eps_lower > 0.1 for result in results) <= most(audits, ALPHA)
    assert np.median([result.eps_lower for result in results]) > 0.05


def test_little_is_lost_where_most_noise_is_shared():
    def gap(coupled):
        bounds = [
            run("laplace", 0.1, 0.1, k, alpha=ALPHA, method=DPSniper(coupled=coupled))
            for k in range(3)
        ]
        return 0.1 - np.median([result.eps_lower for result in bounds])

    assert 0 < gap(True) < 0.5 * gap(False)


def test_what_a_counterexample_says_of_pairs():
    result = run("laplace", 0.05, 0.1, 1, alpha=ALPHA)
    found = result.counterexample
    assert result.violated
    (c1, c2), both = found.counts, found.both
    assert found.runs[0] == found.runs[1]
    assert 0 < both <= min(c1, c2)
    alpha = PAIRED_SHARE * ALPHA
    if found.event is not found.attack and found.attack is not None:
        alpha *= 1 - ATTACK_SHARE
    seen, test = InPairs(both, c1 - both, c2 - both, found.runs[0]), event_test(ApproximateDP(0.05))
    assert found.lower == test.lower(seen, alpha)
    assert found.p_value == test.p_value(seen, SHOWN_AT)
    assert found.lower <= result.eps_lower < 0.1 < result.loss[1]
    alone = run("laplace", 0.05, 0.1, 1, alpha=ALPHA, method=DPSniper(coupled=False)).counterexample
    assert alone is None or alone.both is None


def test_pairs_are_counted_over_several_batches(monkeypatch):
    keys = []
    measure = Sampler.measure

    def recorded(self, draws, function, deadline):
        assert len({draw.key for draw in draws}) == (1 if draws[0].shared else len(draws))
        keys.append(draws[0].key)
        shared = keys[-1][0] in (Purpose.SEARCH, Purpose.CHOICE, Purpose.PAIRED_TEST)
        assert all(draw.shared for draw in draws) == shared
        return measure(self, draws, function, deadline)

    monkeypatch.setattr(Sampler, "measure", recorded)
    monkeypatch.setattr(held_out, "MAX_BATCH", 7_000)
    result = run("laplace", 0.05, 0.1, 1, alpha=ALPHA)
    assert len(set(keys)) == len(keys)
    assert sum(key[0] == Purpose.PAIRED_TEST for key in keys) > 3
    assert result.violated
    assert result.counterexample.runs[0] > 3 * 7_000
    assert 0.08 < result.eps_lower < 0.11


@pytest.mark.parametrize("share", [1.0, PAIRED_SHARE])
def test_all_that_is_counted_together_spends_its_share_of_alpha(share):
    context = SimpleNamespace(alpha=0.1, guarantee=ApproximateDP(0.5))
    counts = Counts(600, 1_000, 400, 1_000, (600, 400), 1_000)
    for attack, event in itertools.product((counts, None), repeat=2):
        if attack or event:
            found = held_out.bounds(context, held_out.Tested(attack, event, (), share))
            spent = math.fsum(one.alpha for one in found)
            assert spent == pytest.approx(share * context.alpha)


def refusing(monkeypatch, first):
    """Let shared draws with keys of this kind turn out impossible."""
    measure = Sampler.measure

    def refuse(self, draws, function, deadline):
        if draws[0].shared and draws[0].key[0] == first:
            raise CannotCouple("it remembers")
        return measure(self, draws, function, deadline)

    monkeypatch.setattr(Sampler, "measure", refuse)


def test_what_proves_unfit_in_the_test_is_counted_again_at_the_alpha_that_is_left(monkeypatch):
    refusing(monkeypatch, Purpose.PAIRED_TEST)
    result = run("laplace", 0.3, 1.0, 1, alpha=ALPHA)
    assert "counted again without shared random numbers, as it remembers" in result.notes
    found = result.counterexample
    assert found.both is None
    (c1, c2), (n1, n2) = found.counts, found.runs
    left = (1 - PAIRED_SHARE) * ALPHA
    alphas = (left, ATTACK_SHARE * left, (1 - ATTACK_SHARE) * left)  # of one thing counted, or two
    lower = event_test(ApproximateDP(0.3)).lower
    assert found.lower in [lower(Apart(c1, n1, c2, n2), alpha) for alpha in alphas]
    assert consistent(result)


def test_what_proves_unfit_in_the_search_is_searched_again(monkeypatch):
    refusing(monkeypatch, Purpose.SEARCH)
    result = run("laplace", 0.3, 1.0, 1, alpha=ALPHA)
    assert "started again without shared random numbers, as it remembers" in result.notes
    assert result.violated
    assert result.counterexample.both is None
    assert result.samples <= 100_000


def test_what_cannot_be_shared_is_said_and_drawn_independently():
    def shuffles(records, rng, size):
        noise = rng.laplace(size=size)
        return len(records) + noise[rng.permutation(size)]

    result = sniped(shuffles, 0.3)
    assert result.violated
    assert result.counterexample.both is None
    assert any("not shared between inputs" in note for note in result.notes)


@pytest.mark.spot(3)
@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
@pytest.mark.parametrize("seed", range(3))
def test_rows_that_share_noise_are_no_violation(share, seed):
    def mechanism(records, rng, size):
        noise = rng.laplace(size=size)
        return len(records) + np.where(rng.random(size) < share, noise[0], noise)

    with contextlib.suppress(MechanismError):
        assert not sniped(mechanism, 1.0, seed, alpha=1e-3).violated


def test_outputs_that_exclude_each_other_are_drawn_apart():
    def lies(truth, rng, size):
        """The same coin makes both inputs lie: no pair agrees."""
        return (rng.random(size) < 0.3) ^ bool(truth)

    results = [sniped(lies, 0.7, seed, pairs=[(0, 1)], alpha=ALPHA) for seed in range(5)]
    assert all(result.violated for result in results)
    assert all(result.counterexample.both is None for result in results)


def test_rare_outcomes_do_not_raise_the_bound_above_the_truth():
    """Outcomes ever rarer, on either input, with the same loss: the rarest look best by luck."""
    chances = 0.5 ** np.arange(1, 15)
    chances = np.append(chances, 1 - chances.sum())
    ratios = np.where(np.arange(15) < 3, 1.0, math.exp(0.5))
    tilted = chances / ratios
    tilted[0] += 1 - tilted.sum()

    def mechanism(truth, rng, size):
        return np.searchsorted(np.cumsum(tilted if truth else chances), rng.random(size))

    truth = float(np.abs(np.log(chances / tilted)).max())
    results = [
        sniped(mechanism, 0.1, k, alpha=0.2, max_samples=3_000, pairs=[(0, 1)]) for k in range(12)
    ]
    assert sum(result.eps_lower > truth for result in results) <= most(12, 0.2)
    assert any(result.eps_lower > 0.3 for result in results)


def test_a_mechanism_with_one_draw_a_call():
    def scalar(records, rng):
        return len(records) + rng.laplace(scale=10.0)

    common = {"vectorized": None, "alpha": ALPHA, "max_samples": 40_000}
    results = [sniped(scalar, 0.05, k, **common) for k in range(7)]
    assert sum(result.violated for result in results) >= 6
    both = [result.counterexample.both for result in results if result.violated]
    assert None not in both
    assert sum(result.eps_lower > 0.1 for result in results) <= most(7, ALPHA)


@pytest.mark.parametrize("method", ["dpsniper", "sequential"])
def test_inputs_that_make_no_difference(method):
    result = audit(
        lambda records, rng: rng.laplace(),
        eps=1.0,
        pairs=[([1, 0], [1])],
        method=method,
        max_samples=20_000,
        seed=1,
    )
    assert not result.violated
    if method == "dpsniper":
        assert result.verdict == "no violation"
        assert 1.0 < result.resolution < 2.0
    else:
        assert any("gave the same outputs" in note for note in result.notes)


def test_an_event_that_is_too_likely_says_so():
    result = run("laplace", 1.0, 1.0, 1, method=DPSniper(c=0.6))
    assert result.verdict == "inconclusive"
    assert any("cannot show a loss above 0.51" in note for note in result.notes)
    assert not any(
        "cannot show" in note for note in run("laplace", 1.0, 1.0, 1, method=DPSniper(c=0.2)).notes
    )


@pytest.mark.spot(2)
@pytest.mark.parametrize("c", [0.05, 0.2])
def test_the_resolution_of_a_fixed_event(c):
    common = {"method": DPSniper(c=c), "max_samples": 50_000}
    claimed = run("laplace", 1.0, 1.0, 0, **common)
    assert 1.0 < claimed.resolution < -math.log(c)
    # 0.95 are expected; 0.7 of them would do in one of six tests.
    assert all(run("laplace", 1.0, claimed.resolution, k, **common).violated for k in range(1, 6))


@pytest.mark.nightly
def test_less_is_needed_to_learn_from_pairs():
    """A sparse vector mechanism that loses a little at each step, with few samples."""
    case = next(case for case in CORPUS if case.name == "SVT4")
    common = {"method": "dpsniper", "alpha": ALPHA, "max_samples": 50_000, "n_jobs": 1}

    def median(coupled):
        keywords = {**case.keywords(0.1, many=True), **common, "method": DPSniper(coupled=coupled)}
        found = [audit(case.vectorized, **keywords, seed=k).eps_lower for k in range(5)]
        return np.median(found)

    assert median(True) > 0.06
    assert median(False) < 0.03
