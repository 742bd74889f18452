"""Mechanisms whose loss is exactly known, for audits right at their claim."""

import math

import numpy as np

from pytest_dp import values

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


# Mechanisms whose true loss is `eps`, exactly.
AT_THEIR_CLAIM = {
    "laplace": (laplace, lambda eps: {"scale": 1 / eps}, COUNTS),
    "geometric": (geometric, lambda eps: {"decay": math.exp(-eps)}, COUNTS),
    "randomized response": (
        randomized_response,
        lambda eps: {"keep": math.exp(eps) / (1 + math.exp(eps))},
        {"inputs": values([0, 1])},
    ),
}


def most(audits, alpha):
    """Of so many audits at most so many raise an alarm if each does with chance alpha.

    Two standard errors are added. They hide a version that alarms somewhat too often: audits at a
    large alpha and of all mechanisms together are what tells it. Of 96 audits at 0.2, one that
    alarms twice as often as it may stays below this once in a hundred times.
    """
    return audits * alpha + 2 * math.sqrt(alpha * (1 - alpha) * audits)


def fewest(audits, power):
    """Of so many audits at least so many catch what each of them catches with this chance."""
    return audits * power - 2 * math.sqrt(power * (1 - power) * audits)
