"""The monthly report: two releases about the same patients, so their losses add up."""

from collections.abc import Sequence

import numpy as np

from clinic_stats.billing import EPS_COST, total_cost
from clinic_stats.counts import EPS_SENIORS, seniors

EPS_REPORT = EPS_SENIORS + EPS_COST


def monthly_report(
    patients: Sequence[tuple[int, float]], rng: np.random.Generator
) -> dict[str, float]:
    """Everything that we publish each month about the (age, cost) of our patients."""
    return {
        "seniors": seniors([age for age, _ in patients], rng),
        "total cost": total_cost([cost for _, cost in patients]),
    }
