"""The promise is `epsilon` and `delta` of each function that adds noise. Neighbouring datasets
differ in one record, which fits the mean's sensitivity, (high - low) / n. Counts differ by 1, and
values by the sensitivity.
"""

# requirements: diffpriv-pure==0.1.0

from functools import partial

import diffpriv_pure as dp

from pytest_dp import Claimed, claims, replace_one

one, half = [(0.0, 1.0)], partial(dp.private_sum, bounds=(0.0, 10.0), epsilon=0.5)
rows = {"inputs": [[0.0, 5.0, 10.0], [0.0, 0.0]], "neighbors": replace_one(), "beyond": "off"}


def query(ask, **more):
    return Claimed(lambda data: ask(data, (0.0, 10.0), 1.0, **more), eps=1.0, **rows, **more)


def gauss(epsilon, delta):
    """`gaussian_sigma` is documented as the analytic Gaussian's, which has no largest epsilon."""
    sigma = dp.gaussian_sigma(1.0, epsilon, delta)
    promised = {"eps": epsilon, "delta": delta, "pairs": one}
    return Claimed(lambda x: x + dp.gaussian_noise(sigma), **promised)


def wide(x, rng, size):
    return x + rng.normal(scale=dp.gaussian_sigma(1.0, 6.0, 0.3), size=size)


diffpriv_pure = claims(
    {
        "laplace_noise": Claimed(lambda x: x + dp.laplace_noise(1.0, 1.0), eps=1.0, pairs=one),
        "gaussian_sigma, eps 0.5": gauss(0.5, 0.01),
        "gaussian_sigma, eps 1": gauss(1.0, 0.01),
        "gaussian_sigma, eps 6": Claimed(
            wide,
            eps=6.0,
            delta=0.3,
            pairs=[(0.0, 1.0)],
            vectorized="size",
            max_seconds=60.0,
        ),
        "private_count": Claimed(
            lambda n: dp.private_count(n, 1.0), eps=1.0, pairs=[(3, 4)], max_seconds=60.0
        ),
        "two sums": Claimed(lambda data: [half(data) for _ in range(2)], eps=1.0, **rows),
        "private_sum": query(dp.private_sum),
        "private_sum, delta": query(dp.private_sum, delta=0.01),
        "private_mean": query(dp.private_mean),
        "private_mean, delta": query(dp.private_mean, delta=0.01),
    }
)
