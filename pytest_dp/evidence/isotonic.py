"""Weighted isotonic regression, by pooling neighbours that are out of order.

Source: Ayer, Brunk, Ewing, Reid, Silverman, "An empirical distribution function for sampling with
incomplete information", Annals of Mathematical Statistics 1955.
"""

from __future__ import annotations

import numpy as np

from pytest_dp.arrays import Floats


def increasing(values: Floats, weights: Floats) -> Floats:
    """The non-decreasing sequence with the least weighted squares of differences from `values`.

    As ``scipy.optimize.isotonic_regression``, which takes longer to load than an audit takes.
    """
    means: list[float] = []
    sizes: list[float] = []
    counts: list[int] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, size, count = value, weight, 1
        while means and means[-1] >= mean:
            earlier, more = means.pop(), sizes.pop()
            mean = (mean * size + earlier * more) / (size + more)
            size, count = size + more, count + counts.pop()
        means.append(mean)
        sizes.append(size)
        counts.append(count)
    return np.repeat(means, counts)
