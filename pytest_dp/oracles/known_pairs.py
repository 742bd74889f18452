"""What is known of the outputs on a pair of inputs without a sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from pytest_dp.basics.arrays import Floats, Outputs
from pytest_dp.betting.binning import Binning
from pytest_dp.oracles.aligned_pair import AlignedPair
from pytest_dp.privacy import Guarantee
from pytest_dp.results.outcome import Mode
from pytest_dp.running.stand_ins import CannotInstrument

ROUNDING = 1e-9
"""Relative error after a few operations. Larger: other numbers count as equal; smaller: rounding
makes a difference."""

Excess = tuple[float, tuple[float, float], float, Binning | None]
"""ε, the probabilities of a set of outputs on D and D', by what they exceed the claim, and the set;
None where it has no binning."""


class KnownPair(Protocol):
    """The loss between the outputs on D and on D', as far as it is known.

    What is derived may be wrong, as of code that treats numbers differently that are traced. So it
    is held against outputs of real runs before anybody is told.
    """

    @property
    def mode(self) -> Mode: ...

    @property
    def basis(self) -> str:
        """What it rests on, in words."""
        ...

    @property
    def mu(self) -> float | None:
        """Of outputs that are no easier to tell apart than two Gaussians at this distance."""
        ...

    @property
    def checked(self) -> int:
        """How many real outputs it can be held against at most."""
        ...

    @property
    def by_rounding(self) -> bool:
        """Whether outputs are counted as different that differ by rounding alone.

        Such as 0.3 and 0.1 + 0.2: the true loss may be smaller.
        """
        ...

    def eps_at(self, delta: float) -> tuple[float, float]:
        """The smallest ε in nats with which the pair is (ε, δ)-private, and its error.

        Raises CannotInstrument where it does not follow.
        """
        ...

    def delta_at(self, eps: float) -> tuple[float, float]:
        """Bounds on the smallest δ."""
        ...

    def excesses(self, guarantee: Guarantee) -> Iterator[Excess]:
        """Sets of outputs that break a claim."""
        ...

    def evidence_against(self, side: int, outputs: Outputs) -> float:
        """The logarithm of an e-value against it, by independent runs on one input.

        Raises CannotInstrument where outputs cannot be compared.
        """
        ...


def parameter_of(known: KnownPair, guarantee: Guarantee) -> tuple[float, float]:
    """The parameter of a guarantee on a pair, and its error; CannotInstrument if unknown."""
    if isinstance(known, AlignedPair):
        return known.parameter_of(guarantee), 0.0
    if guarantee.parameter == "eps":
        value, error = known.eps_at(guarantee.delta)
        if guarantee.delta and value > guarantee.claimed:  # a leak of delta may round to more
            value, error = known.eps_at(guarantee.delta * (1 + ROUNDING))
        return value, error
    if known.mu is None or guarantee.delta or guarantee.parameter not in {"mu", "rho"}:
        raise CannotInstrument(f"a claim of {guarantee.parameter}")
    value = known.mu if guarantee.parameter == "mu" else known.mu**2 / 2
    return value, 1e-11 * value


def differ_by_rounding(numbers: Floats) -> bool:
    """Whether any two of the numbers are equal but for errors of floating point."""
    ordered = np.unique(numbers[np.isfinite(numbers)])
    if not len(ordered) or (ordered % 1 == 0).all():
        return False
    return bool((np.diff(ordered) <= ROUNDING * np.abs(ordered).max()).any())


def larger(bounds: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Bounds on the largest of several numbers."""
    return max(lower for lower, _ in bounds), max(upper for _, upper in bounds)
