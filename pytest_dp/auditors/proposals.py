"""What breaks a claim on a pair of inputs, if something else than samples is right about it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pytest_dp.attacks.binning import Binning
from pytest_dp.sampling.chunks import Input

Known = TypeVar("Known")

MAX_PAIRS = 16
"""Pairs of inputs of a claim that are looked at on paper."""
MIN_REAL, REFUTED = 1_000, math.log(1_000)
"""Real outputs on an input by which what is known on paper is checked: fewer tell little, and more
are seldom kept. And the evidence, of one in so many, that refutes it."""
ABOVE = 1 + 1e-9
"""What rounding may add to a claim that is attained."""
CAUTION = 4.0
"""Times the pairs of outputs that should refute a claim, after which a proposal is not believed."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A set of outputs that breaks the claim, if nothing was overlooked.

    Attributes
    ----------
    edge : float
        Standard deviations of a payoff that it should win, on average.
    needed : int
        Pairs of outputs after which it should have won, about.
    binning : Binning or None
        The set; None if it is left to what is learned.
    """

    edge: float
    needed: int
    binning: Binning | None = None

    def is_open(self, drawn: int) -> bool:
        """Whether it may still win after so many pairs of outputs."""
        return drawn < CAUTION * self.needed


def once_each(make: Callable[[Any], Known]) -> Callable[[Any], Known]:
    """The same function of inputs, called once for equal ones."""
    known: dict[object, Known] = {}

    def of(data: Any) -> Known:
        frozen = Input(data).frozen
        key = id(data) if frozen is None else frozen
        if key not in known:
            known[key] = make(data)
        return known[key]

    return of


def proposal(
    masses: tuple[float, float], excess: float, eps: float, alpha: float, binning: Binning | None
) -> Proposal:
    """By the probabilities of the set on both inputs, and by what it exceeds the claim."""
    (p, q), factor = masses, math.exp(eps)
    variance = p * (1 - p) + factor**2 * q * (1 - q)
    edge = excess / math.sqrt(max(variance, excess**2))
    return Proposal(edge, int(2 * math.log(1 / alpha) / edge**2) + 1, binning)
