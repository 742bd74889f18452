"""Audits with DP-Sniper in few words, and mechanisms for audits right at their claim."""

from __future__ import annotations

import math

import boundary
import numpy as np
import pytest
from boundary import COUNTS, QUIET

from pytest_dp import audit, values


def sniped(mechanism, eps=1.0, seed=1, **more):
    keywords = {"vectorized": "size", "n_jobs": 1, "max_samples": 100_000, **QUIET}
    keywords = {**keywords, "method": "dpsniper", **more}
    if "inputs" not in keywords:
        keywords = {**COUNTS, **keywords}
    return audit(mechanism, eps=eps, seed=seed, **keywords)


def four_outcomes(truth, chances, rng, size):
    return np.searchsorted(np.cumsum(chances[truth]), rng.random(size)) * 1.5


def chances_for(eps):
    p = np.array([0.1, 0.2, 0.3, 0.4])
    q = np.array([0.1 * math.exp(eps), 0.25, 0.2, 0.0])
    q[3] = 1 - q.sum()
    assert np.abs(np.log(p / q)).max() == pytest.approx(eps)
    # Both rows in a mapping: a list would be one claim for each of its elements.
    return {"chances": {0: p, 1: q}}


# Mechanisms whose true loss is `eps`, exactly.
AT_THEIR_CLAIM = {
    **boundary.AT_THEIR_CLAIM,
    "four outcomes": (four_outcomes, chances_for, {"inputs": values([0, 1])}),
}


def run(name, claimed, true, seed, **more):
    mechanism, params, inputs = AT_THEIR_CLAIM[name]
    return sniped(mechanism, claimed, seed, params=params(true), **{**inputs, **more})


def consistent(result):
    """Whether verdict, bound, p-value and counterexample say the same."""
    above = result.eps_lower > result.claimed
    return (
        result.violated == above == (result.p_value <= result.alpha)
        and result.violated == (result.counterexample is not None)
        and result.loss[0] <= result.loss[1]
    )
