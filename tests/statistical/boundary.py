"""Mechanisms whose loss is exactly known, for audits right at their claim."""

import numpy as np


def laplace(records, scale, rng, size):
    return len(records) + rng.laplace(scale=scale, size=size)


def geometric(records, decay, rng, size):
    up, down = rng.geometric(1 - decay, size), rng.geometric(1 - decay, size)
    return len(records) + up - down


def randomized_response(truth, keep, rng, size):
    return np.where(rng.random(size) < keep, truth, 1 - truth)
