"""Bounds on the loss between the laws of draws z and of z + s."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.oracles.handing_out import NO_GAP, AnsweredRequest, Gap, Shift
from pytest_dp.privacy import Guarantee, RenyiDP
from pytest_dp.privacy.concentrated import GaussianDP
from pytest_dp.privacy.conversions import pure_to_gdp, pure_to_zcdp
from pytest_dp.privacy.guarantees import LARGEST_EPS
from pytest_dp.running.generator_stand_ins import CannotInstrument
from pytest_dp.running.laws import (
    EXPONENTIAL,
    GEOMETRIC,
    GUMBEL,
    LAPLACE,
    LOGISTIC,
    NORMAL,
    Law,
)

TWO_SIDED = (LAPLACE, LOGISTIC)
"""Laws whose log density falls with slope 1 at most: a shift of s loses |s| over the scale."""
UPWARDS = (EXPONENTIAL, GUMBEL, GEOMETRIC)
"""Laws that lose s over the scale by a shift of s upwards, and without bound by one downwards."""
WHOLE = 1e-9
"""How far a shift of whole numbers may be from whole ones, as a least-squares solution is."""


@dataclass(frozen=True, slots=True)
class LossBound:
    """An upper bound on the loss between the outputs on two inputs, in both directions."""

    pure: float
    """In nats, by draws whose log density is Lipschitz."""
    mu: float
    """By Gaussian draws: the norm of their shift over their standard deviations."""
    rare: float = 0.0
    """Probability of outputs that only one of the inputs can have."""
    varies: bool = False
    """Whether the shift differs between paths of the mechanism."""
    replay: Any = field(default=None, repr=False, compare=False)
    """What identifies the replay in which the loss is largest, if one is known."""

    def eps_at(self, delta: float) -> float:
        """Return an ε in nats with which the pair is (ε, δ)-private; infinite if there is none."""
        left = delta - self.rare
        if left < 0 or (left == 0 and self.mu > 0):
            return math.inf
        return self.pure + (GaussianDP(self.mu).eps_at(min(left, 1 - 1e-16)) if self.mu else 0.0)

    def delta_at(self, eps: float) -> float:
        """Return a δ with which the pair is (ε, δ)-private."""
        if eps < self.pure:
            return 1.0
        gaussian = GaussianDP(self.mu).delta_at(eps - self.pure) if self.mu else 0.0
        return min(self.rare + gaussian, 1.0)

    def parameter_of(self, guarantee: Guarantee) -> float:
        """Return a bound on the parameter of a guarantee; raises CannotInstrument if none is known.

        Rényi divergences and trade-off functions of independent draws compose; where the shift
        depends on the path, draws of the two kinds are not independent given the shift.
        """
        if guarantee.parameter == "eps":
            return self.eps_at(guarantee.delta)
        mixed = self.varies and self.pure and self.mu
        known = isinstance(guarantee, RenyiDP) or guarantee.parameter in ("mu", "rho")
        if self.rare or mixed or guarantee.delta or not known:
            raise CannotInstrument(f"no bound on {guarantee.parameter} follows from the alignment")
        if isinstance(guarantee, RenyiDP):
            return max(self._renyi(order) / unit for order, unit in guarantee.units)
        if guarantee.parameter == "mu":
            return math.hypot(_convert_pure(pure_to_gdp, self.pure), self.mu)
        return _convert_pure(pure_to_zcdp, self.pure) + self.mu**2 / 2

    def _renyi(self, order: float) -> float:
        """Return a bound on the Rényi divergence of an order."""
        pure = _convert_pure(pure_to_zcdp, self.pure)
        return min(self.pure, order * pure) + order * self.mu**2 / 2


def _convert_pure(convert: Callable[[float], float], pure: float) -> float:
    """Return a pure loss in another parameter; infinite where it is larger than any claim."""
    if not pure:
        return 0.0
    return convert(pure) if pure <= LARGEST_EPS else math.inf


def largest(bounds: Sequence[LossBound]) -> LossBound:
    """Return a bound that holds for all of several pairs."""
    return LossBound(
        max(bound.pure for bound in bounds),
        max(bound.mu for bound in bounds),
        max(bound.rare for bound in bounds),
        any(bound.varies for bound in bounds),
        max(bounds, key=lambda bound: bound.pure + bound.mu).replay,
    )


def loss_of_shift(
    drawn: Sequence[AnsweredRequest], shift: Shift, gaps: tuple[Gap, Gap] = (NO_GAP, NO_GAP)
) -> LossBound:
    """Return the loss between the laws of draws and of the draws after a shift.

    Draws that only one input asks for do not move.
    """
    pure, squares = 0.0, 0.0
    for each in drawn:
        moved = shift.get(each.number)
        if moved is None or each.number in gaps[1].requests or not moved.any():
            continue
        if each.law is None or len(moved) != each.count:
            return LossBound(math.inf, 0.0)
        if gaps[1].elements.get(each.number):
            moved = np.array(moved)
            moved[list(gaps[1].elements[each.number])] = 0.0
        if gaps[0].elements.get(each.number):
            moved = np.delete(moved, gaps[0].elements[each.number])
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(moved == 0, 0.0, moved / each.scale)
        if each.law.family is NORMAL:
            squares += float(np.square(steps).sum())
        else:
            pure += _pure_loss(each.law, steps)
    return LossBound(pure, math.sqrt(squares))


def _pure_loss(law: Law, steps: Floats) -> float:
    if law.lattice and np.abs(steps - np.round(steps)).max() > WHOLE:
        return math.inf
    if law.family in TWO_SIDED:
        return float(np.abs(steps).sum())
    if law.family in UPWARDS and (steps >= 0).all():
        each = -math.log(law.parameter) if law.family is GEOMETRIC and law.parameter else 1.0
        return (
            math.inf if law.family is GEOMETRIC and not law.parameter else each * float(steps.sum())
        )
    return math.inf


def cost_per_step(law: Law) -> tuple[float, float]:
    """Return what a shift of one scale costs upwards and downwards, to choose between shifts."""
    if law.family in (*TWO_SIDED, NORMAL):
        return 1.0, 1.0
    if law.family in UPWARDS:
        each = -math.log(law.parameter) if law.family is GEOMETRIC and law.parameter else 1.0
        return each, math.inf
    return math.inf, math.inf
