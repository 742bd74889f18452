"""How many patients, of which age, and from where. One entry per patient; ages in whole years."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from pytest_dp import dp_claim

EPS_SENIORS = 1.0
EPS_AGE_GROUPS = 0.5
SENIOR = 65
AGE_GROUPS = [0, 18, 40, 65, 130]

EPS_TOWNS = 1.0
DELTA_TOWNS = 1e-6


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
    max_samples=200_000,  # catches 0.91
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


@dp_claim(
    eps=EPS_TOWNS,
    delta=DELTA_TOWNS,
    neighbors="add_remove_one",
    inputs="tests.dp_inputs:towns",
)
def towns(homes: Sequence[str], rng: np.random.Generator) -> dict[str, int]:
    """Patients from each town; towns are left out if few come from there.

    There is no list of all towns, so to name one at all says that somebody is from there. A town
    that only one patient comes from is named with a probability of DELTA_TOWNS: that is how often
    1 and the noise exceed the threshold (Korolova, Kenthapadi, Mishra & Ntoulas 2009).
    """
    threshold = 1 + math.log(1 / (2 * DELTA_TOWNS)) / EPS_TOWNS
    named = {}
    for town, patients in sorted(Counter(homes).items()):
        noisy = patients + rng.laplace(scale=1 / EPS_TOWNS)
        if noisy > threshold:
            named[town] = round(noisy)
    return named
