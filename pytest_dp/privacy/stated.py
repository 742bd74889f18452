"""Guarantees from keywords of a claim, checked, and conversions from one notion to another.

Conversions are the tightest known, rounded to the sound side: deltas, divergences and noise up,
trade-off functions down. Losses are in nats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from numbers import Real
from statistics import NormalDist
from typing import Any

from pytest_dp.basics.bisection import bracket
from pytest_dp.basics.errors import ClaimError, invalid
from pytest_dp.privacy.approximate import ApproximateDP, AttackAUC, PrivacyProfile, TradeOff
from pytest_dp.privacy.concentrated import GaussianDP, RenyiDP, ZeroConcentratedDP
from pytest_dp.privacy.guarantees import LARGEST_EPS, Guarantee

TOLERANCE = 1e-9
"""Error of a user's function, in its own unit. Larger: impossible functions pass; smaller: rounding
refuses right ones."""

NOTIONS = ("eps", "rho", "mu", "guarantee")
"""Keywords of which a claim has one."""
STATED = (*NOTIONS, "auc")
"""Keywords of a guarantee, with `auc` of claims about membership."""
_MAX_PARAMETERS = {"eps": LARGEST_EPS, "rho": LARGEST_EPS, "mu": 24.0}
"""The largest value of each parameter that promises anything, within what floats hold."""


def read_guarantee(keywords: Mapping[str, Any]) -> Guarantee:
    """Return the guarantee that keywords of a claim state.

    Keywords of no notion, and those that are None, are ignored. Raises ClaimError for no notion,
    for several, for delta beside another one than eps or rho, for values of a wrong type, and for a
    guarantee that no mechanism keeps or every mechanism keeps.
    """
    stated = {name: value for name, value in keywords.items() if value is not None}
    notions = [name for name in STATED if name in stated]
    if len(notions) > 1:
        raise ClaimError(
            f"A claim was given {' and '.join(f'{name}=' for name in notions)}: several claims. "
            f"Allowed: one of {_join_names(NOTIONS)}. Write one @dp_claim for each."
        )
    if not notions:
        beside = f"delta={stated['delta']!r} without eps=" if "delta" in stated else "none of them"
        raise ClaimError(
            f"A claim needs one of {_join_names(NOTIONS)}, and was given {beside}: for example "
            "@dp_claim(eps=1.0), or @dp_claim(eps=1.0, delta=1e-6)."
        )
    notion = notions[0]
    if "delta" in stated and notion not in ("eps", "rho"):
        raise ClaimError(
            f"delta={stated['delta']!r} was given beside {notion}=. Allowed: delta beside eps or "
            f"rho. Write eps= and delta=, or {notion}= alone."
        )
    return _READERS[notion](stated[notion], stated.get("delta", 0.0))


def _join_names(names: tuple[str, ...]) -> str:
    """Return keywords as a list in a sentence."""
    return ", ".join(f"{name}=" for name in names[:-1]) + f" and {names[-1]}="


def _is_number(value: object) -> bool:
    """Return whether an object is a real number, and no Boolean."""
    return isinstance(value, Real) and not isinstance(value, bool)


def of_group(read: Guarantee, k: int) -> Guarantee:
    """Return the guarantee for inputs that differ in k units.

    Raises
    ------
    ClaimError
        If there is no rule for this notion, or nothing is left to promise.
    """
    grouped = read.group(k)
    limit = _MAX_PARAMETERS.get(read.parameter, math.inf)
    if k > 1 and grouped.claimed > limit:
        raise ClaimError(
            f"group={k} of {read} promises nothing: {grouped}. Allowed: {read.parameter} at most "
            f"{limit:g}, by then. Write a smaller group, or a claim for groups of that size."
        )
    return grouped


def _read_eps(eps: Any, delta: Any) -> Guarantee:
    """Return the guarantee of eps= and delta=; raise ClaimError for values out of range."""
    delta = _read_delta(delta)
    if _is_number(eps) and eps == 0 and delta > 0:
        return ApproximateDP(0.0, delta)
    return ApproximateDP(_read_positive("eps", eps, "1.0", LARGEST_EPS), delta)


def _read_delta(delta: Any) -> float:
    """Return delta as a float; raise ClaimError unless it is from 0 to below 1."""
    if not _is_number(delta) or not 0 <= delta < 1:
        raise invalid("delta", delta, "Allowed: a number from 0 to below 1, such as 1e-6.")
    return float(delta)


def _read_positive(name: str, value: Any, example: str, limit: float) -> float:
    """Return a parameter as a float; raise ClaimError unless above 0 and at most `limit`."""
    if not _is_number(value) or not 0 < value <= limit:
        unit = ", in nats" if name == "eps" else ""
        zero = " Beside delta > 0, eps may be 0." if name == "eps" and value == 0 else ""
        allowed = (
            f"Allowed: a finite number above 0{unit}, such as {example}, and at most {limit:g}: "
            f"a larger one promises nothing.{zero}"
        )
        raise invalid(name, value, allowed)
    return float(value)


def _read_auc(auc: Any, _: Any) -> Guarantee:
    """Return the guarantee of auc=; raise ClaimError unless it is between 0.5 and 1."""
    if not _is_number(auc) or not 0.5 < auc < 1:
        allowed = "a number above 0.5, as of a coin, and below 1, which every attack keeps"
        raise invalid("auc", auc, f"Allowed: {allowed}, such as 0.6.")
    return AttackAUC(float(auc))


def _read_value(value: Any, _: Any) -> Guarantee:
    """Return the guarantee of guarantee=, checked if its class is known; may raise ClaimError."""
    if not isinstance(value, Guarantee) or type(value) in _BY_NUMBER:
        number = f" Write eps={value!r}." if _is_number(value) else ""
        raise invalid(
            "guarantee",
            value,
            "Allowed: RenyiDP({8: 0.5}), PrivacyProfile(f) or TradeOff(g), from pytest_dp; "
            f"what is one number has a keyword of its own: eps=, rho= or mu=.{number}",
        )
    if not isinstance(value, RenyiDP | PrivacyProfile | TradeOff):
        return value
    if not isinstance(value.name, str):
        raise invalid("name", value.name, "Allowed: text, such as name='PLD(sigma=1, q=.25)'.")
    if value.scale != 1:
        raise invalid("scale", value.scale, "Allowed: 1. Change what is promised in its place.")
    return next(read for kind, read in _VALUES.items() if isinstance(value, kind))(value)


def _check_renyi(given: RenyiDP) -> Guarantee:
    """Return Rényi privacy with its orders sorted; raise ClaimError for invalid orders."""
    allowed = (
        "Allowed: an order with its eps, RenyiDP({8: 0.5}), or several, {2: 0.1, 8: 0.5}; "
        "orders are finite and above 1, each eps finite and above 0, and one of them at most "
        f"{LARGEST_EPS:g}."
    )
    try:
        orders = dict(given.orders)
    except (TypeError, ValueError):
        raise invalid("orders", given.orders, allowed) from None
    if not orders or not all(map(_is_number, (*orders, *orders.values()))):
        raise invalid("orders", orders, allowed)
    for order, eps in orders.items():
        if not 1 < order < math.inf or not 0 < eps < math.inf:
            more = " Infinite order is pure privacy: write eps=." if order == math.inf else ""
            more = " Order 1 alone cannot be claimed." if order == 1 else more
            raise invalid("orders", orders, allowed + more)
    if min(orders.values()) > LARGEST_EPS:
        raise invalid("orders", orders, allowed)
    pairs = tuple(sorted((float(order), float(eps)) for order, eps in orders.items()))
    return replace(given, orders=pairs)


def _check_profile(profile: PrivacyProfile) -> Guarantee:
    """Return a profile; raise ClaimError if its function raises, or no mechanism has it.

    Both directions are taken together. A function is a profile exactly if it lies in [0, 1], falls,
    is convex in e^eps, and falls at 0 by at most (1 - delta)/2 for each unit of e^eps: if it is
    nowhere above the bounds by its own hockey sticks (Zhu, Dong, Wang, "Optimal Accounting of
    Differential Privacy via Characteristic Function", AISTATS 2022, for one direction). Up to 1 %
    more is accepted.
    """
    from pytest_dp.privacy.regions import Region

    eps, delta = _call_user_function(profile, lambda: profile.sticks)
    points = list(zip(eps.tolist(), delta.tolist(), strict=True))
    _check_probabilities(profile, "eps", points)
    region = Region.of_sticks(eps, delta)
    for at, value in points:
        implied = region.delta_at(at)
        if value > implied * 1.01 + TOLERANCE:
            raise ClaimError(
                f"{profile!r} cannot belong to a mechanism: at eps={at:.6g} it is {value:.6g}, "
                f"where its other values imply {implied:.6g}. Allowed: a function that is convex "
                "in e^eps, and falls at eps=0 by at most (1 - delta)/2 for each unit of e^eps. "
                "For one pair of them, write eps= and delta=."
            )
    return profile


def _check_tradeoff(tradeoff: TradeOff) -> Guarantee:
    """Return a trade-off function; raise ClaimError if it raises, or no mechanism has it."""
    from pytest_dp.privacy.regions import quantile_grid

    asked = quantile_grid()
    values = _call_user_function(tradeoff, lambda: [float(tradeoff.function(x)) for x in asked])
    points = list(zip(asked, values, strict=True))
    _check_probabilities(tradeoff, "x", points)
    for x, y in points:
        if y > 1 - x + TOLERANCE:
            raise ClaimError(
                f"{tradeoff!r} is {y:.6g} at x={x:.6g}, above 1 - x. Allowed: at most 1 - x, the "
                "error of a coin that ignores the output. Write the smallest type II error of "
                "tests with type I error x."
            )
    for ((x, y), (at, value)), (_, (later, after)) in pairwise(pairwise(points)):
        chord = y + (after - y) * (at - x) / (later - x)
        if value > chord + TOLERANCE:
            raise ClaimError(
                f"{tradeoff!r} is not convex: it is {value:.6g} at x={at:.6g}, above the line from "
                f"{y:.6g} at {x:.6g} to {after:.6g} at {later:.6g}. Allowed: a convex function "
                "that falls, such as lambda x: max(0, 0.9 - x)."
            )
    return tradeoff


def _call_user_function(given: Guarantee, values: Callable[[], Any]) -> Any:
    """Return ``values()``; raise ClaimError in place of an exception of a user's function."""
    try:
        return values()
    except Exception as error:
        raise ClaimError(
            f"{given!r} raised {type(error).__name__}: {error}. Allowed: a function that takes one "
            "number and returns one from 0 to 1."
        ) from error


def _check_probabilities(given: Guarantee, of: str, points: list[tuple[float, float]]) -> None:
    """Raise ClaimError if some value of a function is outside of [0, 1]."""
    for at, value in points:
        if not 0 <= value <= 1:
            raise ClaimError(
                f"{given!r} leaves [0, 1]: it is {value!r} at {of}={at:.6g}. "
                "Allowed: probabilities. Write min(1, max(0, ...)) if only rounding is to blame."
            )


_READERS: Mapping[str, Callable[[Any, Any], Guarantee]] = {
    "eps": _read_eps,
    "rho": lambda rho, delta: ZeroConcentratedDP(
        _read_positive("rho", rho, "0.5", LARGEST_EPS), delta=_read_delta(delta)
    ),
    "mu": lambda mu, _: GaussianDP(_read_positive("mu", mu, "1.0", _MAX_PARAMETERS["mu"])),
    "guarantee": _read_value,
    "auc": _read_auc,
}
_BY_NUMBER = (ApproximateDP, ZeroConcentratedDP, GaussianDP)
_VALUES: Mapping[type, Callable[[Any], Guarantee]] = {
    RenyiDP: _check_renyi,
    PrivacyProfile: _check_profile,
    TradeOff: _check_tradeoff,
}


def zcdp_to_delta(rho: float, eps: float) -> float:
    """Return the delta beside eps that follows from rho-zCDP.

    The bound of all orders at once, in both directions, for two coins: by data processing it holds
    for any event (as Asoodeh, Liao, Calmon, Kosut, Sankar, "A Better Bound Gives a Hundred Rounds",
    ISIT 2020, for one order). Never above Proposition 12 of Canonne, Kamath, Steinke, NeurIPS 2020,
    and equal to it for tiny delta. Raises ClaimError for values out of range.

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
    return read_guarantee({"rho": rho}).delta_at(_check_eps(eps))


def zcdp_to_eps(rho: float, delta: float) -> float:
    """Return the eps at a delta of rho-zCDP, by `zcdp_to_delta`; infinite if there is none."""
    return read_guarantee({"rho": rho}).eps_at(_check_delta(delta))


def rdp_to_delta(orders: Mapping[float, float], eps: float) -> float:
    """Return the delta beside eps that follows from Rényi privacy.

    The bound of all given orders at once, in both directions, for two coins: Asoodeh, Liao, Calmon,
    Kosut, Sankar, "A Better Bound Gives a Hundred Rounds", ISIT 2020. Never above the best order by
    `renyi_to_delta`. Raises ClaimError for values out of range.

    Parameters
    ----------
    orders : dict
        The eps of each order above 1.
    eps : float
        At least 0.
    """
    return read_guarantee({"guarantee": RenyiDP(orders)}).delta_at(_check_eps(eps))


def rdp_to_eps(orders: Mapping[float, float], delta: float) -> float:
    """Return the eps at a delta of Rényi privacy, by `rdp_to_delta`; infinite if there is none."""
    return read_guarantee({"guarantee": RenyiDP(orders)}).eps_at(_check_delta(delta))


def gdp_to_delta(mu: float, eps: float) -> float:
    """Return the delta beside eps that follows from mu-Gaussian privacy, which is exact.

    Balle, Wang, "Improving the Gaussian Mechanism for Differential Privacy", ICML 2018, Theorem 5.
    A Gaussian mechanism has ``mu = sensitivity / sigma``. Raises ClaimError if out of range.
    """
    return read_guarantee({"mu": mu}).delta_at(_check_eps(eps))


def gdp_to_eps(mu: float, delta: float) -> float:
    """Return the eps at a delta of mu-Gaussian privacy, by `gdp_to_delta`; infinite for none."""
    return read_guarantee({"mu": mu}).eps_at(_check_delta(delta))


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

    It is the rho of randomised response, with its largest divergence per order at order 1, below
    the ``eps**2 / 2`` of Bun, Steinke, TCC 2016 (Proposition 3.3). Raises ClaimError for eps <= 0.
    """
    return read_guarantee({"eps": eps}).renyi_at(1.0)


def pure_to_gdp(eps: float) -> float:
    """Return the exact mu that follows from pure eps: ``-2 * PhiInverse(1 / (1 + e**eps))``.

    The convex trade-off function of the Gaussian passes through the one corner of that of
    randomised response. Raises ClaimError for eps <= 0.
    """
    read_guarantee({"eps": eps})
    rare = math.exp(-eps) / (1 + math.exp(-eps))
    return -2 * NormalDist().inv_cdf(rare) * (1 + 1e-14) + 1e-15


def _check_eps(eps: float) -> float:
    """Return eps as a float; raise ClaimError unless it is from 0 to ``2 * LARGEST_EPS``."""
    if not 0 <= eps <= 2 * LARGEST_EPS:
        raise ClaimError(f"Invalid eps={eps!r}. Allowed: from 0 to {2 * LARGEST_EPS:g}, in nats.")
    return float(eps)


def _check_delta(delta: float) -> float:
    """Return delta as a float; raise ClaimError unless it is from 0 to below 1."""
    if not 0 <= delta < 1:
        raise ClaimError(f"Invalid delta={delta!r}. Allowed: from 0 to below 1, such as 1e-6.")
    return float(delta)
