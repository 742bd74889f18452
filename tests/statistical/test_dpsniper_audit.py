"""Whole audits with DP-Sniper: false alarms, power, and what a result says."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest
from boundary import fewest, laplace, most
from sniping import AT_THEIR_CLAIM, consistent, run, sniped

from benchmarks import vectorized
from pytest_dp import DPSniper, queries
from pytest_dp.evidence import clopper_pearson
from pytest_dp.evidence.event_test import Apart, event_test
from pytest_dp.privacy import ApproximateDP
from pytest_dp.sampling.streams import Purpose

ALPHA = 0.2
"""Large, as then fewer audits tell a bound that fails twice as often as it may."""


pytestmark = pytest.mark.usefixtures("_without_blame")


@pytest.fixture(scope="module", params=[4, pytest.param(12, marks=pytest.mark.nightly)])
def small_audits(request):
    """Audits of each mechanism, half of them with a claim that nearly is the bound."""
    found = {}
    for name in AT_THEIR_CLAIM:
        for seed in range(request.param):
            common = {
                "alpha": ALPHA,
                "max_samples": 4_000,
                "method": DPSniper(coupled=seed % 4 < 2),
            }
            found[name, seed] = run(name, 1.0 if seed % 2 else 0.75, 1.0, seed, **common)
    return found


@pytest.mark.slow
def test_the_bound_exceeds_the_truth_no_more_often_than_alpha(small_audits):
    """Twice as often passes one of seven tests of 48 audits.

    The chance that a bound of counts is too high is computed in `test_ratio_validity`, and for
    pairs in `test_shown_validity`.
    """
    too_high = {key: r.eps_lower for key, r in small_audits.items() if r.eps_lower > 1.0}
    assert len(too_high) <= most(len(small_audits), ALPHA)
    for name in AT_THEIR_CLAIM:
        assert sum(key[0] == name for key in too_high) <= most(len(small_audits) // 4, ALPHA)
    # A bound of 0 would do as well.
    for name in AT_THEIR_CLAIM:
        bounds = [r.eps_lower for key, r in small_audits.items() if key[0] == name]
        assert np.median(bounds) > 0.7


@pytest.mark.slow
def test_the_bound_the_p_value_and_the_verdict_agree(small_audits):
    assert all(map(consistent, small_audits.values()))
    verdicts = {r.verdict for r in small_audits.values()}
    assert verdicts == {"violated", "no violation"}


@pytest.mark.spot(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("c", "audits"),
    [(0.01, 8), (0.1, 8), *(pytest.param(c, 24, marks=pytest.mark.nightly) for c in (0.01, 0.1))],
)
def test_the_bound_of_the_paper_holds_too(c, audits):
    """A bound that fails in half of all audits passes one of 13 such tests of 24 audits."""
    reached = []
    for seed in range(audits):
        name = list(AT_THEIR_CLAIM)[seed % 4]
        claimed = (1.0, 0.3)[seed // 4 % 2]
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


@pytest.mark.parametrize("coupled", [False, True])
def test_samples_that_were_searched_would_exceed_the_truth(monkeypatch, coupled):
    """The tests above can fail: here is the mistake that they guard against."""
    from pytest_dp.auditors import dpsniper, held_out
    from pytest_dp.evidence.counts import Counts

    def says_nothing(records, rng, size):
        noise = rng.normal(size=(size, 8))
        return -noise if records else noise

    def above():
        common = {
            "eps": 1e-3,
            "alpha": 0.05,
            "max_samples": 2_000,
            "method": DPSniper(coupled=coupled),
        }
        return sum(sniped(says_nothing, seed=k, **common).eps_lower > 0 for k in range(4))

    assert above() <= 1

    def peek(context, pool, witness):
        table, first = pool.table(witness.rival)
        if witness.attack is not None:
            hits = witness.attack.hits(table)[0]
        else:
            hits = witness.event.mask(table)
        one, two = (hits[first], hits[~first])[:: witness.sign]
        assert pool.coupled == coupled
        both = int((one & two).sum()) if coupled else None
        c1, c2, n = int(one.sum()), int(two.sum()), len(one)
        return held_out.Tested(Counts(c1, n, c2, n, (c1, c2), n, both), None)

    assert Purpose.SEARCH != Purpose.TEST != Purpose.PAIRED_TEST != Purpose.SEARCH
    monkeypatch.setattr(dpsniper, "_test", peek)
    assert above() >= 3


class Remembered:
    """A meter that keeps the outputs it was shown."""

    def __init__(self, meter):
        self.meter, self.seen = meter, []

    def __call__(self, outputs):
        self.seen += outputs.tolist()
        return self.meter(outputs)


@pytest.mark.parametrize("more", [{}, {"method": DPSniper(c=0.05)}])
def test_no_sample_is_searched_and_tested(monkeypatch, more):
    from pytest_dp.sampling.sampler import Sampler

    batches = []
    measure = Sampler.measure

    def measured(self, draws, meter, deadline):
        remembered = Remembered(meter)
        found = measure(self, draws, remembered, deadline)
        batches.append(remembered.seen)
        return found

    monkeypatch.setattr(Sampler, "measure", measured)
    result = run("laplace", 1.0, 2.0, 3, max_samples=20_000, **more)
    everything = [x for batch in batches for x in batch]
    # Trials, and what confirms a violation, are made on copies.
    assert result.samples * 0.8 < len(everything) <= result.samples
    assert len(everything) == len(set(everything))
    # Nor are they the same noise around another centre.
    *before, tested = batches
    seen = {round(x - d, 9) for batch in before for x in batch for d in (0, 1)}
    assert len(tested) > 4_000
    assert not seen & {round(x - d, 9) for x in tested for d in (0, 1)}


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


BROKEN = {
    "half the scale": (laplace, {"params": {"scale": 0.5}}),
    "nan": (sometimes_nan, {}),
    "length": (lengths, {"max_samples": 60_000}),
    "sum": (sum_is_fixed, {}),
    "scale eps": (broken_histogram, {"inputs": queries(5), "neighbors": "one_query"}),
}


@pytest.mark.spot(3)
@pytest.mark.parametrize("name", BROKEN)
def test_broken_mechanisms_are_caught(name):
    mechanism, keywords = BROKEN[name]
    result = sniped(mechanism, 0.5 if name == "length" else 1.0, **keywords)
    assert result.violated
    assert result.alpha == 1e-6
    assert consistent(result)
    assert result.samples <= keywords.get("max_samples", 100_000) + 200
    if name == "half the scale":
        assert 1.8 < result.eps_lower <= 2.0
    if name == "scale eps":
        assert 1.5 < result.eps_lower <= 2.0
    if name == "sum":
        assert result.eps_lower > 5


def test_an_exception_is_caught():
    def sometimes_raises(records, rng):
        if records and rng.random() < 0.05:
            raise LookupError(records)
        return rng.laplace()

    result = sniped(sometimes_raises, vectorized=None, max_samples=20_000)
    assert result.violated
    assert "LookupError" in str(result.counterexample.event)


def test_no_single_coordinate_tells_what_their_sum_does():
    alone = sniped(lambda d, rng, size: sum_is_fixed(d, rng, size)[:, 2], 2.0)
    assert alone.verdict == "no violation"
    together = sniped(sum_is_fixed, 2.0)
    assert together.violated


def test_many_coordinates_that_each_tell_a_little():
    def ten(records, rng, size):
        return 0.1 * len(records) + rng.laplace(size=(size, 10))

    result = sniped(ten, 0.3, max_samples=200_000)
    assert result.violated
    assert 0.5 < result.eps_lower <= 1.0
    assert sniped(lambda d, rng, size: ten(d, rng, size)[:, 0], 0.3).verdict == "no violation"


@pytest.mark.spot(4)
@pytest.mark.parametrize("rare", [0, 1])
@pytest.mark.parametrize("c", [None, 0.01])
def test_either_input_can_be_the_likelier_one(rare, c):
    # One of the outcomes has a loss of ln 20; the other one a fifth of a nat.
    def mechanism(truth, rng, size):
        return (rng.random(size) < (0.01 if truth == rare else 0.2)).astype(float)

    result = sniped(mechanism, 1.0, pairs=[(0, 1)], max_samples=60_000, method=DPSniper(c=c))
    assert result.violated
    assert (result.counterexample.d1, result.counterexample.d2) == (1 - rare, rare)
    assert result.counterexample.counts[0] > result.counterexample.counts[1]
    turned = sniped(mechanism, 1.0, pairs=[(1, 0)], max_samples=60_000, method=DPSniper(c=c))
    assert turned.violated
    assert turned.counterexample.d1 == 1 - rare
    assert turned.eps_lower == pytest.approx(result.eps_lower, abs=0.3)


def test_the_pair_that_breaks_the_claim_is_found():
    def leaks_sevens(records, rng, size):
        scale = 0.4 if 7 in records else 1.0
        return len(records) + rng.laplace(scale=scale, size=size)

    pairs = [([k, 3], [3]) for k in range(12)]
    result = sniped(leaks_sevens, pairs=pairs)
    assert result.violated
    assert 7 in [*result.counterexample.d1, *result.counterexample.d2]
    assert result.pairs == (12, 12)


# -- What a counterexample says -------------------------------------------------------------------


COUNTEREXAMPLES = {
    "a readable event": (laplace, {"params": {"scale": 0.5}}),
    "an attack": (
        lambda d, rng, size: np.tile([0.3, -0.3], 10) * len(d) + rng.laplace(size=(size, 20)),
        {"max_samples": 60_000, "max_seconds": 600},
    ),
    "an attack with ties": (laplace, {"params": {"scale": 0.5}, "method": DPSniper(c=0.05)}),
}


@pytest.mark.spot(3)
@pytest.mark.parametrize("name", COUNTEREXAMPLES)
def test_a_counterexample_holds_on_fresh_samples(name):
    mechanism, keywords = COUNTEREXAMPLES[name]
    result = sniped(mechanism, 0.9, **keywords)
    assert result.violated
    found = result.counterexample
    (c1, c2), (n1, n2) = found.counts, found.runs
    assert 0 < c1 <= n1
    assert 0 <= c2 <= n2
    assert n1 + n2 <= result.samples
    assert 0.9 < found.lower <= result.eps_lower + 1e-12
    both = event_test(ApproximateDP(0.9)).lower(Apart(c1, n1, c2, n2), result.alpha)
    assert found.eps_clopper_pearson <= both + 1e-12
    assert found.lower <= both + 1e-12
    assert found.eps_clopper_pearson > 0.9 * both
    for (low, high), c, n in zip(found.intervals, found.counts, found.runs, strict=True):
        assert low < c / n < high
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
        chances = {found.attack(output) for side in fresh for output in side[:500]}
        assert all(0 <= chance <= 1 for chance in chances)
        assert {0.0, 1.0} <= chances
        assert str(found.attack).startswith(("score(output) > ", "-score(output) > "))
    inside, outside = found.examples
    if found.event is found.attack:
        assert len(inside) == len(outside) == 3
        assert all(found.attack(output) == 1.0 for output in inside)
        assert all(found.attack(output) < 1.0 for output in outside)
    else:
        assert (inside, outside) == ((), ())
        assert str(found.event)
    if name != "a readable event":
        assert found.attack is not None


@pytest.mark.parametrize("name", ["laplace", "randomized response", "geometric"])
def test_the_loss_is_that_of_the_strongest_attack(name):
    for seed in (1, 2):
        result = run(name, 1.2, 1.0, seed)
        low, high = result.loss
        assert low <= 1.0 + 1e-9
        assert high > 0.97
        assert high - low < 0.3
        assert result.eps_lower <= high
        assert f"a loss of {low:.3g} to {high:.3g}" in result.strongest
        assert " against " in result.strongest


@pytest.mark.nightly
def test_the_interval_covers_the_loss_of_a_known_event():
    # One event has it all, with a loss of ln 3.
    def mechanism(records, rng, size):
        return np.where(rng.random(size) < (0.3 if records else 0.1), 1.0, 0.0)

    results = [sniped(mechanism, 2.0, seed, alpha=0.2, max_samples=4_000) for seed in range(40)]
    covered = sum(r.loss[0] <= math.log(3) <= r.loss[1] for r in results)
    assert covered >= fewest(40, 0.8)  # 0.6 of them would do in one of five such tests
    assert np.median([r.loss[1] - r.loss[0] for r in results]) < 0.6


def test_a_claim_far_above_all_that_was_found_is_noted():
    def notes(eps):
        result = run("laplace", eps, 0.4, 1)
        assert result.verdict == "no violation"
        return [note for note in result.notes if "more noise than needed" in note], result

    [note], result = notes(1.0)
    low, high = result.loss
    assert f"reached {low:.2g} to {high:.2g} of eps = 1:" in note
    assert not notes(0.45)[0]
    broken = run("laplace", 0.2, 0.4, 1)
    assert broken.violated
    assert not any("more noise" in note for note in broken.notes)


def test_the_resolution_is_what_would_have_been_caught():
    passed = run("laplace", 0.5, 0.5, 0, max_samples=20_000)
    assert passed.verdict == "no violation"
    assert 0.5 < passed.resolution < 1.0
    caught = [run("laplace", 0.5, passed.resolution, s, max_samples=20_000) for s in range(1, 7)]
    assert all(result.violated for result in caught)  # 0.7 of them would in one of nine tests


# -- The same result again ------------------------------------------------------------------------


def told(result):
    """All that a result says but the time it took."""
    found = {f.name: getattr(result, f.name) for f in fields(result) if f.name != "seconds"}
    example = found.pop("counterexample")
    if example is not None:
        found |= {f.name: repr(getattr(example, f.name)) for f in fields(example)}
        found["event"], found["attack"] = str(example.event), str(example.attack)
    return found


def slow_enough(records, rng):
    total = 0.0
    for _ in range(40):
        total = rng.random()
    return len(records) + rng.laplace(scale=0.8) + 0 * total


def test_a_result_does_not_depend_on_the_number_of_processes():
    common = {"vectorized": None, "max_samples": 12_000}
    one, two = (sniped(slow_enough, 1.0, 7, n_jobs=jobs, **common) for jobs in (1, 2))
    assert told(one) == told(two)


@pytest.mark.spot(2)
@pytest.mark.parametrize(
    "more",
    [{}, {"method": DPSniper(c=0.05)}, {"method": DPSniper(classifier="mlp")}, {"true": 2.0}],
)
def test_the_same_seed_gives_the_same_result(more):
    keywords = {"max_samples": 20_000, **more}
    true = keywords.pop("true", 1.0)
    one, same, other = (run("laplace", 1.0, true, seed, **keywords) for seed in (5, 5, 6))
    assert told(one) == told(same)
    assert told(one) != told(other)
    assert one.eps_lower != other.eps_lower
