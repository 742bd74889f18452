"""What the guarantees of parts add up to, for parts that may depend on what came before."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pytest_dp.bisection import bracket
from pytest_dp.errors import ClaimError
from pytest_dp.privacy.approximate import ApproximateDP
from pytest_dp.privacy.concentrated import GaussianDP, RenyiDP, ZeroConcentratedDP
from pytest_dp.privacy.conversions import pure_to_gdp
from pytest_dp.privacy.functional import PrivacyProfile
from pytest_dp.privacy.guarantees import LARGEST_EPS, Guarantee
from pytest_dp.privacy.implication import smallest_rho

if TYPE_CHECKING:
    from pytest_dp.arrays import Floats
    from pytest_dp.privacy.losses import Losses
    from pytest_dp.privacy.profiles import Region

Parts = Sequence[tuple[Guarantee, int]]
_ROUNDING = 1 + 1e-9
"""What sums of parameters may be off by rounding; a claim that is closer than that is met."""
_ACCURACY = 1 + 2e-3
"""What may be off that is computed by curves. Larger: a claim that is slightly too small is let
pass; smaller: one that is exactly right is refused. By hand."""


def smallest(claim: Guarantee, parts: Parts) -> Guarantee:
    """The smallest claim of the same notion, and with the same delta, that parts add up to.

    By the best rule that applies: rho adds up, mu in squares, divergences order by order. An eps is
    the best of four: basic composition; the exact composition of randomised response with leaks,
    the worst pairs under (eps, delta) (Kairouz, Oh, Viswanath, "The Composition Theorem for
    Differential Privacy", 2015; Murtagh, Vadhan, "The Complexity of Computing the Optimal
    Composition of Differential Privacy", 2018, for parts that differ), which is never above the
    advanced composition of Dwork, Rothblum, Vadhan 2010; the worst pairs of other notions in the
    same way; and bounds on Rényi divergences.

    Parameters
    ----------
    claim : Guarantee
        Of the whole.
    parts : sequence of (Guarantee, int)
        Each with how many times it is used.

    Returns
    -------
    Guarantee
        `claim` itself if that is what the parts add up to, but for rounding.

    Raises
    ------
    ClaimError
        If the parts add up to no claim of that notion, or with that delta.
    """
    if not parts or any(times < 1 for _, times in parts):
        raise ClaimError("A composition needs parts, each of them at least once.")
    met = _ROUNDING
    if isinstance(claim, ApproximateDP):
        value, met = _eps(claim.delta, parts)
    elif isinstance(claim, ZeroConcentratedDP):
        value = math.fsum(times * smallest_rho(part) for part, times in parts)
    elif isinstance(claim, GaussianDP):
        value = _mu(parts)
    elif isinstance(claim, RenyiDP):
        value = claim.claimed * max(
            math.fsum(times * part.renyi_at(order) for part, times in parts) / bound
            for order, bound in claim.bounds
        )
    else:
        value, met = _scale(claim, parts), _ACCURACY
    if claim.claimed / met <= value <= claim.claimed * met:
        return claim
    if math.isinf(value):
        raise ClaimError(_no_such_claim(claim, parts))
    return claim.at(value)


def composed(parts: Parts) -> PrivacyProfile:
    """All that parts add up to, as a privacy profile that holds for every eps."""
    return PrivacyProfile(_profile(parts))


def _no_such_claim(claim: Guarantee, parts: Parts) -> str:
    shown = ", ".join(f"{times} x ({part})" if times > 1 else f"({part})" for part, times in parts)
    if isinstance(claim, ApproximateDP):
        floor = -math.expm1(math.fsum(times * math.log1p(-part.delta) for part, times in parts))
        least = f" Their leaks alone add up to delta={floor:.3g}." if floor > claim.delta else ""
        return (
            f"The parts {shown} add up to no eps with delta={claim.delta!r}.{least} Allowed: a "
            "delta that they can meet. Write a larger delta=."
        )
    notion = str(claim).partition("=")[0]
    return (
        f"The parts {shown} add up to no claim of the kind {claim}. Allowed: parts that promise "
        f"the same or more. Write the claim as eps= and delta=, or claim {notion}= of "
        "each part."
    )


def _mu(parts: Parts) -> float:
    """Pure parts are taken together: they are easier to hide than the sum of what hides each."""
    squares, pure = [], []
    for part, times in parts:
        if isinstance(part, GaussianDP):
            squares.append(times * part.mu**2)
        elif isinstance(part, ApproximateDP) and not part.delta:
            pure.append((part.eps, times))
        else:
            return math.inf
    if pure:
        alone = math.fsum(times * pure_to_gdp(eps) ** 2 for eps, times in pure)
        squares.append(min(alone, _mu_of_coins(pure) ** 2))
    return math.sqrt(math.fsum(squares))


def _mu_of_coins(coins: list[tuple[float, int]]) -> float:
    """The least mu whose trade-off function, which is convex, is below all corners of theirs."""
    import numpy as np
    from scipy.special import ndtri

    losses = _losses_of_coins(coins)
    p = losses.probabilities
    values = losses.start + losses.step * np.arange(len(p))
    if np.any(abs(values) > LARGEST_EPS):
        return math.inf  # floats cannot tell the corners apart

    def quantiles(p: Floats) -> Floats:
        """Of the sums from each on, by the smaller of what is above and below."""
        above, below = np.cumsum(p[::-1])[::-1][1:], np.cumsum(p)[:-1]
        return np.where(above < below, ndtri(above), -ndtri(below))

    likely = np.cumsum(p[::-1])[::-1][1:] > 1e-250  # what is left out no one will ever see
    apart = quantiles(p) - quantiles(p * np.exp(-values))
    return float(np.max(apart[likely])) * (1 + 1e-9)


def _scale(claim: Guarantee, parts: Parts) -> float:
    """The smallest multiple of a claim that is nowhere below what the parts add up to."""
    import numpy as np

    whole = composed(parts).region

    def is_met(scale: float) -> bool:
        eps, delta = claim.at(scale).region.sticks()
        bound = np.interp(np.exp(eps), whole.slopes, whole.intercepts)
        return bool(np.all(bound <= delta + 1e-12))

    if is_met(claim.claimed):
        low, high = 0.0, claim.claimed
    else:
        low, high = claim.claimed, 2 * claim.claimed
        while not is_met(high):
            low, high = high, 2 * high
            if high > 1e6:
                return math.inf
    return bracket(is_met, low, high, relative=1e-4)[1]


def _eps(delta: float, parts: Parts) -> tuple[float, float]:
    """The smallest eps that parts add up to beside delta, and how exact it is."""
    basic = math.inf
    leaks = math.fsum(times * part.delta for part, times in parts)
    losses = [(part.eps, times) for part, times in parts if part.eps is not None]
    if leaks <= delta * _ROUNDING and len(losses) == len(parts):
        basic = math.fsum(times * eps for eps, times in losses)
    if not delta:
        return basic, _ROUNDING
    profile = _profile(parts)
    high = min(basic, 2 * LARGEST_EPS)
    if profile(high) > delta:
        return basic, _ROUNDING
    return bracket(lambda eps: profile(eps) <= delta, 0.0, high, relative=1e-9)[1], _ACCURACY


def _profile(parts: Parts) -> Callable[[float], float]:
    """The smallest delta known to hold for the whole at any eps."""
    log_kept = -math.fsum(times * math.log1p(-part.delta) for part, times in parts)
    leak = -math.expm1(-log_kept) * (1 + 1e-15)
    without_leaks = [(_without_leak(part), times) for part, times in parts]
    coins = all(isinstance(part, ApproximateDP) for part, _ in parts)  # of which all is known
    by_divergence = None if coins else _by_divergence(without_leaks)
    region = _region(without_leaks)

    def delta_at(eps: float) -> float:
        delta = region.delta_at(eps)
        if by_divergence:
            delta = min(delta, by_divergence.delta_at(eps))
        return min(leak + (1 - leak) * delta, 1.0)

    return delta_at


def _without_leak(part: Guarantee) -> Guarantee:
    """A pair that is (eps, delta)-private is one that is eps-private, but for a leak of delta."""
    return ApproximateDP(part.eps) if isinstance(part, ApproximateDP) else part


def _by_divergence(parts: Parts) -> Guarantee | None:
    """What bounds on divergences add up to, if all parts have some."""
    rho = math.fsum(times * smallest_rho(part) for part, times in parts)
    if rho < math.inf:
        return ZeroConcentratedDP(rho)
    orders = {order for part, _ in parts if isinstance(part, RenyiDP) for order, _ in part.bounds}
    return _renyi(parts, orders)


def _renyi(parts: Parts, orders: set[float]) -> RenyiDP | None:
    sums = {
        order: math.fsum(times * part.renyi_at(order) for part, times in parts) for order in orders
    }
    finite = tuple((order, bound) for order, bound in sorted(sums.items()) if bound < math.inf)
    return RenyiDP(finite) if finite else None


def _region(parts: Parts) -> Region:
    """What the worst pairs of all parts allow together; parts of a kind that adds up are one."""
    from pytest_dp.privacy.losses import Losses

    of_coins = [(part.eps, times) for part, times in parts if isinstance(part, ApproximateDP)]
    rest = [(part, times) for part, times in parts if not isinstance(part, ApproximateDP)]
    losses = [Losses.of_region(part.region).times(times) for part, times in _merged(rest)]
    return reduce(Losses.plus, losses, _losses_of_coins(of_coins)).region()


def _merged(parts: Parts) -> Parts:
    rho = square = 0.0
    merged: list[tuple[Guarantee, int]] = []
    renyi: list[tuple[RenyiDP, int]] = []
    for part, times in parts:
        if isinstance(part, ZeroConcentratedDP):
            rho += times * part.rho
        elif isinstance(part, GaussianDP):
            square += times * part.mu**2
        elif isinstance(part, RenyiDP):
            renyi.append((part, times))
        else:
            merged.append((part, times))
    merged += [(ZeroConcentratedDP(rho), 1)] if rho else []
    merged += [(GaussianDP(math.sqrt(square)), 1)] if square else []
    together = _renyi(renyi, {order for part, _ in renyi for order, _ in part.bounds})
    return merged + ([(together, 1)] if together else [])


def _losses_of_coins(coins: list[tuple[float, int]]) -> Losses:
    from pytest_dp.privacy.losses import Losses

    losses = [
        Losses.of_coins(eps, sum(times for other, times in coins if other == eps))
        for eps in sorted({eps for eps, _ in coins if eps})
    ]
    return reduce(Losses.plus, losses, Losses.of_nothing())
