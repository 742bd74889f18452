"""When the wards were full."""

from collections.abc import Iterable

import numpy as np
from pytest_dp import dp_claim, queries

EPS_ALARM = 1.0


@dp_claim(
    eps=EPS_ALARM,
    neighbors="all_queries",
    inputs=queries(10),
    params={"beds": 1},
    max_samples=150_000,  # detects 1.7 in seconds; 400,000 runs would detect 1.5
)
def first_overload(
    patients_per_day: Iterable[int], beds: int, rng: np.random.Generator
) -> list[bool]:
    """For each day, whether there were more patients than beds, up to the first such day.

    A patient moves the number on every day by at most 1. Sparse vector technique with one answer:
    half of EPS_ALARM for the threshold, half for the days (Lyu, Su & Li 2017, Algorithm 1).
    """
    threshold = beds + rng.laplace(scale=2 / EPS_ALARM)
    overloaded = []
    for patients in patients_per_day:
        overloaded.append(bool(patients + rng.laplace(scale=4 / EPS_ALARM) > threshold))
        if overloaded[-1]:
            break
    return overloaded
