"""What tests of mechanisms that keep something have in common."""

from __future__ import annotations

import numpy as np

from pytest_dp import MechanismError, audit

RECORDS = {"neighbors": "add_remove_one", "inputs": [[1] * n for n in range(1, 6)]}


def verdict(make, method, seed, **keywords):
    common = {"eps": 1.0, "n_jobs": 1, "max_samples": 10_000, **RECORDS}
    try:
        return audit(make(), method=method, seed=seed, **{**common, **keywords}).verdict
    except MechanismError as error:
        said = str(error)
        return "error" if "keeps something" in said or "not independent" in said else said


class NoCopy:
    def __init__(self):
        self.kept = {}

    def __reduce__(self):
        raise TypeError("not to be copied")


def fixed_seed(data):
    return sum(data) + np.random.default_rng(3).laplace()


def half_the_noise(data, rng):
    return sum(data) + rng.laplace(scale=0.5)


def missing(data, rng):
    return sum(data)
