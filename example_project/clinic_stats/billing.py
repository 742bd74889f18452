"""Numbers for the insurers, whose auditors ask for a published privacy library."""

from collections.abc import Iterable, Sequence
from functools import cache

import opendp.prelude as dp
from diffprivlib.mechanisms import Laplace
from pytest_dp import dp_claim

dp.enable_features("contrib")

EPS_BED_DAYS = 1.0
STAY_LIMITS = (0, 30)  # days
BED_DAYS_NOISE = 30.0  # scale, in days

EPS_COST = 0.5
MAX_COST = 10_000  # euros


@cache
def _bed_days() -> dp.Measurement:
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    return (
        space
        >> dp.t.then_clamp(STAY_LIMITS)
        >> dp.t.then_sum()
        >> dp.m.then_laplace(scale=BED_DAYS_NOISE)
    )


@dp_claim(
    eps=EPS_BED_DAYS,
    neighbors="add_remove_one",
    inputs="tests.dp_inputs:stays",
    max_samples=50_000,  # a run takes 60 microseconds
)
def bed_days(stays: Sequence[int]) -> int:
    """Days that patients spent in our beds, all stays together (OpenDP).

    One patient moves the sum of the clamped stays by at most 30 days; noise of 30 / EPS_BED_DAYS.
    """
    return _bed_days()(stays)


@dp_claim(
    eps=EPS_COST,
    neighbors="add_remove_one",
    inputs="tests.dp_inputs:costs",
    max_samples=200_000,
)
def total_cost(costs: Iterable[float]) -> float:
    """Cost of all treatments in euros (diffprivlib).

    One patient moves the sum of the capped costs by at most MAX_COST.
    """
    total = sum(min(max(cost, 0), MAX_COST) for cost in costs)
    return Laplace(epsilon=EPS_COST, sensitivity=MAX_COST).randomise(float(total))
