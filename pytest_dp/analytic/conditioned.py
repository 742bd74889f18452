"""Probabilities of ways on which draws were compared, as in the sparse vector technique.

Every condition is on one draw that is in all of them, such as the noise of a threshold, and at
most one more. Given the shared draw, the others are independent: what is left is an integral over
it of a product of distribution functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from pytest_dp.analytic.integrals import log_integral
from pytest_dp.analytic.laws import Law
from pytest_dp.analytic.trace import EVERYWHERE, Interval
from pytest_dp.arrays import Floats
from pytest_dp.randomness.stand_ins import CannotInstrument

KINKS = {"laplace": (0.0,), "uniform": (0.0, 1.0), "exponential": (0.0,)}
"""Where densities are not smooth, in standard units."""
SMOOTH = (-12.0, -4.0, -1.5, 0.0, 1.5, 4.0, 12.0)
"""Where the others change most."""


@dataclass(frozen=True, slots=True)
class Bound:
    """That ``factor * draw + slope * shared + constant`` is above 0."""

    factor: float
    slope: float
    constant: float


@dataclass(slots=True)
class Leaf:
    """A draw with bounds by the shared one."""

    law: Law
    allowed: tuple[Interval, ...]
    bounds: list[Bound] = field(default_factory=list)

    def log_probability(self, shared: Floats) -> Floats:
        """Of all of its bounds, for values of the shared draw."""
        low = np.full(shared.shape, -np.inf)
        high = np.full(shared.shape, np.inf)
        for bound in self.bounds:
            at = -(bound.slope * shared + bound.constant) / bound.factor
            if bound.factor > 0:
                low = np.maximum(low, at)
            else:
                high = np.minimum(high, at)
        logs = [
            self.law.log_between(np.maximum(low, left), np.minimum(high, right))
            for left, right in self.allowed
        ]
        found: Floats = np.logaddexp.reduce(logs) if len(logs) > 1 else logs[0]
        return found

    def marks(self) -> list[float]:
        """Values of the shared draw where its probability is not smooth, or changes most."""
        points = [*KINKS.get(self.law.family, SMOOTH)]
        points += [edge for interval in self.allowed for edge in interval if math.isfinite(edge)]
        marks = [
            -(bound.factor * point + bound.constant) / bound.slope
            for bound in self.bounds
            for point in points
            if bound.slope
        ]
        for one in self.bounds:  # where one takes over from another
            for other in self.bounds:
                slope = one.slope / one.factor - other.slope / other.factor
                if slope:
                    constant = one.constant / one.factor - other.constant / other.factor
                    marks.append(-constant / slope)
        return marks

    @property
    def rate(self) -> float:
        """How fast its probability may change with the shared draw."""
        return max((abs(bound.slope / bound.factor) for bound in self.bounds), default=0.0)


def log_weight(outcome: Any, part: Any, fixed: dict[int, float] | None = None) -> float:
    """The logarithm of the probability of the conditions of a part.

    Parameters
    ----------
    outcome : Outcome
    part : Part
    fixed : dict of int to float, optional
        Draws whose value is given; of these, only whether the value is possible counts.

    Raises
    ------
    CannotInstrument
        If the conditions are not of that kind.
    """
    fixed = fixed or {}
    singles: list[tuple[int, float, float]] = []
    doubles: list[tuple[dict[int, float], float]] = []
    for condition in part.conditions:
        terms = {draw: by for draw, by in condition.terms.items() if draw not in fixed}
        known = [by * fixed[draw] for draw, by in condition.terms.items() if draw in fixed]
        constant = math.fsum([condition.constant, *known])
        if not terms:
            if constant <= 0:
                return -math.inf
        elif len(terms) == 1:
            ((draw, by),) = terms.items()
            singles.append((draw, by, constant))
        else:
            doubles.append((terms, constant))
    leaves = {
        draw: Leaf(outcome.laws[draw], outcome.allowed.get(draw, EVERYWHERE))
        for draw in sorted(part.draws - fixed.keys())
    }
    for draw, by, constant in singles:
        leaves[draw].bounds.append(Bound(by, 0.0, constant))
    total = [_inside(outcome, draw, value) for draw, value in fixed.items()]
    for terms_of in _together(doubles):
        hub = _shared([terms for terms, _ in terms_of])
        star = {draw for terms, _ in terms_of for draw in terms} - {hub}
        for terms, constant in terms_of:
            ((draw, by),) = ((draw, by) for draw, by in terms.items() if draw != hub)
            leaves[draw].bounds.append(Bound(by, terms[hub], constant))
        total.append(_over(leaves.pop(hub), [leaves.pop(draw) for draw in sorted(star)]))
    total += [float(leaf.log_probability(np.zeros(1))[0]) for leaf in leaves.values()]
    return math.fsum(total) if all(each > -math.inf for each in total) else -math.inf


def _inside(outcome: Any, draw: int, value: float) -> float:
    allowed = outcome.allowed.get(draw, EVERYWHERE)
    return 0.0 if any(low < value <= high for low, high in allowed) else -math.inf


def _together(
    conditions: list[tuple[dict[int, float], float]],
) -> list[list[tuple[dict[int, float], float]]]:
    """Conditions that share draws, put together."""
    groups: list[tuple[set[int], list[tuple[dict[int, float], float]]]] = []
    for terms, constant in conditions:
        mine, found = set(terms), [(terms, constant)]
        rest = []
        for draws, members in groups:
            if draws & mine:
                mine |= draws
                found = members + found
            else:
                rest.append((draws, members))
        groups = [*rest, (mine, found)]
    return [members for _, members in groups]


def _shared(conditions: Sequence[dict[int, float]]) -> int:
    """The draw that is in all conditions."""
    common = set.intersection(*map(set, conditions))
    if not common or any(len(terms) > 2 for terms in conditions):
        _refuse("draws are compared with each other in more than one way")
    return min(common)


def _over(hub: Leaf, leaves: list[Leaf]) -> float:
    """The integral over the shared draw, as a logarithm."""
    if any(leaf.law.lattice for leaf in (hub, *leaves)):
        _refuse("draws of whole numbers are compared with each other")
    low, high = hub.law.support
    for bound in hub.bounds:
        at = -bound.constant / bound.factor
        low, high = (max(low, at), high) if bound.factor > 0 else (low, min(high, at))
    marks = [*KINKS.get(hub.law.family, SMOOTH)]
    marks += [mark for leaf in leaves for mark in leaf.marks()]
    rate = 1.0 + math.fsum(leaf.rate for leaf in leaves)
    alike: dict[Any, list[Leaf]] = {}
    for leaf in leaves:
        alike.setdefault((leaf.law, leaf.allowed, tuple(leaf.bounds)), []).append(leaf)

    def log_density(shared: Floats) -> Floats:
        total = hub.law.log_density(shared)
        for same in alike.values():
            total = total + len(same) * same[0].log_probability(shared)
        return total

    logs = []
    for left, right in hub.allowed:
        start, end = max(low, left), min(high, right)
        if start < end:
            logs.append(log_integral(log_density, (start, end), marks, rate))
    return float(np.logaddexp.reduce(logs)) if logs else -math.inf


def _refuse(reason: str) -> NoReturn:
    raise CannotInstrument(reason)
