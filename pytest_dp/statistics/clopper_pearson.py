"""Exact (Clopper–Pearson) bounds on a probability, and DP-Sniper's lower bound on a claim.

Clopper & Pearson, "The use of confidence or fiducial limits illustrated in the case of the
binomial", Biometrika 1934. The bounds are exact: they hold at every sample size, and the
discreteness of the binomial can only make them wider than they need to be.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.special import betainccinv, betaincinv, ndtri

from pytest_dp.basics.bisection import bracket

SHOWN_ALPHA = 0.05
"""Error of a bound that is shown and decides nothing. Larger is wrong more often; smaller says
less."""
PRODUCT_ROUNDING = 1e-14
"""Relative rounding error of a product of two bounds, by which bounds are moved to the safe side.
Larger is never invalid."""


def interval(count: int, runs: int, alpha: float) -> tuple[float, float]:
    """Return the two-sided confidence interval of a probability, error `alpha / 2` at each end."""
    return lower(count, runs, alpha / 2), upper(count, runs, alpha / 2)


def lower(count: int, runs: int, alpha: float) -> float:
    """Return a lower confidence bound on a probability; 0.0 without hits, or for a tiny `alpha`."""
    if count == 0:
        return 0.0
    bound = float(betaincinv(count, runs - count + 1, alpha))
    return 0.0 if math.isnan(bound) else bound  # alpha below what scipy can invert


def upper(count: int, runs: int, alpha: float) -> float:
    """Return an upper confidence bound on a probability; 1.0 if all hit, or for a tiny `alpha`."""
    if count == runs:
        return 1.0
    # The inverse of the complement: with 1 - alpha, a small alpha would be rounded away.
    bound = float(betainccinv(count + 1, runs - count, alpha))
    return 1.0 if math.isnan(bound) else bound


def eps_lower(c1: int, n1: int, c2: int, n2: int, alpha: float, delta: float = 0.0) -> float:
    """Return a lower confidence bound on ε, in nats, from an event's counts on two neighbours.

    With probability at least `1 - alpha`, the mechanism is not (ε, `delta`)-DP for any ε below the
    bound. The event, the pair and its order must have been chosen on other samples: `c1` of `n1`
    outputs were in the event on the input that makes it likelier. 0.0 if the counts prove nothing.

    LowerBound of Bichsel, Steffen, Bogunovic, Vechev, "DP-Sniper", IEEE S&P 2021. Bonferroni joins
    the two bounds: valid for independent and for coupled samples, but conservative.
    """
    likelier = lower(c1, n1, alpha / 2) - delta
    rarer = upper(c2, n2, alpha / 2)
    if likelier <= rarer:
        return 0.0
    return math.log(likelier / rarer)


def delta_lower(c1: int, n1: int, c2: int, n2: int, eps: float, alpha: float) -> float:
    """Return a lower confidence bound on δ at a given ε; 0.0 if the counts prove nothing."""
    rarer = upper(c2, n2, alpha / 2)
    return max(lower(c1, n1, alpha / 2) - math.exp(eps) * rarer * (1 + PRODUCT_ROUNDING), 0.0)


def paired_log_ratio(c1: int, c2: int, both: int, alpha: float) -> tuple[float, float]:
    """Return the log ratio of an event's probabilities, in nats, and its half-width (approximate).

    The event held in `c1` runs on D and `c2` on D', in `both` on both with equal random numbers.
    The interval is normal, two-sided, with error `alpha`. For a count of 0, ratio and half-width
    are infinite; for two, the ratio is NaN.

    Source: Bichsel, Gehr, Drachsler-Cohen, Tsankov, Vechev, "DP-Finder", CCS 2018, Section 4.5
    (M-CLT); here by the delta method.
    """
    if not (c1 and c2):
        return math.inf if c1 else -math.inf if c2 else math.nan, math.inf
    error = math.sqrt((c1 + c2 - 2 * both) / (c1 * c2))
    return math.log(c1 / c2), -float(ndtri(alpha / 2)) * error


def smallest_level(is_refuted: Callable[[float], bool]) -> float:
    """Return the p-value of a test: the smallest level at which `is_refuted` holds, rounded up.

    Its exponent is exact to 1e-6. At least 1e-300; 1.0 if the test holds at no level. `is_refuted`
    must hold at all larger levels, too.
    """

    def is_reached(exponent: float) -> bool:
        return is_refuted(min(10**exponent, 1 - 1e-12))

    # On a scale of powers of ten; below 1e-300 the exact value is of no interest.
    if not is_reached(0.0):
        return 1.0
    if is_reached(-300.0):
        return 1e-300
    return float(10 ** bracket(is_reached, -300.0, 0.0, width=1e-6)[1])
