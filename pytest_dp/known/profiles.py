"""Privacy profiles: the hockey-stick divergence δ(ε) of two inputs, between two bounds.

The upper bound takes the largest loss in each cell, and rounds it up; the lower one merges each
cell to one output, and rounds down. So the truth lies between, but for rounding of floats.

Source: Koskela, Jälkö, Honkela, "Computing tight differential privacy guarantees using FFT", 2020.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from pytest_dp.arrays import Floats
from pytest_dp.known.comparing import Case
from pytest_dp.known.experiments import Cells, Experiment, Moved
from pytest_dp.limits import EQUAL, MANY, NEGLIGIBLE, STEPS
from pytest_dp.privacy.concentrated import GaussianDP
from pytest_dp.randomness.laws import NORMAL, Law

MAX_EPS = 500.0
"""In nats; a larger ε is taken for infinite. Derived: exp(500) is near the largest float."""


@dataclass(frozen=True, slots=True)
class Losses:
    """A distribution of losses under P; what is missing from 1 is below all of them."""

    p: Floats
    loss: Floats
    """In nats, in any order, one for each of `p`; may be infinite."""

    def delta(self, eps: float) -> float:
        """The expectation of ``1 - exp(eps - loss)``, where that is positive."""
        with np.errstate(over="ignore"):
            return float(np.sum(self.p * -np.expm1(np.minimum(eps - self.loss, 0.0))))

    def masses(self, eps: float) -> tuple[float, float]:
        """The probabilities of losses beyond eps, under P and under Q."""
        p, loss = self.p[self.loss > eps], self.loss[self.loss > eps]
        return float(p.sum()), float((p * np.exp(-loss)).sum())


NO_LOSSES = Losses(np.ones(1), np.zeros(1))
"""Of outputs that tell nothing."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Outputs of one kind."""

    weight: float
    """Their probability under P."""
    loss: float
    """The loss of the event that an output is of this kind."""
    uncut: float = 0.0
    """The largest loss of experiments that are not in `lower` and `upper`."""
    lower: Losses = NO_LOSSES
    """Of the other experiments, merged and rounded down."""
    upper: Losses = NO_LOSSES
    """The same, rounded up."""

    def delta(self, eps: float) -> tuple[float, float]:
        """Bounds on what the kind adds to δ."""
        eps -= self.loss
        return (
            self.weight * self.lower.delta(eps),
            self.weight * self.upper.delta(eps - self.uncut),
        )

    def masses(self, eps: float) -> tuple[float, float]:
        """The probabilities of outputs of this kind with a loss beyond eps, under P and Q."""
        p, q = self.upper.masses(eps - self.loss - self.uncut)
        return self.weight * p, self.weight * math.exp(-self.loss) * q


@dataclass(frozen=True, slots=True)
class Profile:
    """The privacy profile of P and Q: bounds on δ by ε."""

    kinds: tuple[Kind, ...]
    mu: float | None = None
    """Where P and Q are normal distributions that differ by so much."""

    def delta(self, eps: float) -> tuple[float, float]:
        """Bounds on the hockey-stick divergence of P from Q: below, and above."""
        if self.mu is not None:
            delta = GaussianDP(self.mu).delta_at(eps) if self.mu else 0.0
            return delta * (1 - EQUAL), delta
        bounds = [kind.delta(eps) for kind in self.kinds]
        lower, upper = (math.fsum(bound[side] for bound in bounds) for side in (0, 1))
        return max(lower - EQUAL / 10, 0.0), min(upper + EQUAL / 10, 1.0)

    def masses(self, eps: float) -> tuple[float, float]:
        """The probabilities of losses beyond eps, under P and under Q (approximate)."""
        if self.mu is not None:
            half, far = self.mu / 2, eps / self.mu if self.mu else math.inf
            return float(ndtr(half - far)), float(ndtr(-half - far))
        masses = [kind.masses(eps) for kind in self.kinds]
        return sum(p for p, _ in masses), sum(q for _, q in masses)


def eps_at(delta: float, profiles: Sequence[Profile]) -> tuple[float, float]:
    """Bounds on the smallest ε beside a δ above 0."""
    optimistic = _smallest(lambda eps: all(bounds.delta(eps)[0] <= delta for bounds in profiles))
    pessimistic = _smallest(lambda eps: all(bounds.delta(eps)[1] <= delta for bounds in profiles))
    return optimistic[0], pessimistic[1]


def _smallest(holds: Callable[[float], bool]) -> tuple[float, float]:
    """Bounds on the smallest ε for which something holds that holds for all larger ones as well."""
    if holds(0.0):
        return 0.0, 0.0
    low, high = 0.0, 1.0
    while not holds(high):
        low, high = high, 2 * high
        if high > MAX_EPS:
            return MAX_EPS, math.inf
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def profile(cases: Sequence[Case], *, forward: bool) -> Profile:
    """The profile of P from Q; of Q from P if not `forward`."""
    mu = gaussian(cases)
    if mu is not None:
        return Profile((), mu)
    return Profile(tuple(_kind(case, forward) for case in cases))


