"""Visits in each city: a city without visits is not in the table."""

import pandas as pd

from pytest_dp import dp_claim

VISITS = pd.DataFrame(
    {
        "patient": ["ann", "bob", "cas", "dee"],
        "city": ["oslo", "oslo", "rome", "lima"],
        "minutes": [30, 12, 45, 20],
    }
)


@dp_claim(eps=1.0, neighbors="add_remove_one", inputs=[VISITS], max_samples=20_000)
def visits_by_city(visits, rng):
    counts = visits.groupby("city").size()
    return (counts + rng.laplace(size=len(counts))).to_dict()
