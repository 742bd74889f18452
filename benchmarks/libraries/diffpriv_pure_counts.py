"""diffpriv-pure: the events by which claims of the pack are broken, counted by hand."""

import math

import diffpriv_pure as dp

from benchmarks.libraries.counting import counted, show

sigma = dp.gaussian_sigma(1.0, 6.0, 0.3)

show(
    {
        "private_count": counted(
            lambda n: dp.private_count(n, 1.0),
            (3, 4),
            lambda count: count == 3,
            lambda q: math.e * q,
            why="The noise is never negative.",
        ),
        "gaussian_sigma, eps 6": counted(
            lambda x: x + dp.gaussian_noise(sigma),
            (1.0, 0.0),
            lambda out: out > 1.0,
            lambda q: math.exp(6.0) * q + 0.3,
            500_000,
            why="sigma is sqrt(2 ln(1.25 / delta)) / epsilon, for which epsilon is 1 at most.",
        ),
    }
)
