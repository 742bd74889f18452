"""Whole audits with DP-Sniper: its bound and power, pairs with shared noise, what is said."""

from __future__ import annotations

import math
from importlib import import_module

import numpy as np
import pytest
from boundary import laplace, most, randomized_response
from sniping import AT_THEIR_CLAIM, consistent, run, sniped

from benchmarks import vectorized
from benchmarks.cases import CORPUS
from pytest_dp import ClaimError, DPSniper, audit, queries, values
from pytest_dp.auditors import held_out
from pytest_dp.evidence import clopper_pearson
from pytest_dp.evidence.counts import Counts
from pytest_dp.evidence.event_test import event_test
from pytest_dp.limits import ATTACK_SHARE, PAIRED_SHARE, SHOWN_AT
from pytest_dp.privacy import ApproximateDP
from pytest_dp.sampling.per_run import CannotCouple
from pytest_dp.sampling.sampler import Sampler
from pytest_dp.sampling.streams import Purpose

ALPHA = 0.2
"""Large, as then fewer audits tell a bound that fails twice as often as it may."""


pytestmark = pytest.mark.usefixtures("_without_blame")


@pytest.mark.parametrize("audits", [2, pytest.param(12, marks=pytest.mark.nightly)])
def test_the_bound_stays_below_the_truth_and_agrees_with_the_verdict(audits):
    """A smoke test. The chance that a bound of counts is too high is computed elsewhere.

    For independent outputs in `test_ratio_validity`, for pairs in `test_shown_validity`. Half of
    the audits have a claim that nearly is the bound.
    """
    found = [
        run(
            name,
            1.0 if seed % 2 else 0.75,
            1.0,
            seed,
            alpha=ALPHA,
            max_samples=4_000,
            method=DPSniper(coupled=(seed + at) % 4 < 2),
        )
        for at, name in enumerate(AT_THEIR_CLAIM)
        for seed in range(audits)
    ]
    bounds = np.array([result.eps_lower for result in found])
    assert np.sum(bounds > 1.0) <= most(len(found), ALPHA)
    assert np.median(bounds) > 0.7  # a bound of 0 would do as well
    assert all(map(consistent, found))
    assert {result.verdict for result in found} == {"violated", "no violation"}


