"""Audits of training that is run once: correct trainings at the boundary, and broken ones."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import scipy

from benchmarks import one_run as benchmark
from pytest_dp import ClaimError, OneRun, audit
from pytest_dp.report.violation import violation

COMMON = {"neighbors": "add_remove_one", "inputs": [[-1]]}
BITS = list(range(100))


def response(loss: float):
    """Says of each of 100 records whether it is there, by randomised response."""

    def train(records, rng):
        there = np.isin(BITS, records)
        return there ^ (rng.random(len(BITS)) > 1 / (1 + math.exp(-loss)))

    return train


def said(output, canary):
    return output[canary]


def once(train, seed=0, runs=1, canaries=BITS, score=said, guesses=None, **more):
    method = OneRun(canaries, score, guesses, runs)
    return audit(
        train, **{"eps": 1.0, "alpha": 0.05, "seed": seed, **COMMON, **more}, method=method
    )


@pytest.mark.parametrize("runs", [1, 3])
def test_what_attains_the_claim_is_red_as_often_as_alpha(runs):
    """Half of the coins guessed in and half out: all that is said is right as often as allowed."""
    results = [once(response(1.0), seed, runs) for seed in range(500)]
    red = sum(result.violated for result in results)
    assert red <= 0.05 * 500 + 2 * math.sqrt(0.05 * 0.95 * 500)
    assert all(result.violated == (result.lower > 1.0) for result in results)
    assert sum(once(response(4.0), seed, runs).violated for seed in range(5)) == 5


def noisy_bits(noise, scale):
    """Whether each of 100 records is there, with noise."""

    def train(records, rng):
        return np.isin(BITS, records) + getattr(rng, noise)(scale=scale, size=len(BITS))

    return train


@pytest.mark.parametrize(
    ("noise", "claim", "runs", "alpha"),
    [("laplace", {"eps": 1.0}, 4, 0.05), ("normal", {"mu": 1.0}, 10, 1e-6)],
)
def test_what_a_pass_would_have_found_is_found(noise, claim, runs, alpha):
    """In 19 of 20 audits: of 25 at most 4 may miss it."""
    how = {"runs": runs, "alpha": alpha, "eps": None, **claim}
    passed = [once(noisy_bits(noise, 1.0), seed, **how) for seed in range(5)]
    times = sorted(result.resolution for result in passed)[2]
    assert 1.2 < times < 5
    broken = [once(noisy_bits(noise, 1 / times), seed, **how) for seed in range(100, 125)]
    assert sum(result.violated for result in broken) >= 21


def test_several_runs_refute_what_one_cannot_and_stop():
    broken = once(response(3.0), runs=50, alpha=1e-6)
    assert broken.violated
    assert 1 < broken.samples < 10
    assert broken.p_value <= 1e-6
    assert 1.0 < broken.lower <= 3.0
    sound = once(response(0.9), runs=5, alpha=1e-6)
    assert (sound.verdict, sound.samples) == ("no violation", 5)


@pytest.mark.canary
@pytest.mark.parametrize("bug", [{"clip": None}, {"noisy_steps": 1}])
def test_bugs_of_dp_sgd_are_found_by_one_run(bug):
    noise = math.sqrt(benchmark.STEPS) / benchmark.shift_at(benchmark.EPS)
    broken = benchmark.audited(benchmark.dp_sgd(noise, **bug), 1_000, seed=1)
    assert broken.violated
    assert broken.samples == 1
    text = violation(broken)
    assert re.search(r"There are 1,000 canaries, each in the data or not by a\s+coin", text)
    assert "No effort was left" not in text
    sound = benchmark.audited(benchmark.dp_sgd(noise), 1_000, seed=1)
    assert sound.verdict == "no violation"
    assert 0.25 * benchmark.EPS < sound.lower < benchmark.EPS
    assert sound.strength == "weak"


def test_a_gaussian_claim_is_tested_by_all_that_it_promises():
    """The bound in mu comes nearer than one in eps beside a delta."""
    mu = benchmark.shift_at(benchmark.EPS)
    train = benchmark.dp_sgd(math.sqrt(benchmark.STEPS) / mu)
    sound = benchmark.audited(train, 1_000, seed=1, eps=None, delta=None, mu=mu)
    assert sound.verdict == "no violation"
    assert 0.5 * mu < sound.lower < mu
    assert benchmark.audited(train, 1_000, seed=1, eps=None, delta=None, mu=0.4 * mu).violated


def test_scores_that_tell_nothing_would_have_caught_nothing():
    """Half of them are better than coins by chance; they would be with any noise."""

    def unrelated(records, rng):
        return rng.normal(size=len(BITS))

    found = [once(unrelated, seed, 4) for seed in range(40)]
    passed = sum(result.verdict == "no violation" for result in found)
    assert passed <= scipy.stats.binom.isf(1e-3, 40, 0.05)
    assert not any(result.violated for result in found)


def test_records_made_of_the_data_and_read_from_tables_like_it():
    """A synthesiser that copies its data leaves mislabelled rows; one that makes noise does not."""
    rng = np.random.default_rng(5)
    data = [(float(x), int(x > 0)) for x in rng.normal(size=400)]
    keywords = {"eps": 1.0, "neighbors": "add_remove_one", "inputs": [data], "seed": 1}
    copies = audit(lambda rows: list(rows), **keywords, method=OneRun(canaries=200))
    assert copies.violated

    def unrelated(rows, rng):
        return [(float(x), 0) for x in rng.normal(size=50)]

    blind = audit(unrelated, **keywords, method=OneRun(canaries=200))
    assert not blind.violated


@pytest.mark.canary
@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"canaries": 20}, "20 canaries, of which .* Allowed: more canaries"),
        ({"canaries": BITS, "delta": 1e-3, "alpha": 1e-6}, r"runs=\d+, or alpha=0.05"),
        ({"neighbors": "replace_one", "inputs": [[1]]}, "has neighbors='replace_one'"),
        ({"neighbors": None, "inputs": None, "pairs": [([1], [])]}, "has no neighbors="),
        ({"canaries": ["a"] * 100}, "does not fit into a dataset like"),
        ({"canaries": 50, "inputs": [[3, 4]]}, "only 0 records can be made of the data"),
        ({"guesses": (80, 40)}, r"guesses=\(80, 40\) of 100 canaries"),
        ({"score": lambda output, canary: "much"}, "score.* raised ValueError"),
        ({"score": lambda output, canary: math.nan}, "is not a number"),
        (
            {"score": min, "canaries": np.eye(100).tolist(), "inputs": [np.zeros((1, 100))]},
            r"given \[1.0, 0.0, [^(]*0.0\], and has to",  # not "(100 records)"
        ),
        (
            {"score": None, "canaries": [(n, n) for n in BITS], "inputs": [[(0, 0)]]},
            r"cannot read canaries such as .* Write OneRun\(score=",
        ),
    ],
)
def test_what_cannot_be_audited_says_what_to_write(keywords, message):
    if keywords.get("canaries") == 20:
        keywords = {**keywords, "canaries": BITS[:20]}
    if keywords.get("canaries") == ["a"] * 100:
        keywords = {**keywords, "inputs": [np.array([0.0])]}
    with pytest.raises(ClaimError, match=message):
        once(response(1.0), **keywords)
