"""What additive noise of a known kind loses, in the words of a claim."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pytest_dp.blame.families import BOUNDED, GAUSSIAN, LAPLACE, ONE_SIDED, Family
from pytest_dp.blame.texts import format_number
from pytest_dp.limits import NEARLY_EQUAL
from pytest_dp.privacy import GaussianDP, Guarantee

_FAR, _FAR_OUT = 5.0, 14.0
"""How many scales out events of Gaussian and of Laplace noise are looked at. Derived: so far out is
one draw in a million."""


def is_pure(claim: Guarantee) -> bool:
    """Whether eps is claimed without a delta."""
    return claim.parameter == "eps" and not claim.delta


def excess_loss(
    shifts: Sequence[float], families: Sequence[Family], claim: Guarantee, *, apart: bool = True
) -> tuple[float, str] | None:
    """What independent draws lose, in the claim's parameter, and how to say it.

    None if it is not more than claimed, or not known exactly. Each of `shifts` is by how much a
    draw would have to move, to take outputs on D to those on D'; `apart` is whether outputs tell
    the draws one by one.
    """
    names = {family.name for family in families}
    claimed = format_number(claim.claimed)
    in_scales = [abs(s) / family.scale for s, family in zip(shifts, families, strict=True)]
    if names & {ONE_SIDED, BOUNDED}:
        return _never_on_one(in_scales, families, claim)
    if names == {LAPLACE} and claim.parameter == "eps":
        loss = sum(in_scales)
        least = loss + 2 * math.log1p(-claim.delta)  # what of it one draw alone loses at delta
        if least <= claim.claimed * (1 + NEARLY_EQUAL):
            return None
        more = f", delta = {claim.delta:g}" * bool(claim.delta)
        return loss, f"a loss of {format_number(loss)} for {claimed}{more} claimed"
    if names == {LAPLACE} and apart:
        return _more_than_claimed(_of_laplace(max(in_scales), claim), claim)
    if names == {GAUSSIAN}:
        return _gaussian(math.hypot(*in_scales), claim)
    return None


def _never_on_one(
    in_scales: Sequence[float], families: Sequence[Family], claim: Guarantee
) -> tuple[float, str] | None:
    """Of bounded and one-sided noise: what one input gives with probability p, the other never."""
    if is_pure(claim):
        text = f"one of D and D' gives outputs that the other never does, for {claim} claimed"
        return math.inf, text.replace("eps=", "")
    p = max(
        min(moved / 2, 1.0) if family.name == BOUNDED else -math.expm1(-moved)
        for moved, family in zip(in_scales, families, strict=True)
        if family.name in (ONE_SIDED, BOUNDED)
    )
    if p <= claim.largest_probability(0.0) * (1 + NEARLY_EQUAL):
        return None
    text = f"one of D and D' gives outputs with probability {format_number(p)} that the other"
    return claim.shown_by(p, 0.0), f"{text} never does, for {claim} claimed"


def _more_than_claimed(value: float, claim: Guarantee) -> tuple[float, str] | None:
    if value <= claim.claimed * (1 + NEARLY_EQUAL):
        return None
    if math.isinf(value):
        return value, f"more than any multiple of {claim} allows"
    shown = claim.at_least(format_number(value))
    of = "" if claim.parameter == "scale" else f" for {format_number(claim.claimed)} claimed"
    return value, f"{shown}{of}"


def _of_laplace(moved: float, claim: Guarantee) -> float:
    """What a Laplace number shows that moves by so many scales: by half-lines and divergences."""
    from scipy.stats import laplace

    at = np.linspace(moved - _FAR_OUT, _FAR_OUT, 401)
    at = at if moved < 2 * _FAR_OUT else np.array([moved / 2])
    shown = float(np.max(claim.shown_by(laplace.sf(at - moved), laplace.sf(at))))
    for order in (divergence.order for divergence in claim.divergences):
        shown = max(shown, claim.shown_by_divergence(order, _laplace_renyi(moved, order)))
    return shown


def _laplace_renyi(moved: float, order: float) -> float:
    """Source: Mironov, "Rényi Differential Privacy", CSF 2017, Proposition 6."""
    if order == 1:
        return moved + math.expm1(-moved)
    logs = (
        math.log(order / (2 * order - 1)) + (order - 1) * moved,
        math.log((order - 1) / (2 * order - 1)) - order * moved,
    )
    return float(np.logaddexp(*logs)) / (order - 1)


def _gaussian(mu: float, claim: Guarantee) -> tuple[float, str] | None:
    """Source: Dong, Roth, Su, "Gaussian Differential Privacy", 2022, Corollary 2.13."""
    claimed = format_number(claim.claimed)
    if claim.parameter in ("rho", "mu"):
        value = mu if claim.parameter == "mu" else mu**2 / 2
        if value <= claim.claimed * (1 + NEARLY_EQUAL):
            return None
        return value, f"{claim.parameter} = {format_number(value)} for {claimed} claimed"
    if not mu:
        return None
    if claim.parameter == "eps":
        if not claim.delta:
            text = f"Gaussian noise keeps no eps without a delta, and {claimed} is claimed"
            return math.inf, text
        delta = GaussianDP(mu).delta_at(claim.claimed)
        if delta <= claim.delta * (1 + NEARLY_EQUAL):
            return None
        text = f"delta = {delta:.2g} at eps = {claimed} for {claim.delta:g} claimed"
        return claim.claimed, text
    from scipy.special import ndtr

    # The half-lines are the events that show the most; further out, floats do not hold both sides.
    at = np.linspace(-_FAR, max(_FAR - mu, -_FAR), 201)
    shown = float(np.max(claim.shown_by(ndtr(at + mu), ndtr(at))))
    for order in (divergence.order for divergence in claim.divergences):
        shown = max(shown, claim.shown_by_divergence(order, order * mu * mu / 2))
    return _more_than_claimed(shown, claim)
