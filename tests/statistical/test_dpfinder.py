"""DP-Finder as a method: what it catches, what it passes, and what it says of its estimate."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
from boundary import most

import pytest_dp
from benchmarks import mechanisms
from pytest_dp import DPFinder, queries

pytestmark = pytest.mark.usefixtures("_without_blame")
audit = partial(pytest_dp.audit, method=DPFinder(restarts=2), seed=1, n_jobs=1, max_seconds=7_200)
SVT = {
    "eps": 0.6,
    "params": {"eps": [1.0], "threshold": [30.0]},
    "inputs": queries(3),
    "max_samples": 60_000,
    "method": DPFinder(restarts=4),
}


def noisy(data, rng, scale=1.0):
    return data[0] + rng.laplace(scale=scale)


def clipped_sum(data, rng, width):
    """Clips to what nobody promised: records of the examples are within 0 and 2."""
    return sum(min(x, width) for x in data) + rng.laplace()


def test_a_leak_around_a_threshold_that_the_patterns_do_not_reach_is_caught():
    """Beyond the patterns, it is told beside the verdict."""
    told = audit(mechanisms.svt5, **SVT)
    assert not told.violated
    assert told.beyond.violated
    assert told.beyond.lower > 0.6
    assert "answers" in told.beyond.outside
    (note,) = [note for note in told.notes if "M-CLT" in note]
    said = r"of 4 restarts, the best ended on .*, with (a loss of \S+ ± \S+|an output .* only) \("
    assert re.match(said, note)


@pytest.mark.parametrize(("width", "violated"), [(1.0, False), (2.0, True)])
def test_numbers_of_records_are_moved_within_the_examples(width, violated):
    inputs = [[0.0, 1.4, 0.7], [2.0, 0.3]]
    keywords = {"params": {"width": [width]}, "neighbors": "add_remove_one", "beyond": "fail"}
    keywords |= {"max_samples": 8_000}
    result = audit(clipped_sum, eps=1.2, inputs=inputs, **keywords)
    assert result.violated == violated
    if violated:
        records = np.concatenate([result.counterexample.d1, result.counterexample.d2])
        assert records.min() >= 0
        assert records.max() <= 2
        assert result.p_value <= result.alpha


@pytest.mark.canary
@pytest.mark.parametrize(("audits", "scale"), [(4, 0.5), (40, 1.0)])
def test_false_alarms_are_as_rare_as_alpha(audits, scale):
    """Exactly at the claim; a claim that is broken twice over is not passed."""
    red = [
        audit(
            noisy,
            eps=1.0,
            params={"scale": [scale]},
            inputs=queries(1),
            method=DPFinder(restarts=1),
            max_samples=4_000,
            alpha=0.05,
            beyond="fail",
            seed=seed,
        ).violated
        for seed in range(audits)
    ]
    assert sum(red) <= most(audits, 0.05) if scale == 1 else all(red)


def test_mechanisms_without_gradients_are_tested_on_the_pairs_of_the_claim():
    def written(data, rng):
        return f"{data[0] + rng.laplace(scale=0.2):.1f}"

    result = audit(written, eps=1.0, inputs=queries(1))
    assert result.violated
    assert any("only the pairs of the claim are tested: no gradient" in n for n in result.notes)


def test_a_loss_that_is_estimated_above_the_claim_and_not_shown_is_no_pass():
    keywords = {"inputs": queries(1), "max_samples": 1_000, "alpha": 0.001}
    result = audit(noisy, eps=0.9, beyond="fail", **keywords)
    assert result.verdict == "inconclusive"
    assert result.pairs[0] < result.pairs[1]
    assert any("was tested, in vain: raise max_samples" in note for note in result.hindrances)
