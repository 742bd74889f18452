"""Probabilities of conditions: draws that were compared, as in the sparse vector technique.

Every condition is on one draw that is in all of them, such as the noise of a threshold, and at
most one more. Given the shared draw, the others are independent: what is left is an integral over
it of a product of distribution functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from pytest_dp.arrays import Floats
from pytest_dp.known.outcomes import Outcome, Part, connected
from pytest_dp.known.trace import EVERYWHERE, Condition, Interval
from pytest_dp.limits import POINTS
from pytest_dp.randomness.laws import Law
from pytest_dp.randomness.stand_ins import CannotInstrument

NODES = 16
"""Of Gauss-Legendre on each panel: exponentials that fall by e**8 come out to 15 digits. Derived
from these: more take longer and gain nothing."""
FAR = 40.0
"""Beyond all marks, densities fall at least like exp(-x), so what lies farther out is below 1e-17.
Derived: that is less than rounding."""
FALL = 8.0
"""By how much a logarithm may change on one panel, derived from what `NODES` follow."""


@lru_cache(maxsize=4)
def _rule() -> tuple[Floats, Floats]:
    at, weights = np.polynomial.legendre.leggauss(NODES)
    return at, weights


def log_integral(
    log_function: Callable[[Floats], Floats],
    within: tuple[float, float],
    marks: Sequence[float],
    rate: float,
) -> float:
    """The logarithm of the integral of a positive function, by `NODES` points on each panel.

    `marks` are where the function may have kinks, at least one; beyond them it falls at least like
    exp(-x). Its logarithm changes at most at about `rate`. `within` may be infinite.
    """
    low, high = within
    low = max(low, min(min(marks), high) - FAR)
    high = min(high, max(max(marks), low) + FAR)
    edges = np.unique([low, *(mark for mark in marks if low < mark < high), high])
    widest = max(FALL / rate, (high - low) / POINTS)
    pieces = [
        np.linspace(a, b, max(1, math.ceil((b - a) / widest)) + 1)[:-1] for a, b in pairwise(edges)
    ]
    panels = np.concatenate([*pieces, [high]])
    half = np.diff(panels) / 2
    at, weights = _rule()
    x = (panels[:-1] + half)[:, None] + half[:, None] * at
    values = log_function(x.ravel()) + np.log((half[:, None] * weights).ravel())
    return float(np.logaddexp.reduce(values))


@dataclass(frozen=True, slots=True)
class Bound:
    """That ``factor * draw + slope * shared + constant`` is above 0."""

    factor: float
    slope: float
    constant: float


@dataclass(slots=True)
class BoundedDraw:
    """A draw with bounds that depend on the shared one."""

    law: Law
    allowed: tuple[Interval, ...]
    bounds: list[Bound] = field(default_factory=list)

    def log_probability(self, shared: Floats) -> Floats:
        """That all of its bounds hold, for values of the shared draw."""
        low = np.full(shared.shape, -np.inf)
        high = np.full(shared.shape, np.inf)
        for bound in self.bounds:
            end = -(bound.slope * shared + bound.constant) / bound.factor
            if bound.factor > 0:
                low = np.maximum(low, end)
            else:
                high = np.minimum(high, end)
        logs = [
            self.law.log_between(np.maximum(low, left), np.minimum(high, right))
            for left, right in self.allowed
        ]
        total: Floats = np.logaddexp.reduce(logs) if len(logs) > 1 else logs[0]
        return total

    def marks(self) -> list[float]:
        """Values of the shared draw where the probability is not smooth, or changes fast."""
        points = [*self.law.edges]
        points += [edge for interval in self.allowed for edge in interval if math.isfinite(edge)]
        marks = [
            -(bound.factor * point + bound.constant) / bound.slope
            for bound in self.bounds
            for point in points
            if bound.slope
        ]
        for one, other in combinations(self.bounds, 2):  # where one takes over from the other
            slope = one.slope / one.factor - other.slope / other.factor
            if slope:
                constant = one.constant / one.factor - other.constant / other.factor
                marks.append(-constant / slope)
        return marks

    @property
    def rate(self) -> float:
        """How fast the logarithm of the probability may change with the shared draw."""
        return max((abs(bound.slope / bound.factor) for bound in self.bounds), default=0.0)


def log_total(outcomes: list[Outcome]) -> float:
    """The logarithm of the probability that any of some outcomes comes."""
    if not outcomes:
        return -math.inf
    logs = [
        math.fsum(log_weight(outcome, part) for part in outcome.parts if part.draws)
        for outcome in outcomes
    ]
    return float(np.logaddexp.reduce(logs))


def log_weight_apart(outcome: Outcome) -> float:
    """The logarithm of the probability of conditions on draws that no leaf depends on."""
    return math.fsum(log_weight(outcome, part) for part in outcome.parts if not part.is_random)


def _given(condition: Condition, fixed: dict[int, float]) -> Condition:
    """A condition on the other draws, where some have a known value."""
    terms = {draw: by for draw, by in condition.terms.items() if draw not in fixed}
    known = [by * fixed[draw] for draw, by in condition.terms.items() if draw in fixed]
    return Condition(terms, math.fsum([condition.constant, *known]))


def log_weight(outcome: Outcome, part: Part, fixed: dict[int, float] | None = None) -> float:
    """The logarithm of the probability of the conditions of a part.

    Of draws with a `fixed` value, only whether the value is possible counts. Raises
    CannotInstrument if the conditions have no closed form.
    """
    fixed = fixed or {}
    draws = {
        draw: BoundedDraw(outcome.laws[draw], outcome.allowed.get(draw, EVERYWHERE))
        for draw in sorted(part.draws - fixed.keys())
    }
    several: list[Condition] = []  # conditions on several draws
    for condition in (_given(condition, fixed) for condition in part.conditions):
        if not condition.terms and condition.constant <= 0:
            return -math.inf
        if len(condition.terms) == 1:
            ((draw, by),) = condition.terms.items()
            draws[draw].bounds.append(Bound(by, 0.0, condition.constant))
        elif condition.terms:
            several.append(condition)
    logs = [_log_allowed(outcome, draw, value) for draw, value in fixed.items()]
    for group in connected([condition.terms for condition in several]):
        conditions = [several[number] for number in group]
        hub = _shared_draw(conditions)
        others = set()
        for condition in conditions:
            ((draw, by),) = ((draw, by) for draw, by in condition.terms.items() if draw != hub)
            draws[draw].bounds.append(Bound(by, condition.terms[hub], condition.constant))
            others.add(draw)
        logs.append(_log_integral_over(draws.pop(hub), [draws.pop(d) for d in sorted(others)]))
    logs += [float(draw.log_probability(np.zeros(1))[0]) for draw in draws.values()]
    return math.fsum(logs) if all(log > -math.inf for log in logs) else -math.inf


def _log_allowed(outcome: Outcome, draw: int, value: float) -> float:
    allowed = outcome.allowed.get(draw, EVERYWHERE)
    return 0.0 if any(low < value <= high for low, high in allowed) else -math.inf


def _shared_draw(conditions: Sequence[Condition]) -> int:
    """The draw that is in all conditions."""
    common = set.intersection(*(set(condition.terms) for condition in conditions))
    if not common or any(len(condition.terms) > 2 for condition in conditions):
        raise CannotInstrument("draws are compared with each other in more than one way")
    return min(common)


def _log_integral_over(hub: BoundedDraw, draws: list[BoundedDraw]) -> float:
    """The logarithm of the probability of all bounds, integrated over the shared draw."""
    if any(draw.law.lattice for draw in (hub, *draws)):
        raise CannotInstrument("draws of whole numbers are compared with each other")
    low, high = hub.law.support
    for bound in hub.bounds:
        end = -bound.constant / bound.factor
        low, high = (max(low, end), high) if bound.factor > 0 else (low, min(high, end))
    marks = [*hub.law.edges]
    marks += [mark for draw in draws for mark in draw.marks()]
    rate = 1.0 + math.fsum(draw.rate for draw in draws)
    equal: dict[Any, list[BoundedDraw]] = {}
    for draw in draws:
        equal.setdefault((draw.law, draw.allowed, tuple(draw.bounds)), []).append(draw)

    def log_density(shared: Floats) -> Floats:
        total = hub.law.log_density(shared)
        for group in equal.values():
            total = total + len(group) * group[0].log_probability(shared)
        return total

    logs = []
    for left, right in hub.allowed:
        start, end = max(low, left), min(high, right)
        if start < end:
            logs.append(log_integral(log_density, (start, end), marks, rate))
    return float(np.logaddexp.reduce(logs)) if logs else -math.inf
