"""A histogram: noise is drawn once for all of its bins."""

import numpy as np

from pytest_dp import dp_claim


@dp_claim(eps=1.0, neighbors="replace_one", inputs=[[23, 37, 41, 58, 62]], max_samples=20_000)
def age_histogram(ages, rng):
    counts, _ = np.histogram(ages, bins=[0, 30, 45, 60, 120])
    return counts + rng.laplace(scale=2.0)
