"""Which guarantees are at least as strong as which others."""

from __future__ import annotations

from pytest_dp.limits import ROUNDED
from pytest_dp.privacy.approximate import ApproximateDP
from pytest_dp.privacy.concentrated import GaussianDP, RenyiDP, ZeroConcentratedDP
from pytest_dp.privacy.guarantees import Guarantee


def implies(stronger: Guarantee, weaker: Guarantee) -> bool:
    """Whether every mechanism that keeps the first guarantee is known to keep the second.

    Of one notion, by its parameters. Of two notions, by the conversions that are exact or, for
    hockey sticks and divergences of single orders, by what follows of each. False does not mean
    that something is known to tell them apart.
    """
    if stronger == weaker:
        return True
    if isinstance(weaker, ApproximateDP) and not weaker.delta:  # which computed deltas may round to
        return stronger.largest_ratio is not None and stronger.largest_ratio <= weaker.eps
    if isinstance(weaker, ApproximateDP):
        return stronger.delta_at(weaker.eps) <= weaker.delta * (1 + ROUNDED)
    if isinstance(weaker, RenyiDP):
        bounds = weaker.bounds
        return all(stronger.renyi_at(order) <= bound * (1 + ROUNDED) for order, bound in bounds)
    if isinstance(weaker, ZeroConcentratedDP):
        return smallest_rho(stronger) <= weaker.rho * (1 + ROUNDED)
    if isinstance(weaker, GaussianDP):
        return _mu(stronger) <= weaker.mu * (1 + ROUNDED)
    return False


def smallest_rho(guarantee: Guarantee) -> float:
    """The smallest rho known to follow from a guarantee; infinite if none is.

    The divergence per order of pure privacy is largest at order 1, that of Gaussian privacy is the
    same at all orders (Bun, Steinke, "Concentrated Differential Privacy", TCC 2016).
    """
    linear = isinstance(guarantee, ZeroConcentratedDP | GaussianDP | ApproximateDP)
    return guarantee.renyi_at(1.0) if linear else float("inf")


def _mu(guarantee: Guarantee) -> float:
    """The smallest mu known to follow; infinite if none is."""
    if isinstance(guarantee, GaussianDP):
        return guarantee.mu
    if isinstance(guarantee, ApproximateDP) and not guarantee.delta:
        from pytest_dp.privacy.conversions import pure_to_gdp

        return pure_to_gdp(guarantee.eps)
    return float("inf")