@pytest.mark.parametrize("audits", [4, pytest.param(24, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("c", [0.01, 0.1])
def test_the_bound_of_the_paper_holds_too(c, audits):
    reached = []
    for seed in range(audits):
        name = list(AT_THEIR_CLAIM)[seed % 4]
        claimed = (1.0, 0.3)[seed % 2]
        result = run(name, claimed, 1.0, seed, alpha=ALPHA, max_samples=6_000, method=DPSniper(c=c))
        assert consistent(result)
        reached.append(result.eps_lower)
        if result.violated:
            found = result.counterexample
            four = found.counts[0], found.runs[0], found.counts[1], found.runs[1]
            bound = clopper_pearson.eps_lower(*four, ALPHA)
            assert result.eps_lower == found.lower == found.eps_clopper_pearson == bound
            assert found.runs[0] == found.runs[1]
            # On the input that makes it the rarer, the attack has probability c.
            assert found.counts[1] / found.runs[1] == pytest.approx(c, abs=6 * math.sqrt(c / 300))
    assert sum(bound > 1.0 for bound in reached) <= most(audits, ALPHA)
    assert np.median(reached) > (0.5 if c == 0.1 else 0.0)


@pytest.mark.nightly
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
        sniped(mechanism, 0.1, k, alpha=0.2, max_samples=3_000, pairs=[(0, 1)]) for k in range(6)
    ]
    assert sum(result.eps_lower > truth for result in results) <= most(6, 0.2)
    assert any(result.eps_lower > 0.3 for result in results)


# -- Power ----------------------------------------------------------------------------------------


def sometimes_nan(records, rng, size):
    return np.where(rng.random(size) < 0.02 * len(records), np.nan, rng.laplace(size=size))


def lengths(records, rng, size):
    # Longer on one input; the numbers in it say nothing.
    counts = 1 + rng.binomial(4, 0.3 + 0.2 * len(records), size)
    return [rng.laplace(size=k).tolist() for k in counts.tolist()]


def sum_is_fixed(records, rng, size):
    noise = rng.normal(size=(size, 6))
    return noise - noise.mean(axis=1, keepdims=True) + len(records) * 0.5


def broken_histogram(counts, rng, size):
    return vectorized.histogram_inverted(counts, 0.5, rng, size)


def answer_beside_noise(records, rng, size):
    return np.column_stack([rng.laplace(size=size), np.full(size, -len(records))])


def lies(records, rng, size):
    """The same coin makes both inputs lie: no pair agrees."""
    return (rng.random(size) < 0.3) ^ bool(records)


def shuffles(records, rng, size):
    return len(records) + rng.laplace(size=size)[rng.permutation(size)]


BROKEN = {
    "half the scale": (laplace, {"params": {"scale": 0.5}}, 1.8, 2.0),
    "nan": (sometimes_nan, {}, 1.0, math.inf),
    "length": (lengths, {"eps": 0.5, "max_samples": 60_000}, 0.5, 3.0),
    "sum": (sum_is_fixed, {}, 5.0, math.inf),
    "scale eps": (
        broken_histogram,
        {"inputs": queries(5), "neighbors": "one_query"},
        1.5,
        2.0,
    ),
    "the answer itself": (answer_beside_noise, {"max_samples": 20_000}, 4.0, math.inf),
    "the answer, by a line": (
        answer_beside_noise,
        {"max_samples": 20_000, "method": DPSniper(classifier="logistic")},
        4.0,
        math.inf,
    ),
    "hardly ever lies": (
        randomized_response,
        {"params": {"keep": 0.999}, "inputs": values([0, 1])},
        0.85 * math.log(999),
        math.log(999),
    ),
    "excluding each other": (lies, {"eps": 0.7}, 0.7, math.log(7 / 3)),
    "shuffled": (shuffles, {"eps": 0.3}, 0.3, 1.0),
}


@pytest.mark.spot(4)
@pytest.mark.parametrize("name", BROKEN)
def test_broken_mechanisms_are_caught(name):
    mechanism, keywords, lowest, truth = BROKEN[name]
    result = sniped(mechanism, **keywords)
    assert result.violated
    assert consistent(result)
    assert lowest < result.eps_lower <= truth
    if name == "excluding each other":
        assert result.counterexample.both is None
    if name == "shuffled":
        assert any("not shared between inputs" in note for note in result.notes)


@pytest.mark.spot(10)
@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_every_mechanism_of_the_paper_runs(case):
    keywords = {**case.keywords(0.5, many=True), "max_samples": 800}
    result = sniped(case.vectorized, keywords.pop("eps"), **keywords)
    assert consistent(result)
    assert result.eps_lower <= case.truth(0.5)


OF_SKLEARN = {
    "forest": ("ensemble", "RandomForestClassifier", {"n_estimators": 10, "max_depth": 5}),
    "bayes": ("naive_bayes", "GaussianNB", {}),
}


@pytest.mark.spot(5)
@pytest.mark.parametrize("classifier", ["additive", "logistic", "mlp", *OF_SKLEARN])
def test_every_classifier_tells_something(classifier):
    """Also where it errs in the tails: to a linear model far-off outputs tell ever more."""
    if classifier in OF_SKLEARN:
        module, name, settings = OF_SKLEARN[classifier]
        classifier = getattr(import_module(f"sklearn.{module}"), name)(**settings)
    result = run("laplace", 2.0, 1.0, 1, method=DPSniper(classifier=classifier))
    assert 0.5 < result.eps_lower <= 1.0
    assert result.loss[1] > 0.9


class Wrong:
    """A classifier that gives one column."""

    def fit(self, rows, labels):
        return self

    def predict_proba(self, rows):
        return np.zeros(len(rows))


def test_a_classifier_of_the_wrong_shape_is_named():
    method = DPSniper(classifier=Wrong())
    with pytest.raises(ClaimError, match=r"Wrong\.predict_proba returned an array of shape"):
        sniped(laplace, params={"scale": 1.0}, method=method, max_samples=2_000)


def parity_leaks(records, rng, size):
    bits = rng.integers(0, 100, size=(size, 4))
    odd = rng.random(size) < (0.8 if records else 0.2)
    bits[:, 3] += (bits.sum(axis=1) % 2) != odd
    return bits


def test_a_feature_of_the_user_finds_what_nothing_else_does():
    def parity(output):
        return sum(int(x) for x in output) % 2

    assert not sniped(parity_leaks, max_samples=10_000).violated
    result = sniped(parity_leaks, max_samples=20_000, features=parity)
    assert result.violated
    assert 1.2 < result.eps_lower <= math.log(4)


NUMBERS = {"pairs": [(0.0, 1.0)]}


def naive(answer, rng, size):
    return answer + rng.laplace(scale=10, size=size)


def on_a_grid(answer, rng, size):
    step = 2.0**-20
    return np.round((answer + rng.laplace(scale=10, size=size)) / step) * step


@pytest.mark.nightly
def test_the_bits_of_naive_noise_betray_it_and_those_of_rounded_noise_do_not():
    attacked = sniped(naive, 0.1, **NUMBERS, floating_point=True)
    assert attacked.violated
    assert attacked.eps_lower > 0.5
    assert sniped(naive, 0.1, **NUMBERS).verdict == "no violation"
    rounded = sniped(on_a_grid, 0.1, **NUMBERS, floating_point=True)
    assert rounded.verdict == "no violation"
    assert rounded.eps_lower > 0.03


@pytest.mark.nightly
def test_the_bits_of_a_sound_library_tell_nothing():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    noisy = dp.m.make_laplace(
        dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=10.0
    )
    keywords = {"vectorized": None, **NUMBERS, "floating_point": True}
    result = sniped(lambda answer: noisy(answer), 0.1, max_samples=15_000, **keywords)
    assert result.verdict == "no violation"


# -- What a result says ---------------------------------------------------------------------------


COUNTEREXAMPLES = {
    "a readable event": (laplace, {"params": {"scale": 0.5}}),
    "an attack": (
        lambda d, rng, size: np.tile([0.3, -0.3], 10) * len(d) + rng.laplace(size=(size, 20)),
        {"max_samples": 60_000, "max_seconds": 600},
    ),
    "an attack with ties": (laplace, {"params": {"scale": 0.5}, "method": DPSniper(c=0.05)}),
}


@pytest.mark.spot(2)
@pytest.mark.parametrize("name", COUNTEREXAMPLES)
def test_a_counterexample_holds_on_fresh_samples(name):
    mechanism, keywords = COUNTEREXAMPLES[name]
    result = sniped(mechanism, 0.9, **keywords)
    assert result.violated
    found = result.counterexample
    assert 0.9 < found.lower <= result.eps_lower + 1e-12
    assert found.eps_clopper_pearson > 0.8 * found.lower
    assert math.log(found.intervals[0][0] / found.intervals[1][1]) > 0
    assert found.p_value < 1e-3
    # The event and its attack, on samples of their own.
    rng = np.random.default_rng(7)
    params = keywords.get("params", {})
    fresh = [mechanism(d, **params, rng=rng, size=500) for d in (found.d1, found.d2)]
    shares = [np.mean([float(found.event(output)) for output in side]) for side in fresh]
    for share, c, n in zip(shares, found.counts, found.runs, strict=True):
        assert share == pytest.approx(c / n, abs=5 * math.sqrt(c / n / 500) + 4e-3)
    if found.attack is not None:
        assert str(found.attack).startswith(("score(output) > ", "-score(output) > "))
    inside, outside = found.examples
    if found.event is found.attack:
        assert len(inside) == len(outside) == 3
        assert all(found.attack(output) == 1.0 for output in inside)
        assert all(found.attack(output) < 1.0 for output in outside)
    else:
        assert (inside, outside) == ((), ())
        assert str(found.event)


def test_the_loss_is_that_of_the_strongest_attack():
    result = run("geometric", 1.2, 1.0, 1)
    low, high = result.loss
    assert low <= 1.0 + 1e-9
    assert high > 0.97
    assert high - low < 0.3
    assert result.eps_lower <= high
    assert f"a loss of {low:.3g} to {high:.3g}" in result.strongest
    assert " against " in result.strongest


def test_a_claim_far_above_all_that_was_found_is_noted():
    result = run("laplace", 1.0, 0.4, 1, max_samples=20_000)
    [note] = [note for note in result.notes if "more noise than needed" in note]
    low, high = result.loss
    assert f"reached {low:.2g} to {high:.2g} of eps = 1:" in note
    near = run("laplace", 0.45, 0.4, 1, max_samples=20_000)
    assert not any("more noise" in note for note in near.notes)


@pytest.mark.spot(3)
@pytest.mark.parametrize("c", [None, 0.05, 0.2])
def test_the_resolution_is_what_would_have_been_caught(c):
    """0.95 are expected; 0.7 of them would do in one of three tests."""
    common = {"method": DPSniper(c=c), "max_samples": 20_000}
    passed = run("laplace", 1.0, 1.0, 0, **common)
    assert 1.0 < passed.resolution < (2.0 if c is None else -math.log(c))
    assert all(run("laplace", 1.0, passed.resolution, k, **common).violated for k in range(1, 4))


def test_an_event_that_is_too_likely_says_so():
    result = run("laplace", 1.0, 1.0, 1, method=DPSniper(c=0.6), max_samples=20_000)
    assert result.verdict == "inconclusive"
    assert any("cannot show a loss above 0.51" in note for note in result.notes)


# -- Pairs that share their random numbers --------------------------------------------------------


@pytest.mark.nightly
def test_little_is_lost_where_most_noise_is_shared():
    def gap(coupled):
        bounds = [
            run("laplace", 0.1, 0.1, k, alpha=0.1, method=DPSniper(coupled=coupled))
            for k in range(3)
        ]
        return 0.1 - np.median([result.eps_lower for result in bounds])

    assert 0 < gap(True) < 0.5 * gap(False)


def test_what_a_counterexample_says_of_pairs():
    result = run("laplace", 0.05, 0.1, 1, alpha=0.1)
    found = result.counterexample
    assert result.violated
    (c1, c2), both = found.counts, found.both
    assert found.runs[0] == found.runs[1]
    assert 0 < both <= min(c1, c2)
    alpha = PAIRED_SHARE * 0.1
    if found.event is not found.attack and found.attack is not None:
        alpha *= 1 - ATTACK_SHARE
    test, n = event_test(ApproximateDP(0.05)), found.runs[0]
    seen = Counts(c1, n, c2, n, both)
    assert found.lower == test.lower(seen, alpha)
    assert found.p_value == test.p_value(seen, SHOWN_AT)
    assert found.lower <= result.eps_lower < 0.1 < result.loss[1]


def test_pairs_are_counted_over_several_batches(monkeypatch):
    keys = []
    measure = Sampler.measure

    def recorded(self, draws, function, deadline):
        keys.append(draws[0].key)
        return measure(self, draws, function, deadline)

    monkeypatch.setattr(Sampler, "measure", recorded)
    monkeypatch.setattr(held_out, "MAX_BATCH", 7_000)
    result = run("laplace", 0.05, 0.1, 1, alpha=0.1)
    assert len(set(keys)) == len(keys)
    assert sum(key[0] == Purpose.PAIRED_TEST for key in keys) > 3
    assert result.violated
    assert result.counterexample.runs[0] > 3 * 7_000
    assert 0.08 < result.eps_lower < 0.11


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
    result = run("laplace", 0.3, 1.0, 1, alpha=0.1)
    assert "counted again without shared random numbers, as it remembers" in result.notes
    found = result.counterexample
    assert found.both is None
    (c1, c2), (n1, n2) = found.counts, found.runs
    left = (1 - PAIRED_SHARE) * 0.1
    alphas = (left, ATTACK_SHARE * left, (1 - ATTACK_SHARE) * left)  # of one thing counted, or two
    lower = event_test(ApproximateDP(0.3)).lower
    assert found.lower in [lower(Counts(c1, n1, c2, n2), alpha) for alpha in alphas]
    assert consistent(result)


def test_what_proves_unfit_in_the_search_is_searched_again(monkeypatch):
    refusing(monkeypatch, Purpose.SEARCH)
    result = run("laplace", 0.3, 1.0, 1, alpha=0.1)
    assert "started again without shared random numbers, as it remembers" in result.notes
    assert result.violated
    assert result.counterexample.both is None
    assert result.samples <= 100_000


@pytest.mark.nightly
def test_a_mechanism_with_one_draw_a_call():
    def scalar(records, rng):
        return len(records) + rng.laplace(scale=10.0)

    common = {"vectorized": None, "alpha": 0.1, "max_samples": 40_000}
    results = [sniped(scalar, 0.05, k, **common) for k in range(3)]
    assert sum(result.violated for result in results) >= 2
    assert None not in [result.counterexample.both for result in results if result.violated]
    assert sum(result.eps_lower > 0.1 for result in results) <= most(3, 0.1)


@pytest.mark.nightly
def test_less_is_needed_to_learn_from_pairs():
    """A sparse vector mechanism that loses a little at each step, with few samples."""
    case = next(case for case in CORPUS if case.name == "SVT4")
    common = {"alpha": 0.1, "max_samples": 50_000, "n_jobs": 1}

    def median(coupled):
        keywords = {**case.keywords(0.1, many=True), **common, "method": DPSniper(coupled=coupled)}
        found = [audit(case.vectorized, **keywords, seed=k).eps_lower for k in range(5)]
        return np.median(found)

    assert median(True) > 0.06
    assert median(False) < 0.03


def test_inputs_that_make_no_difference_are_searched_again_independently():
    common = {"eps": 1.0, "pairs": [([1, 0], [1])], "method": "dpsniper", "max_samples": 20_000}
    result = audit(lambda records, rng: rng.laplace(), **common, seed=1)
    assert result.verdict == "no violation"
    assert 1.0 < result.resolution < 2.0
    assert result.samples <= 20_000
