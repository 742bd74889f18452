"""Averages: how old patients are, and how long they wait."""

from collections.abc import Sequence

import numpy as np
from pytest_dp import dp_claim

EPS_AGE = 1.0
EPS_WAIT = 1.0
MAX_AGE = 120  # years
MAX_WAIT = 240  # minutes


@dp_claim(
    eps=EPS_AGE,
    neighbors="replace_one",
    inputs="tests.dp_inputs:ages_of_a_ward",
    vectorized="size",
)
def mean_age(
    ages: Sequence[int], rng: np.random.Generator, size: int | None = None
) -> float | np.ndarray:
    """Mean age on a ward, whose number of beds is public.

    Another patient in one of n beds moves the mean of the clipped ages by at most MAX_AGE / n.
    """
    clipped = np.clip(ages, 0, MAX_AGE)
    scale = MAX_AGE / (len(clipped) * EPS_AGE)
    return clipped.mean() + rng.laplace(scale=scale, size=size)


@dp_claim(
    eps=EPS_WAIT,
    neighbors="add_remove_one",
    inputs="tests.dp_inputs:waits",
    max_samples=150_000,
)
def mean_wait(minutes: Sequence[float], rng: np.random.Generator) -> float:
    """Mean waiting time in minutes; how many patients waited is private.

    Half of EPS_WAIT goes to the sum, which one patient moves by at most MAX_WAIT, and half to the
    count, which one patient moves by 1. What follows only uses these two noisy numbers.
    """
    total = sum(min(max(waited, 0), MAX_WAIT) for waited in minutes)
    noisy_total = total + rng.laplace(scale=MAX_WAIT / (EPS_WAIT / 2))
    noisy_count = len(minutes) + rng.laplace(scale=1 / (EPS_WAIT / 2))
    return noisy_total / max(noisy_count, 1)
