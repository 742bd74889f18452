"""What breaks a claim on a pair of inputs, if something else than samples is right about it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pytest_dp.attacks.binning import Binning

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


def proposal(
    masses: tuple[float, float], excess: float, eps: float, alpha: float, binning: Binning | None
) -> Proposal:
    """By the probabilities of the set on both inputs, and by what it exceeds the claim."""
    (p, q), factor = masses, math.exp(eps)
    variance = p * (1 - p) + factor**2 * q * (1 - q)
    edge = excess / math.sqrt(max(variance, excess**2))
    return Proposal(edge, int(2 * math.log(1 / alpha) / edge**2) + 1, binning)
