"""Which guarantees are at least as strong as which others."""

from __future__ import annotations

from pytest_dp.privacy.approximate import ApproximateDP
from pytest_dp.privacy.concentrated import GaussianDP, RenyiDP, ZeroConcentratedDP
from pytest_dp.privacy.guarantees import Guarantee

TOLERANCE = 1 + 1e-12
"""What rounding may add where one notion is converted to another."""


def implies(given: Guarantee, asked: Guarantee) -> bool:
    """Whether all that keeps the first is known to keep the second.

    Of one notion, by its parameters. Of two notions, by the conversions that are exact or, for
    hockey sticks and divergences of single orders, by what follows of each. False does not mean
    that something is known to tell them apart.

    Parameters
    ----------
    given, asked : Guarantee
    """
    if given == asked:
        return True
    if isinstance(asked, ApproximateDP) and not asked.delta:  # which computed deltas may round to
        return given.largest_ratio is not None and given.largest_ratio <= asked.eps
    if isinstance(asked, ApproximateDP):
        return given.delta_at(asked.eps) <= asked.delta * TOLERANCE
    if isinstance(asked, RenyiDP):
        return all(given.renyi_at(order) <= bound * TOLERANCE for order, bound in asked.bounds)
    if isinstance(asked, ZeroConcentratedDP):
        return _rho(given) <= asked.rho * TOLERANCE
    if isinstance(asked, GaussianDP):
        return _mu(given) <= asked.mu * TOLERANCE
    return False


def _rho(given: Guarantee) -> float:
    """The smallest rho known to follow.

    The divergence per order of pure privacy is largest at order 1, that of Gaussian privacy is the
    same at all orders (Bun, Steinke, "Concentrated Differential Privacy", TCC 2016).
    """
    linear = isinstance(given, ZeroConcentratedDP | GaussianDP | ApproximateDP)
    return given.renyi_at(1.0) if linear else float("inf")


def _mu(given: Guarantee) -> float:
    """The smallest mu known to follow."""
    if isinstance(given, GaussianDP):
        return given.mu
    if isinstance(given, ApproximateDP) and not given.delta:
        from pytest_dp.privacy.conversions import pure_to_gdp

        return pure_to_gdp(given.eps)
    return float("inf")
