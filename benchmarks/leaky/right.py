"""Mechanisms that do what they are written for; claims of less are wrong by themselves."""

from __future__ import annotations

import math

import numpy as np

EPS_COUNT = 1.0
EPS_SUM, EPS_SIZE = 0.5, 0.5


def by_constant(records, rng):
    """A count, at what the constant says."""
    return len(records) + rng.laplace(scale=1 / EPS_COUNT)


def by_two_constants(records, rng):
    """A mean, at two shares."""
    total = sum(min(max(x, 0), 5) for x in records) + rng.laplace(scale=5 / EPS_SUM)
    size = len(records) + rng.laplace(scale=1 / EPS_SIZE)
    return total, size


def by_default(records, rng, epsilon=1.0):
    """A histogram of three."""
    counts = np.bincount(np.asarray(records, dtype=int) % 3, minlength=3)
    return counts + rng.laplace(scale=1 / epsilon, size=3)


class Budgeted:
    """Keeps its budget."""

    def __init__(self, budget=1.0):
        self.budget = budget

    def released(self, value, rng):
        """A value that one record moves by 1."""
        return value + rng.laplace(scale=1 / self.budget)


def by_attribute(records, rng):
    """A count, by an object."""
    return Budgeted(budget=1.0).released(len(records), rng)


def by_local_name(answer, rng):
    """Randomised response."""
    epsilon = 1.0
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    return answer if rng.random() < keep else 1 - answer


def unnamed_count(records, rng):
    """A count, at a scale that is a number."""
    return len(records) + rng.laplace(scale=1.0)


def unnamed_histogram(records, rng):
    """A histogram of three, at a scale that is a number."""
    counts = np.bincount(np.asarray(records, dtype=int) % 3, minlength=3)
    return counts + rng.laplace(scale=1.0, size=3)


def unnamed_response(answer, rng):
    """Randomised response, at a probability that is a number."""
    return answer if rng.random() < 0.75 else 1 - answer
