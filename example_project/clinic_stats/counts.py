"""How many patients, and of which age. Ages are whole years, one entry per patient."""

import math
from collections.abc import Sequence

import numpy as np
from pytest_dp import dp_claim

EPS_SENIORS = 1.0
EPS_AGE_GROUPS = 0.5
SENIOR = 65
AGE_GROUPS = [0, 18, 40, 65, 130]


@dp_claim(eps=EPS_SENIORS, neighbors="add_remove_one", inputs="tests.dp_inputs:ages")
def seniors(ages: Sequence[int], rng: np.random.Generator) -> int:
    """Patients aged 65 and over.

    One patient changes the count by at most 1, and the difference of two geometric variables is
    the discrete Laplace distribution, whose probabilities fall by exp(-EPS_SENIORS) a step.
    """
    count = sum(age >= SENIOR for age in ages)
    step = 1 - math.exp(-EPS_SENIORS)
    return count + rng.geometric(step) - rng.geometric(step)


@dp_claim(
    eps=EPS_AGE_GROUPS,
    neighbors="add_remove_one",
    inputs="tests.dp_inputs:ages",
    vectorized="size",
)
def age_groups(
    ages: Sequence[int], rng: np.random.Generator, size: int | None = None
) -> np.ndarray:
    """Patients in each age group; with `size`, that many independent releases.

    A patient is in one group only, so one patient changes the whole histogram by at most 1.
    """
    counts, _ = np.histogram(ages, bins=AGE_GROUPS)
    shape = counts.shape if size is None else (size, *counts.shape)
    return counts + rng.laplace(scale=1 / EPS_AGE_GROUPS, size=shape)