def gaussian(cases: Sequence[Case]) -> float | None:
    """By how many standard deviations P and Q differ, if both are normal; else None."""
    if len(cases) != 1 or cases[0].log_p != cases[0].log_q or not cases[0].experiments:
        return None
    shifts = []
    for experiment in cases[0].experiments:
        if not isinstance(experiment, Moved) or experiment.law != Law(NORMAL):
            return None
        if experiment.stretch != 1:
            return None
        shifts.append(experiment.shift)
    return math.hypot(*shifts)


def _kind(case: Case, forward: bool) -> Kind:
    log_p, log_q = (case.log_p, case.log_q) if forward else (case.log_q, case.log_p)
    if log_p == -math.inf:
        return Kind(0.0, 0.0)
    if log_q == -math.inf:
        return Kind(math.exp(log_p), math.inf)
    loss, uncut = log_p - log_q, 0.0
    cut: list[tuple[Cells, int]] = []
    for experiment, times, largest in _distinct(case.experiments, forward):
        cells = experiment.cells(2 * STEPS) if len(cut) < MANY else None
        if cells is not None:
            cut.append((cells if forward else cells.swapped(), times))
        else:
            uncut += times * largest
    if not cut:
        return Kind(math.exp(log_p), loss, uncut)
    lower = _composed([(_merged(cells), times) for cells, times in cut], up=False)
    upper = _composed([(Losses(cells.p, cells.high), times) for cells, times in cut], up=True)
    return Kind(math.exp(log_p), loss, uncut, lower, upper)


def _distinct(
    experiments: Sequence[Experiment], forward: bool
) -> list[tuple[Experiment, int, float]]:
    """Experiments with a loss, how often each is there, and its largest loss; by that, falling."""
    keys = [e if isinstance(e, Moved) else id(e) for e in experiments]
    by_key: dict[Any, Experiment] = dict(zip(keys, experiments, strict=True))
    distinct = []
    for key, times in Counter(keys).items():
        largest = by_key[key].largest()
        if largest.forward or largest.backward:
            loss = largest.forward if forward else largest.backward
            distinct.append((by_key[key], times, loss))
    return sorted(distinct, key=lambda row: -row[2])


def _merged(cells: Cells) -> Losses:
    """The losses of outputs of which each cell is one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.log(cells.p) - np.log(cells.q)
    return Losses(cells.p, np.nan_to_num(loss, nan=-np.inf, posinf=np.inf, neginf=-np.inf))


def _composed(parts: list[tuple[Losses, int]], *, up: bool) -> Losses:
    """The sum of independent losses, each as often as said, on a grid if there are several."""
    count = sum(times for _, times in parts)
    if count == 1:
        return parts[0][0]
    bounds = [_bounds(part, NEGLIGIBLE / count) for part, _ in parts]
    width = sum(times * (high - low) for (low, high), (_, times) in zip(bounds, parts, strict=True))
    step = max(width, 1e-9) / (2**17)
    total, start, infinite = np.ones(1), 0, 1.0
    for (part, times), bound in zip(parts, bounds, strict=True):
        masses, first, lost = _on_grid(part, bound, step, up=up)
        total = _convolved(total, masses, times)
        start, infinite = start + times * first, infinite * (1 - lost) ** times
    loss = (start + np.arange(len(total))) * step
    return Losses(np.append(total, 1 - infinite), np.append(loss, np.inf))


def _convolved(total: Floats, masses: Floats, times: int) -> Floats:
    """A distribution on a grid, with another one added to it so many times."""
    length = len(total) + times * (len(masses) - 1)
    size = 1 << (length - 1).bit_length()
    product = np.fft.irfft(np.fft.rfft(total, size) * np.fft.rfft(masses, size) ** times, size)
    return np.maximum(product[:length], 0.0)


def _bounds(part: Losses, negligible: float) -> tuple[float, float]:
    """An interval of finite losses, with no more than a negligible mass on either side."""
    finite = np.isfinite(part.loss)
    order = np.argsort(part.loss[finite])
    loss, p = part.loss[finite][order], part.p[finite][order]
    if not len(loss):
        return 0.0, 0.0
    low = int(np.searchsorted(np.cumsum(p), negligible))
    high = len(p) - 1 - int(np.searchsorted(np.cumsum(p[::-1]), negligible))
    return float(loss[min(low, len(p) - 1)]), float(loss[max(high, 0)])


def _on_grid(
    part: Losses, bound: tuple[float, float], step: float, *, up: bool
) -> tuple[Floats, int, float]:
    """Masses by steps, the first step, and the mass of infinite losses.

    Rounded down, losses below the grid are left out, and those above it are put at its end; rounded
    up, those below it are put at its beginning, and those above it are infinite.
    """
    low, high = bound
    first, last = math.floor(low / step), math.ceil(high / step)
    above, below = part.loss > last * step, part.loss < first * step
    round_ = np.ceil if up else np.floor
    at = round_(np.clip(part.loss, first * step, last * step) / step).astype(np.int64) - first
    infinite = above if up else np.isposinf(part.loss)
    finite = ~infinite if up else ~(infinite | below)
    masses = np.bincount(at[finite], part.p[finite], minlength=last - first + 1)
    return masses.astype(float), first, float(part.p[infinite].sum())
