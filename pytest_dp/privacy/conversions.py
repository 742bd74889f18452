"""From one notion of privacy to another: the tightest known, rounded to the sound side.

Every result is one that holds wherever the argument does: deltas, divergences and noise are rounded
up, trade-off functions down. Losses are in nats.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pytest_dp.basics.bisection import bracket
from pytest_dp.basics.errors import ClaimError
from pytest_dp.privacy.concentrated import GaussianDP, RenyiDP
from pytest_dp.privacy.guarantees import LARGEST_EPS
from pytest_dp.privacy.stated import read_guarantee


def zcdp_to_delta(rho: float, eps: float) -> float:
    """Return the delta beside eps that follows from rho-zCDP.

    The bound of all orders at once, in both directions, for two coins. By data processing it holds
    for any event (as Asoodeh, Liao, Calmon, Kosut, Sankar, "A Better Bound Gives a Hundred Rounds",
    ISIT 2020, for one order). It is never above Proposition 12 of Canonne, Kamath, Steinke, NeurIPS
    2020, and equal to it for tiny delta.

    Parameters
    ----------
    rho : float
        Above 0.
    eps : float
        At least 0.

    Returns
    -------
    float
        Rounded up, by at most 0.1 % while it is above 1e-20.
    """
    return read_guarantee({"rho": rho}).delta_at(_checked_eps(eps))


def zcdp_to_eps(rho: float, delta: float) -> float:
    """Return the eps beside delta that follows from rho-zCDP: the inverse of `zcdp_to_delta`."""
    return read_guarantee({"rho": rho}).eps_at(_checked_delta(delta))


def rdp_to_delta(orders: Mapping[float, float], eps: float) -> float:
    """Return the delta beside eps that follows from Rényi privacy.

    The bound of all given orders at once, in both directions, for two coins: Asoodeh, Liao, Calmon,
    Kosut, Sankar, "A Better Bound Gives a Hundred Rounds", ISIT 2020. It is never above the best
    order by `renyi_to_delta`.

    Parameters
    ----------
    orders : dict
        The eps of each order above 1.
    eps : float
        At least 0.
    """
    return read_guarantee({"guarantee": RenyiDP(orders)}).delta_at(_checked_eps(eps))


def rdp_to_eps(orders: Mapping[float, float], delta: float) -> float:
    """Return the eps at delta that follows from Rényi privacy: the inverse of `rdp_to_delta`."""
    return read_guarantee({"guarantee": RenyiDP(orders)}).eps_at(_checked_delta(delta))


def gdp_to_delta(mu: float, eps: float) -> float:
    """Return the delta beside eps that follows from mu-Gaussian privacy, which is exact.

    Balle, Wang, "Improving the Gaussian Mechanism for Differential Privacy", ICML 2018, Theorem 5.
    The Gaussian mechanism has ``mu = sensitivity / sigma``.
    """
    return read_guarantee({"mu": mu}).delta_at(_checked_eps(eps))


def gdp_to_eps(mu: float, delta: float) -> float:
    """Return the eps at delta of mu-Gaussian privacy: the inverse of `gdp_to_delta`."""
    return read_guarantee({"mu": mu}).eps_at(_checked_delta(delta))


def gaussian_sigma(eps: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the smallest sigma of an (eps, delta)-private Gaussian mechanism, rounded up.

    Balle, Wang, "Improving the Gaussian Mechanism for Differential Privacy", ICML 2018.

    Parameters
    ----------
    eps, delta : float
        `eps` at least 0, `delta` strictly between 0 and 1.
    sensitivity : float
        In the Euclidean norm, above 0.

    Raises
    ------
    ClaimError
        If no amount of Gaussian noise is enough, as for ``delta = 0``, or there is no such claim.
    """
    if not delta > 0:
        raise ClaimError(
            f"Invalid delta={delta!r}. Allowed: above 0, since Gaussian noise is not eps-private "
            "for any eps. Write a small one, such as 1e-6, or use Laplace noise."
        )
    if not 0 < sensitivity < math.inf:
        raise ClaimError(f"Invalid sensitivity={sensitivity!r}. Allowed: finite, and above 0.")
    read_guarantee({"eps": eps, "delta": delta})

    def is_too_large(mu: float) -> bool:
        return GaussianDP(mu).delta_at(eps) > delta

    low, high = 0.0, 1.0
    while not is_too_large(high):
        low, high = high, 2 * high
    low, _ = bracket(is_too_large, low, high, relative=1e-14)
    return sensitivity / low * (1 + 1e-11)


def pure_to_zcdp(eps: float) -> float:
    """Return the rho that follows from pure eps: ``eps * tanh(eps / 2)``, which is exact.

    It is the rho of randomised response, with its largest divergence per order at order 1. It is
    below the ``eps**2 / 2`` of Bun, Steinke, TCC 2016 (Proposition 3.3).
    """
    return read_guarantee({"eps": eps}).renyi_at(1.0)


def pure_to_gdp(eps: float) -> float:
    """Return the exact mu that follows from pure eps: ``-2 * PhiInverse(1 / (1 + e**eps))``.

    The trade-off function of randomised response has one corner. The convex one of the Gaussian
    passes through it.
    """
    from statistics import NormalDist

    read_guarantee({"eps": eps})
    rare = math.exp(-eps) / (1 + math.exp(-eps))
    return -2 * NormalDist().inv_cdf(rare) * (1 + 1e-14) + 1e-15


def _checked_eps(eps: float) -> float:
    if not 0 <= eps <= 2 * LARGEST_EPS:
        raise ClaimError(f"Invalid eps={eps!r}. Allowed: from 0 to {2 * LARGEST_EPS:g}, in nats.")
    return float(eps)


def _checked_delta(delta: float) -> float:
    if not 0 <= delta < 1:
        raise ClaimError(f"Invalid delta={delta!r}. Allowed: from 0 to below 1, such as 1e-6.")
    return float(delta)
