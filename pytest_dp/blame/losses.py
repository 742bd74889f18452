"""What additive noise of a known kind loses, in the words of a claim."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from pytest_dp.blame.families import BOUNDED, GAUSSIAN, LAPLACE, ONE_SIDED, Family
from pytest_dp.blame.texts import format_number
from pytest_dp.privacy.guarantees import Guarantee

ABOVE = 1 + 1e-6
"""Only a loss of more than so many times the claim is more than claimed: less may be rounding.
Chosen by hand; nothing depends on it finely."""


def is_pure(claim: Guarantee) -> bool:
    """Whether eps is claimed without a delta."""
    return claim.parameter == "eps" and not claim.delta


def excess_loss(
    shifts: Sequence[float], families: Sequence[Family], claim: Guarantee
) -> tuple[float, str] | None:
    """What independent draws lose, if it is more than claimed and known exactly.

    Parameters
    ----------
    shifts : sequence of float
        By how much each draw would have to move, to take outputs on D to those on D'.
    families : sequence of Family
    claim : Guarantee

    Returns
    -------
    loss : float
        In the claim's parameter.
    text : str
    """
    names = {family.name for family in families}
    claimed = format_number(claim.claimed)
    if names & {ONE_SIDED, BOUNDED}:
        if not is_pure(claim):
            return None
        return (
            math.inf,
            f"one of D and D' gives outputs that the other never does, for {claimed} claimed",
        )
    if names == {LAPLACE} and claim.parameter == "eps":
        loss = sum(abs(s) / f.scale for s, f in zip(shifts, families, strict=True))
        least = loss + 2 * math.log1p(-claim.delta)  # what of it one draw alone loses at delta
        if least <= claim.claimed * ABOVE:
            return None
        more = f", delta = {claim.delta:g}" * bool(claim.delta)
        return loss, f"a loss of {format_number(loss)} for {claimed}{more} claimed"
    if names == {GAUSSIAN}:
        mu = math.hypot(*(s / f.scale for s, f in zip(shifts, families, strict=True)))
        return _gaussian(mu, claim)
    return None


def _gaussian(mu: float, claim: Guarantee) -> tuple[float, str] | None:
    """Source: Dong, Roth, Su, "Gaussian Differential Privacy", 2022, Corollary 2.13."""
    claimed = format_number(claim.claimed)
    if claim.parameter in ("rho", "mu"):
        value = mu if claim.parameter == "mu" else mu**2 / 2
        if value <= claim.claimed * ABOVE:
            return None
        return value, f"{claim.parameter} = {format_number(value)} for {claimed} claimed"
    if claim.parameter != "eps" or not mu:
        return None
    if not claim.delta:
        return math.inf, f"Gaussian noise keeps no eps without a delta, and {claimed} is claimed"
    cdf, eps = NormalDist().cdf, claim.claimed
    delta = cdf(mu / 2 - eps / mu) - math.exp(eps) * cdf(-mu / 2 - eps / mu)
    if delta <= claim.delta * ABOVE:
        return None
    return eps, f"delta = {delta:.2g} at eps = {claimed} for {claim.delta:g} claimed"
