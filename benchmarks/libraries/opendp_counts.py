"""OpenDP: the events by which claims of the pack are broken, counted by hand."""

import math

import opendp.prelude as dp

from benchmarks.libraries.counting import counted, show

dp.enable_features("contrib")
keys = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int))
one = dp.absolute_distance(T=int)
laplace = dp.m.make_laplace_threshold(keys, dp.l01inf_distance(one), scale=1.0, threshold=2)
gauss = dp.m.make_gaussian_threshold(keys, dp.l02inf_distance(one), scale=1.0, threshold=2)
WHY = "A noised value that equals the threshold is released; the map assumes a larger value."
pair = ({"a": 1}, {})


def by_dp(q: float) -> float:
    eps, delta = laplace.map((1, 1, 1))
    return math.exp(eps) * q + delta


def by_zcdp(_: float) -> float:
    """No key comes out that did not go in, so q is 0: all but delta has a finite divergence."""
    return gauss.map((1, 1, 1))[1]


show(
    {
        "Laplace threshold": counted(laplace, pair, lambda out: "a" in out, by_dp, why=WHY),
        "Gaussian threshold": counted(gauss, pair, lambda out: "a" in out, by_zcdp, why=WHY),
    }
)
