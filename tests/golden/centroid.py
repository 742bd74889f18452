"""The mean position of all devices, each a row of three coordinates."""

import numpy as np

from pytest_dp import dp_claim

NO_DEVICE = np.empty((0, 3))
ONE_DEVICE = np.array([[0.25, 0.5, 0.75]])


@dp_claim(eps=3.0, neighbors="add_remove_one", inputs=[NO_DEVICE, ONE_DEVICE], max_samples=20_000)
def centroid(positions, rng):
    inside = np.clip(positions, 0.0, 1.0)
    if len(inside) == 0:
        return np.zeros(3)
    return inside.mean(axis=0) + rng.laplace(scale=2.0, size=3)
