"""Mechanisms that lose exactly what they claim, one for each kind of claim, and what is worse.

Outputs are few, and those on D and on D' are of the same uniform number, or of the same Gaussian
noise, where random numbers are shared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import brentq

from pytest_dp import RenyiDP, TradeOff
from pytest_dp.privacy import Guarantee, ZeroConcentratedDP
from pytest_dp.privacy.regions import concentration, renyi
from pytest_dp.privacy.stated import read_guarantee

Law = tuple[np.ndarray, np.ndarray]
"""Probabilities of outputs on D and on D'."""
MU, DELTA, COIN = 0.5, 0.05, 0.3


def response(eps: float, delta: float) -> Law:
    """Randomised response that tells for certain, with probability delta, which input it got."""
    lie = (1 - delta) / (1 + math.exp(eps))
    p = np.array([0, lie, 1 - lie - delta, delta])
    return p, p[::-1]


def coins(order: float, bound: float) -> Law:
    """Two coins, the larger of whose divergences of that order is the bound."""

    return _two_coins(lambda p, q: float(renyi(p, q, order)), bound)


def _two_coins(divergence: Callable[[float, float], float], bound: float) -> Law:
    def excess(p: float) -> float:
        return max(divergence(p, COIN), divergence(COIN, p), divergence(1 - COIN, 1 - p)) - bound

    p = brentq(excess, COIN + 1e-6, 1 - 1e-9, xtol=1e-13)
    return np.array([1 - p, p]), np.array([1 - COIN, COIN])


def leaky(law: Law, delta: float) -> Law:
    """The same, but for outputs of probability delta that tell for certain which input it was."""
    p, q = ((1 - delta) * side for side in law)
    return np.array([0, *p, delta]), np.array([delta, *q, 0])


def concentrated(rho: float, delta: float) -> Law:
    """Two coins that use up rho beside delta, and leak with that probability."""
    return leaky(_two_coins(lambda p, q: float(concentration(p, q)), rho), delta)


@cache
def envelope(rho: float) -> Law:
    """Laws that use up all that rho allows any event (and have more divergence than it allows)."""
    tail = np.geomspace(1e-12, 1e-3, 200)
    q = np.unique(np.concatenate([[0.0], tail, np.linspace(1e-3, 1, 1_000)]))
    p = np.minimum(ZeroConcentratedDP(rho).largest_probability(q), 1.0)
    p[0] = 0.0
    return np.diff(p), np.diff(q)


def drawn(which: int, law: Law, rng: np.random.Generator, size: int) -> np.ndarray:
    """Numbers of outputs: by the first law, or, for 0, by the second one."""
    cumulative = np.cumsum(law[0 if which else 1])
    return np.minimum(np.searchsorted(cumulative, rng.random(size)), len(cumulative) - 1)


def gaussian(which: int, law: float, rng: np.random.Generator, size: int) -> np.ndarray:
    """Noise such that inputs are so many standard deviations apart."""
    return which * law + rng.normal(size=size)


RHO = ZeroConcentratedDP(MU**2 / 2)


def allowed_by_rho(x: float) -> float:
    """The trade-off function of all that rho = 0.125 allows any event."""
    return 1 - float(RHO.largest_probability(x))


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of claim.

    Attributes
    ----------
    claim : dict
        Keywords.
    at, above : Law or float
        What attains the claim, and what breaks it.
    mechanism : callable
    """

    claim: dict[str, Any]
    at: Any
    above: Any
    mechanism: Callable[..., np.ndarray] = drawn

    def true(self, law: Any) -> float:
        """The claim's parameter that a law needs."""
        if self.mechanism is gaussian:
            return law if "mu" in self.claim else law**2 / 2
        return shown_by_tails(read_guarantee(self.claim), law)


def shown_by_tails(claim: Guarantee, law: Law) -> float:
    """The most that any event shows, if the ratio of probabilities rises or falls with outputs."""
    p, q = (np.concatenate([np.cumsum(side)[:-1], np.cumsum(side[::-1])[:-1]]) for side in law)
    most, least = (
        np.clip(side * (1 + sign * ROUNDING), 0.0, 1.0)
        for side, sign in ((np.stack([q, p]), 1), (np.stack([p, q]), -1))
    )
    return float(np.max(claim.shown_by(least, most)))


ROUNDING = 1e-12
"""Of cumulative probabilities, which are nothing but rounding where a side has none."""
MORE = 1.5
"""How many times too small noise is, where it is Gaussian."""
KINDS = {
    "eps": Kind({"eps": 1.0}, response(1.0, 0.0), response(1.5, 0.0)),
    "eps, delta": Kind({"eps": 1.0, "delta": DELTA}, response(1.0, DELTA), response(1.5, DELTA)),
    "delta": Kind({"eps": 0.0, "delta": DELTA}, response(0.0, DELTA), response(0.3, DELTA)),
    "mu": Kind({"mu": MU}, MU, MORE * MU, gaussian),
    "rho": Kind({"rho": MU**2 / 2}, MU, MORE * MU, gaussian),
    "rho, delta": Kind(
        {"rho": 0.1, "delta": DELTA}, concentrated(0.1, DELTA), concentrated(0.25, DELTA)
    ),
    "rdp of order 2": Kind({"guarantee": RenyiDP({2: 0.2})}, coins(2, 0.2), coins(2, 0.45)),
    "rdp of order 8": Kind({"guarantee": RenyiDP({8: 0.4})}, coins(8, 0.4), coins(8, 0.9)),
    "tradeoff": Kind(
        {"guarantee": TradeOff(allowed_by_rho)}, envelope(MU**2 / 2), envelope((MORE * MU) ** 2 / 2)
    ),
}
