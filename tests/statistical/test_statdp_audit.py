"""Whole audits with StatDP: false alarms, power, coverage, and the nine cases of the paper."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from boundary import AT_THEIR_CLAIM, COUNTS, QUIET, laplace, most

import pytest_dp
from benchmarks.cases import STATDP
from pytest_dp import MechanismError, queries, values

ALPHA = 0.05


pytestmark = pytest.mark.usefixtures("_without_blame")

audit = partial(pytest_dp.audit, method="statdp", **QUIET)


def noisy_max(answers, eps, rng, size):
    noise = rng.laplace(scale=2 / eps, size=(size, len(answers)))
    return (np.asarray(answers) + noise).argmax(axis=1)


def run(name, claimed, true, seed, **more):
    mechanism, params, inputs = AT_THEIR_CLAIM[name]
    keywords = {"vectorized": "size", "n_jobs": 1, "seed": seed, **inputs, **more}
    return audit(mechanism, eps=claimed, params=params(true), **keywords)


@pytest.mark.spot(3)
@pytest.mark.slow
@pytest.mark.parametrize("audits", [10, pytest.param(40, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", AT_THEIR_CLAIM)
def test_false_alarms_at_the_claim_stay_below_alpha(name, audits):
    """Of 40, twice as many as there may be pass one of five tests, and one of 100 triples.

    That the p-value of the counts is valid at every level is computed in `test_evidence_validity`.
    """
    alpha, rejected, too_high = 0.2, 0, 0
    for eps in (0.3, 1.0):
        for seed in range(audits // 2):
            result = run(name, eps, eps, seed, alpha=alpha, max_samples=4_000)
            rejected += result.violated
            too_high += result.eps_lower > eps
            assert result.violated or result.eps_lower <= eps
    assert rejected <= most(audits, alpha)
    assert too_high <= most(audits, alpha)


def test_a_test_on_the_samples_of_the_search_would_raise_false_alarms(monkeypatch):
    """The test above can fail: here is the mistake that it guards against."""
    from pytest_dp.auditors import held_out, statdp, statdp_search
    from pytest_dp.evidence.counts import Counts

    def says_nothing(records, rng, size):
        return rng.normal(size=(size, 20))

    def false_alarms():
        common = {"eps": 1e-3, "vectorized": "size", "n_jobs": 1, "alpha": ALPHA, **COUNTS}
        results = [audit(says_nothing, seed=k, max_samples=1_000, **common) for k in range(8)]
        return sum(result.violated for result in results)

    def peek(context, pool, best):
        c1, c2 = sorted((best.ranked.c1, best.ranked.c2), reverse=True)
        return held_out.Tested(None, Counts(c1, best.runs, c2, best.runs, (c1, c2), best.runs))

    monkeypatch.setattr(statdp_search, "LUCK", 0.0)  # the most suspicious event, as published
    assert false_alarms() <= 2
    monkeypatch.setattr(statdp, "_test", peek)
    assert false_alarms() > 3


@pytest.mark.parametrize("true", [1.0, 2.0])
def test_no_sample_is_searched_and_tested(monkeypatch, true):
    from pytest_dp.sampling.sampler import Sampler

    batches = []
    measure = Sampler.measure

    def remembered(self, draws, function, deadline):
        outputs = measure(self, draws, lambda outputs: outputs, deadline)
        batches.append([{noise for part in parts for noise in part.tolist()} for parts in outputs])
        return [[function(part) for part in parts] for parts in outputs]

    monkeypatch.setattr(Sampler, "measure", remembered)
    run("laplace", 1.0, true, 3, max_samples=20_000)
    *searched, tested = batches
    assert len(tested) == 2
    everything = [noise for batch in batches for outputs in batch for noise in outputs]
    assert len(everything) == len(set(everything))
    # Nor are they the same noise around another centre.
    before = {
        round(noise - d, 9) for batch in searched for one in batch for noise in one for d in (0, 1)
    }
    assert not before & {round(noise - d, 9) for one in tested for noise in one for d in (0, 1)}


@pytest.mark.slow
def test_a_loss_at_the_resolution_is_caught():
    """How often a fixed event is caught is computed in `test_evidence`."""
    efforts = (0.1, 30_000), (1.0, 10_000), (3.0, 10_000)
    for name, (eps, samples) in zip(AT_THEIR_CLAIM, efforts, strict=True):
        passed = run(name, eps, eps, 0, max_samples=samples)
        assert passed.verdict == "no violation"
        assert eps < passed.resolution < 4 * eps
        assert run(name, eps, passed.resolution, 1, max_samples=samples).violated


def ten_bins(counts, eps, rng, size):
    return np.asarray(counts) + rng.laplace(scale=len(counts) / eps, size=(size, len(counts)))


def ten_answers(truth, eps, rng, size):
    keep = math.exp(eps) / (math.exp(eps) + 9)
    return np.where(rng.random(size) < keep, truth, (truth + rng.integers(1, 10, size)) % 10)


def often_missing(records, eps, rng, size):
    missing = rng.random(size) < 0.02 * (math.exp(eps) if records else 1)
    return np.where(missing, np.nan, rng.laplace(size=size))


@pytest.mark.spot(3)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "inputs"),
    [
        (ten_bins, {"inputs": queries(5)}),
        (ten_answers, {"inputs": values(range(10))}),
        (often_missing, COUNTS),
    ],
)
def test_a_resolution_is_honest_where_no_event_has_the_whole_loss(mechanism, inputs):
    """Were only 0.6 of them caught instead of 0.95, one of five such tests would not notice."""
    eps, common = 1.0, {"vectorized": "size", "n_jobs": 1, "max_samples": 10_000, **inputs}
    at_claim = [
        audit(mechanism, eps=eps, params={"eps": eps}, seed=seed, **common) for seed in range(3)
    ]
    resolution = sorted(result.resolution for result in at_claim)[1]
    caught = [
        audit(mechanism, eps=eps, params={"eps": min(resolution, 3.9)}, seed=seed, **common)
        for seed in range(10, 13)
    ]
    assert all(result.violated for result in caught)


@pytest.mark.spot(3)
@pytest.mark.parametrize("name", AT_THEIR_CLAIM)
def test_the_bound_reaches_nearly_the_truth_and_decides_the_verdict(name):
    for claimed in (0.9, 1.0, 1.1):
        result = run(name, claimed, 1.0, 3, alpha=0.01)
        assert 0.9 < result.eps_lower <= 1.0
        assert result.violated == (result.p_value <= result.alpha)
        assert result.violated == (result.eps_lower >= claimed)
        assert result.violated == (result.counterexample is not None)


def test_a_counterexample_holds_on_samples_of_its_own():
    result = run("laplace", 1.0, 2.0, 5)
    found = result.counterexample
    rng = np.random.default_rng(0)
    frequencies = [
        np.mean([found.event(output) for output in laplace(d, 0.5, rng, 4_000)])
        for d in (found.d1, found.d2)
    ]
    assert frequencies[0] > math.e * frequencies[1]
    for frequency, (low, high) in zip(frequencies, found.intervals, strict=True):
        assert low - 0.05 < frequency < high + 0.05
    assert found.counts[0] > found.counts[1]
    assert found.eps_clopper_pearson > 1.0


NINE = [(name, 0.7) for name in STATDP] + [("histogram, scale eps", 1.5), ("iSVT3", 1.5)]


@pytest.mark.spot(3)
@pytest.mark.slow
@pytest.mark.parametrize(("name", "eps0"), NINE)
def test_the_nine_cases_of_the_paper(name, eps0):
    case = STATDP[name]
    expected = "violated" if case.violates(eps0) else "no violation"
    samples = 200_000 if expected == "violated" else 50_000
    keywords = {**case.keywords(eps0, many=True), "max_samples": samples}
    assert audit(case.vectorized, **keywords, seed=1, n_jobs=1).verdict == expected


def test_noisy_max_is_told_from_the_noisy_maximum():
    def noisy_maximum(answers, eps, rng, size):
        noise = rng.laplace(scale=2 / eps, size=(size, len(answers)))
        return (np.asarray(answers) + noise).max(axis=1)

    common = {"eps": "eps", "params": {"eps": 1.0}, "inputs": queries(5), "vectorized": "size"}
    assert audit(noisy_max, **common, seed=1, n_jobs=1).verdict == "no violation"
    assert audit(noisy_maximum, **common, seed=1, n_jobs=1).verdict == "violated"


def test_the_same_seed_gives_the_same_result_for_any_number_of_processes():
    def slow_enough(records, rng):
        total = 0.0
        for _ in range(40):
            total = rng.random()
        return len(records) + rng.laplace(scale=0.8) + 0 * total

    one, two, other = (
        audit(slow_enough, eps=1.0, **COUNTS, seed=seed, n_jobs=jobs, max_samples=12_000)
        for seed, jobs in ((7, 1), (7, 2), (8, 1))
    )
    assert (one.p_value, one.eps_lower, one.samples) == (two.p_value, two.eps_lower, two.samples)
    assert str(one.strongest) == str(two.strongest)
    assert one.p_value != other.p_value


@pytest.mark.spot(3)
@pytest.mark.parametrize(
    ("leak", "event"),
    [
        (lambda rng: None, "output is None"),
        (lambda rng: float("nan"), "isnan(output)"),
        (lambda rng: [0] * 3, "len(output)"),
        (lambda rng: 1 / 0, "raises ZeroDivisionError"),
        (lambda rng: "n/a", "output == 'n/a'"),
        (lambda rng: True, "output"),
    ],
)
def test_whatever_an_output_is_it_can_leak(leak, event):
    def mechanism(records, rng):
        if not records and rng.random() < 0.2:
            return leak(rng)
        return rng.laplace()

    result = audit(mechanism, eps=1.0, **COUNTS, seed=1, n_jobs=1)
    assert result.violated
    assert event in str(result.counterexample.event)
    assert (result.counterexample.d1, result.counterexample.d2) == ([], [0])


def test_a_mechanism_without_noise_is_named():
    result = audit(lambda d: len(d), eps=1.0, **COUNTS, seed=1, n_jobs=1)
    assert result.violated
    assert (
        "missing noise, a fixed seed, noise that was drawn only once"
        in result.counterexample.diagnosis[0]
    )
    result = audit(lambda d: 42, eps=1.0, **COUNTS, seed=1, n_jobs=1)
    assert result.verdict == "inconclusive"
    assert any("returned the same value in all" in note for note in result.notes)


def test_pairs_left_out_are_inconclusive():
    def slow(records, rng):
        return sum(records) + rng.laplace()

    common = {"inputs": [[1, 0, 1]], "neighbors": "add_remove_one", "seed": 1, "n_jobs": 1}
    few = audit(slow, eps=1.0, max_samples=300, **common)
    assert few.pairs[0] < few.pairs[1] == 3
    assert few.verdict == "inconclusive"
    assert any("tried" in note for note in few.notes)
    no_noise = audit(lambda records: sum(records), eps=1.0, max_samples=1_000, **common)
    assert no_noise.violated


def test_too_few_samples_are_inconclusive():
    result = run("laplace", 1.0, 1.0, 1, max_samples=60)
    assert result.verdict == "inconclusive"
    assert result.resolution == math.inf
    assert result.samples <= 60 + 3 * 64  # warming up comes on top


def test_a_budget_that_is_used_up_is_no_leak():
    def accountant(limit):
        spent = 0

        def mechanism(records, rng):
            nonlocal spent
            spent += 1
            if spent > limit:
                raise RuntimeError("privacy budget exceeded")
            return len(records) + rng.laplace()

        return mechanism

    for limit in (300, 3_000):
        with pytest.raises(MechanismError, match="keeps state between runs"):
            audit(accountant(limit), eps=1.0, **COUNTS, seed=1, n_jobs=1)
    often = audit(
        lambda d, rng: 1 / 0 if rng.random() < 0.9 else len(d) + rng.laplace(),
        eps=1.0,
        **COUNTS,
        seed=1,
        n_jobs=1,
    )
    assert often.verdict == "no violation"


def shared_noise(records, rng, size):
    return len(records) + rng.laplace() + rng.normal(scale=0.1, size=size)


class Quota:
    """Answers so many times, then returns None."""

    def __init__(self, limit):
        self.left = limit

    def __call__(self, records, rng):
        self.left -= 1
        return len(records) + rng.laplace() if self.left > 0 else None


def test_runs_that_are_not_independent_give_no_verdict():
    told = 0
    for seed in range(6):
        try:
            result = audit(
                shared_noise,
                eps=1.0,
                **COUNTS,
                vectorized="size",
                seed=seed,
                max_samples=20_000,
                n_jobs=1,
            )
        except MechanismError as error:
            told += "not independent" in str(error)
        else:
            assert not result.violated
    assert told > 0
    for limit in range(600, 20_000, 4_900):
        try:
            result = audit(Quota(limit), eps=1.0, **COUNTS, seed=1, n_jobs=1, max_samples=20_000)
        except MechanismError:
            continue
        assert not result.violated


def test_independent_runs_never_look_clumped():
    from pytest_dp.evidence import assumptions

    rng = np.random.default_rng(0)
    smallest = 1.0
    for chance in (0.5, 0.03, 0.002):
        for _ in range(2_000):
            sizes = np.array([512] * 15 + [320])
            p, shares = assumptions.same_in_all_chunks(rng.binomial(sizes, chance), sizes)
            smallest = min(smallest, p)
            assert len(shares) <= 16
    assert 1e-9 < smallest < 0.01
    sizes = np.full(16, 500)
    assert assumptions.same_in_all_chunks(sizes * (rng.random(16) < 0.5), sizes)[0] < 1e-100
    assert assumptions.same_in_all_chunks(np.zeros(2, int), np.array([50, 50])) == (1.0, [])


@pytest.mark.parametrize("vectorized", [None, "size"])
def test_a_result_that_is_reused_is_copied(vectorized):
    buffer = np.zeros((40_000, 3))

    def mechanism(records, rng, size=None):
        out = buffer[0] if size is None else buffer[:size]
        out[:] = len(records) + rng.laplace(scale=0.01, size=out.shape)
        return out

    result = audit(mechanism, eps=1.0, **COUNTS, vectorized=vectorized, seed=1, n_jobs=1)
    assert result.violated


def constant(records, rng, size):
    return np.full(size, sum(records))


def two_sided_geometric(records, rng, size):
    p = 1 - np.exp(-0.05)
    return sum(records) + rng.geometric(p, size) - rng.geometric(p, size)


def half_the_noise(records, rng, size):
    return sum(records) + rng.laplace(scale=0.5, size=size)


@pytest.mark.spot(3)
@pytest.mark.parametrize("mechanism", [constant, two_sided_geometric, half_the_noise])
@pytest.mark.parametrize("most", [2_000, 20_000])
def test_all_runs_stay_within_max_samples(mechanism, most):
    for seed in range(3):
        result = audit(
            mechanism,
            eps=1.0,
            neighbors="add_remove_one",
            inputs=[[1, 1]],
            vectorized="size",
            method="statdp",
            max_samples=most,
            seed=seed,
            n_jobs=1,
        )
        assert result.samples <= most
