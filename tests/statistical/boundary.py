"""Mechanisms whose loss is exactly known, for audits right at their claim, by any method."""

import math

import numpy as np

from pytest_dp import audit, queries, values

COUNTS = {"pairs": [([0], [])]}
QUIET = {"max_seconds": 600}
"""So that no audit looks at the clock, however busy the machine is."""


def laplace(records, scale, rng, size):
    return len(records) + rng.laplace(scale=scale, size=size)


def geometric(records, decay, rng, size):
    up, down = rng.geometric(1 - decay, size), rng.geometric(1 - decay, size)
    return len(records) + up - down


def randomized_response(truth, keep, rng, size):
    return np.where(rng.random(size) < keep, truth, 1 - truth)


def histogram(counts, eps, rng, size):
    return np.asarray(counts) + rng.laplace(scale=1 / eps, size=(size, len(counts)))


# Mechanisms whose true loss is `eps`, exactly.
AT_THEIR_CLAIM = {
    "laplace": (laplace, lambda eps: {"scale": 1 / eps}, COUNTS),
    "geometric": (geometric, lambda eps: {"decay": math.exp(-eps)}, COUNTS),
    "randomized response": (
        randomized_response,
        lambda eps: {"keep": math.exp(eps) / (1 + math.exp(eps))},
        {"inputs": values([0, 1])},
    ),
    "histogram": (
        histogram,
        lambda eps: {"eps": eps},
        {"inputs": queries(2), "neighbors": "one_query"},
    ),
}


def audited(mechanism, eps=1.0, seed=1, **more):
    """Of the numbers of records 1 and 0, if nothing else is said."""
    keywords = {"vectorized": "size", "n_jobs": 1, **QUIET, **more}
    return audit(
        mechanism, eps=eps, seed=seed, **{**({} if "inputs" in more else COUNTS), **keywords}
    )


def run(name, claimed, true, seed, **more):
    """Of the pairs that follow from the claim, without a search unless one is asked for."""
    mechanism, params, inputs = AT_THEIR_CLAIM[name]
    keywords = {"params": params(true), "search": (), **inputs, **more}
    return audited(mechanism, claimed, seed, **keywords)


def consistent(result):
    """Whether verdict, bound, p-value and counterexample say the same."""
    above = result.lower > result.claimed
    return (
        result.violated == (result.p_value <= result.alpha)
        and (result.violated == above or result.method == "sequential")  # whose rungs end there
        and result.violated == (result.counterexample is not None)
        and (result.loss is None or result.loss[0] <= result.loss[1])
    )


def most(audits, alpha):
    """Of so many audits at most so many raise an alarm if each does with chance alpha.

    Two standard errors are added, which hide a version that alarms somewhat too often. Of 32 audits
    at 0.2, one that alarms three times as often as it may passes once in a thousand times.
    """
    return audits * alpha + 2 * math.sqrt(alpha * (1 - alpha) * audits)
