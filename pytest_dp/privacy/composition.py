"""Which guarantees follow from which, and what those of parts add up to.

Parts may depend on what came before.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pytest_dp.basics.bisection import bracket
from pytest_dp.basics.errors import ClaimError
from pytest_dp.privacy.approximate import ApproximateDP, AttackAUC, PrivacyProfile, TradeOff
from pytest_dp.privacy.concentrated import GaussianDP, RenyiDP, ZeroConcentratedDP
from pytest_dp.privacy.guarantees import LARGEST_EPS, Guarantee
from pytest_dp.privacy.stated import pure_to_gdp

if TYPE_CHECKING:
    from pytest_dp.privacy.losses import Losses
    from pytest_dp.privacy.regions import Region

ROUNDING = 1e-12
"""Relative error of a conversion. Larger: too small claims pass; smaller: rounding refuses right
ones."""

Parts = Sequence[tuple[Guarantee, int]]
_ROUNDING = 1 + 10 * 1e-9
"""Relative rounding error of sums and roots of exact parameters, at most: a thousand times the
errors in tests. A claim that is closer is met."""
_ACCURACY, _OF_TRADEOFFS = 1 + 5e-4, 1 + 5e-3
"""Relative errors of results on a lattice of `losses.MAX_POINTS` losses (measured: 3e-4 for 1 to
10,000 parts), and of trade-off functions, which are called at 800 points only (4e-3). Results are
rounded up: a claim that passes is short by less than this."""


def implies(stronger: Guarantee, weaker: Guarantee) -> bool:
    """Return whether every mechanism with the first guarantee is known to have the second.

    True if one part with the first adds up to the second. False if no rule decides.
    """
    if stronger == weaker:
        return True
    if isinstance(weaker, AttackAUC):
        return isinstance(stronger, AttackAUC) and stronger.auc <= weaker.auc
    if not isinstance(weaker, ApproximateDP | RenyiDP | ZeroConcentratedDP | GaussianDP):
        return False
    if weaker.delta and isinstance(weaker, ApproximateDP):  # that of a sum may be off by more
        return stronger.delta_at(weaker.eps) <= weaker.delta * (1 + ROUNDING)
    try:
        needed = smallest_claim(weaker, [(stronger, 1)])
    except ClaimError:
        return False
    return needed.claimed <= weaker.claimed * (1 + ROUNDING)


def smallest_rho(guarantee: Guarantee) -> float:
    """Return the smallest rho known to follow from a guarantee; infinite if none is known.

    The divergence per order of pure privacy is largest at order 1; for Gaussian privacy all orders
    are equal (Bun, Steinke, "Concentrated Differential Privacy", TCC 2016).
    """
    linear = isinstance(guarantee, ZeroConcentratedDP | GaussianDP | ApproximateDP)
    return guarantee.renyi_at(1.0) if linear else float("inf")


def smallest_claim(claim: Guarantee, parts: Parts) -> Guarantee:
    """Return the smallest claim of the same notion, and with the same delta, that parts add up to.

    Each part comes with how many times it is used. The best rule that applies is taken: rho adds
    up, mu in squares, divergences order by order. An eps is the best of four: basic composition;
    the exact composition of randomised response with leaks, the worst pairs under (eps, delta)
    (Kairouz, Oh, Viswanath, "The Composition Theorem for Differential Privacy", 2015; Murtagh,
    Vadhan, "The Complexity of Computing the Optimal Composition of Differential Privacy", 2018, for
    parts that differ), which is never above the advanced composition of Dwork, Rothblum, Vadhan
    2010; the worst pairs of other notions in the same way; and bounds on Rényi divergences.

    Returns `claim` itself if the parts add up to its parameter within a relative error: 1e-8 for
    closed forms, 5e-4 for results on a lattice, 5e-3 if a part is a trade-off function. Any other
    result is rounded up. For Rényi privacy, the sum at each order, `claimed` being the largest
    multiple of an order's bound. Raises ClaimError if there are no parts, if one is used less than
    once, or if they add up to no claim of that notion.
    """
    if not parts or any(times < 1 for _, times in parts):
        raise ClaimError("A composition needs parts, each of them at least once.")
    met = _ROUNDING
    if isinstance(claim, RenyiDP):
        return _sum_renyi_bounds(claim, parts)
    if isinstance(claim, ApproximateDP):
        value, met = _smallest_eps(claim.delta, parts)
    elif isinstance(claim, ZeroConcentratedDP):
        kept = [(without_leak(part) if claim.delta else part, times) for part, times in parts]
        value = math.fsum(times * smallest_rho(part) for part, times in kept)
        if _leak_probability(parts) > claim.delta * _ROUNDING:
            raise ClaimError(_describe_no_claim(claim, parts))
    elif isinstance(claim, GaussianDP):
        value = _smallest_mu(parts)
    else:
        value, met = _smallest_scale(claim, parts), max(_compose_deltas(parts)[1], _ACCURACY)
    if claim.claimed / met <= value <= claim.claimed * met:
        return claim
    if not value <= (LARGEST_EPS if isinstance(claim, ApproximateDP) else sys.float_info.max):
        raise ClaimError(_describe_no_claim(claim, parts))
    return claim.at(value)


def compose_profile(parts: Parts) -> PrivacyProfile:
    """Return the privacy profile that parts add up to, for every eps."""
    return PrivacyProfile(_compose_deltas(parts)[0])


def _sum_renyi_bounds(claim: RenyiDP, parts: Parts) -> Guarantee:
    """Return the sums of divergences at the orders of a claim; the claim if they equal it.

    Raises ClaimError if a part bounds no divergence at one of the orders.
    """
    sums = {
        order: math.fsum(times * part.renyi_at(order) for part, times in parts)
        for order, _ in claim.bounds
    }
    unknown = [order for order, total in sums.items() if total == math.inf]
    if unknown:
        raise ClaimError(_describe_no_claim(claim, parts, f" at order {unknown[0]:g}"))
    most = max(sums[order] / bound for order, bound in claim.bounds)
    if 1 / _ROUNDING <= most <= _ROUNDING:
        return claim
    if len(sums) == 1 or not most:
        return claim.at(sum(sums.values()))
    return RenyiDP(tuple((order, total / most) for order, total in sums.items()), scale=most)


def _describe_no_claim(claim: Guarantee, parts: Parts, where: str = "") -> str:
    """Return the error message that parts add up to no claim of a notion."""
    shown = ", ".join(f"{times} x ({part})" if times > 1 else f"({part})" for part, times in parts)
    if isinstance(claim, ApproximateDP):
        floor = _leak_probability(parts)
        least = f" Their leaks alone add up to delta={floor:.3g}." if floor > claim.delta else ""
        return (
            f"The parts {shown} add up to no eps with delta={claim.delta!r} of at most "
            f"{LARGEST_EPS:g}.{least} Allowed: a delta that they can meet. Write a larger delta=, "
            "or let the parts promise more."
        )
    keyword = str(claim).partition("=")[0]
    notion = type(claim).__name__ if keyword == "guarantee" else f"{keyword}="
    return (
        f"The parts {shown} add up to no claim of the kind {claim}{where}. Allowed: parts that "
        f"promise the same or more. Write the claim as eps= and delta=, or claim {notion} of "
        "each part."
    )


def _smallest_mu(parts: Parts) -> float:
    """Return the smallest mu that parts add up to; infinite if some part has none."""
    squares = []
    for part, times in parts:
        if isinstance(part, GaussianDP):
            squares.append(times * part.mu**2)
        elif isinstance(part, ApproximateDP) and not part.delta:
            squares.append(times * pure_to_gdp(part.eps) ** 2 if part.eps else 0.0)
        else:
            return math.inf
    return math.sqrt(math.fsum(squares))


def _smallest_scale(claim: Guarantee, parts: Parts) -> float:
    """Return the smallest multiple of a claim that allows all parts; infinite above 1e6."""
    whole, _ = _compose_deltas(parts)

    def is_met(scale: float) -> bool:
        eps, delta = claim.at(scale).region.sticks()
        sticks = zip(eps.tolist(), delta.tolist(), strict=True)
        return all(whole(at) <= bound + 1e-12 for at, bound in sticks)

    if is_met(claim.claimed):
        low, high = 0.0, claim.claimed
    else:
        low, high = claim.claimed, 2 * claim.claimed
        while not is_met(high):
            low, high = high, 2 * high
            if high > 1e6:
                return math.inf
    return bracket(is_met, low, high, relative=1e-4)[1]


def _smallest_eps(delta: float, parts: Parts) -> tuple[float, float]:
    """Return the smallest eps that parts add up to at delta, or infinity, and its accuracy."""
    basic = math.inf
    leaks = math.fsum(times * part.delta for part, times in parts)
    losses = [(part.eps, times) for part, times in parts if part.eps is not None]
    if leaks <= delta * _ROUNDING and len(losses) == len(parts):
        basic = math.fsum(times * eps for eps, times in losses)
    if not delta:
        return basic, _ROUNDING
    profile, met = _compose_deltas(parts)
    high = min(basic, 2 * LARGEST_EPS)
    if profile(high) > delta:
        return basic, _ROUNDING
    return bracket(lambda eps: profile(eps) <= delta, 0.0, high, relative=1e-9)[1], met


def _compose_deltas(parts: Parts) -> tuple[Callable[[float], float], float]:
    """Return a function from eps to the smallest known delta of all parts, and its accuracy.

    The accuracy is a relative one, of the eps at a delta.
    """
    leak = _leak_probability(parts) * (1 + 1e-15)
    without_leaks = [(without_leak(part), times) for part, times in parts]
    coins = [(part.eps, times) for part, times in without_leaks if part.eps]
    rest = _merge_additive_parts(
        [(part, times) for part, times in without_leaks if part.eps is None]
    )
    bounds: list[Guarantee | Region] = []
    met = _ROUNDING
    if len(rest) == 1 and rest[0][1] == 1 and not coins:
        bounds.append(rest[0][0])  # of which all is known
    else:
        bounds.append(_compose_regions(coins, rest))
        met = _ACCURACY if rest or len({eps for eps, _ in coins}) > 1 else _ROUNDING
    if any(isinstance(part, TradeOff) for part, _ in rest):
        met = _OF_TRADEOFFS
    if rest and (by_divergence := _guarantee_by_divergences(without_leaks)):
        bounds.append(by_divergence)

    def delta_at(eps: float) -> float:
        return min(leak + (1 - leak) * min(bound.delta_at(eps) for bound in bounds), 1.0)

    return delta_at, met


def without_leak(part: Guarantee) -> Guarantee:
    """Return a guarantee with its delta set to 0; notions without a delta as they are."""
    if isinstance(part, ZeroConcentratedDP):
        return ZeroConcentratedDP(part.rho)
    return ApproximateDP(part.eps) if isinstance(part, ApproximateDP) else part


def _leak_probability(parts: Parts) -> float:
    """Return the probability that at least one part leaks, each with its delta."""
    return -math.expm1(math.fsum(times * math.log1p(-part.delta) for part, times in parts))


def _guarantee_by_divergences(parts: Parts) -> Guarantee | None:
    """Return the guarantee of the summed divergences; None unless all parts bound some."""
    rho = math.fsum(times * smallest_rho(part) for part, times in parts)
    if rho < math.inf:
        return ZeroConcentratedDP(rho)
    orders = {order for part, _ in parts if isinstance(part, RenyiDP) for order, _ in part.bounds}
    return _sum_divergences(parts, orders)


def _sum_divergences(parts: Parts, orders: set[float]) -> RenyiDP | None:
    """Return Rényi privacy by the sums at some orders; None if all sums are infinite."""
    sums = {
        order: math.fsum(times * part.renyi_at(order) for part, times in parts) for order in orders
    }
    finite = tuple((order, bound) for order, bound in sorted(sums.items()) if bound < math.inf)
    return RenyiDP(finite) if finite else None


def _compose_regions(coins: list[tuple[float, int]], rest: Parts) -> Region:
    """Return the region of the worst pairs of all parts together; `coins` are (eps, times)."""
    from pytest_dp.privacy.losses import Losses

    losses = [Losses.of_region(part.region).times(times) for part, times in rest]
    return reduce(Losses.plus, losses, _losses_of_coins(coins)).region()


def _merge_additive_parts(parts: Parts) -> list[tuple[Guarantee, int]]:
    """Return parts, with all of one additive parameter (rho, mu, Rényi bounds) merged into one."""
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
    together = _sum_divergences(renyi, {order for part, _ in renyi for order, _ in part.bounds})
    return merged + ([(together, 1)] if together else [])


def _losses_of_coins(coins: list[tuple[float, int]]) -> Losses:
    """Return the summed losses of all pure parts, (eps, times) each."""
    from pytest_dp.privacy.losses import Losses

    losses = [
        Losses.of_coins(eps, sum(times for other, times in coins if other == eps))
        for eps in sorted({eps for eps, _ in coins if eps})
    ]
    return reduce(Losses.plus, losses, Losses.of_nothing())
