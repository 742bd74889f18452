"""Averages: how old patients are, how long they wait, and their vital signs."""

import math
from collections.abc import Sequence

import numpy as np
from pytest_dp import dp_claim

EPS_AGE = 1.0
EPS_WAIT = 1.0
MAX_AGE = 120  # years
MAX_WAIT = 240  # minutes

RHO_VITALS = 0.125
# Systolic and diastolic blood pressure in mmHg, pulse and breaths per minute.
LOWEST_VITALS = np.array([80, 40, 40, 5])
HIGHEST_VITALS = np.array([200, 120, 180, 45])


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


@dp_claim(
    rho=RHO_VITALS,
    neighbors="replace_one",
    inputs="tests.dp_inputs:vitals_of_a_ward",
    vectorized="size",
)
def mean_vitals(
    vitals: Sequence[Sequence[float]], rng: np.random.Generator, size: int | None = None
) -> np.ndarray:
    """Mean vital signs on a ward, whose number of beds is public; with `size`, so many releases.

    Another patient in one of n beds may move all means at once: each by its range / n, and so the
    vector of means by at most the Euclidean norm of the ranges / n. Gaussian noise of standard
    deviation sigma is then rho-zCDP with rho = (sensitivity / sigma)**2 / 2 (Bun & Steinke 2016).
    """
    means = np.clip(vitals, LOWEST_VITALS, HIGHEST_VITALS).mean(axis=0)
    sensitivity = np.linalg.norm(HIGHEST_VITALS - LOWEST_VITALS) / len(vitals)
    sigma = sensitivity / math.sqrt(2 * RHO_VITALS)
    shape = means.shape if size is None else (size, *means.shape)
    return means + rng.normal(scale=sigma, size=shape)
