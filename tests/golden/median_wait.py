"""The median waiting time: too few of them are an error."""

import statistics

from pytest_dp import dp_claim


@dp_claim(eps=1.0, neighbors="add_remove_one", inputs=[[12, 7, 31]], max_samples=20_000)
def median_wait(minutes, rng):
    if len(minutes) + rng.laplace(scale=0.2) < 2.5:
        raise ValueError(f"only {len(minutes)} waits are known")
    return min(statistics.median(minutes), 60) + rng.laplace(scale=60.0)
