"""How much probability lies beyond ``exp(eps)`` times that of the neighbour: δ(ε), with a band.

The upper end takes the largest loss in each cell, and rounds it up; the lower end merges each cell
to one output, and rounds down. So the truth lies between, but for rounding of floats.

Source: Koskela, Jälkö, Honkela, "Computing tight differential privacy guarantees using FFT", 2020.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from pytest_dp.analytic.comparing import Case
from pytest_dp.analytic.experiments import Cells, Experiment, Moved
from pytest_dp.analytic.laws import Law
from pytest_dp.arrays import Floats
from pytest_dp.privacy.conversions import gdp_to_delta

CELLS = 40_000
"""Of one experiment."""
MAX_DISTINCT = 64
"""Experiments that differ, and whose losses are added up; of further ones, the largest count."""
STEPS = 1 << 17
"""Of the grid of losses of several."""
NEGLIGIBLE = 1e-15
"""Probability that may be taken for an infinite loss, or for none."""
FLOATS = 1e-10
"""What rounding of floats may add up to."""
MAX_EPS = 500.0
"""In nats; a larger ε is taken for none."""
GAUSSIAN = 1e-9
"""By what the profile of normal distributions is rounded up, relatively."""


@dataclass(frozen=True, slots=True)
class Losses:
    """A distribution of losses under P; what is missing from 1 is below all of them.

    Attributes
    ----------
    p : ndarray
    loss : ndarray
        Increasing or not; may be infinite.
    """

    p: Floats
    loss: Floats

    def beyond(self, eps: float) -> float:
        """The expectation of ``1 - exp(eps - loss)``, where that is positive."""
        with np.errstate(over="ignore"):
            return float(np.sum(self.p * -np.expm1(np.minimum(eps - self.loss, 0.0))))

    def masses(self, eps: float) -> tuple[float, float]:
        """Of losses beyond eps, under P and under Q."""
        some = self.loss > eps
        return float(self.p[some].sum()), float((self.p[some] * np.exp(-self.loss[some])).sum())


@dataclass(frozen=True, slots=True)
class Kind:
    """Outputs of one kind.

    Attributes
    ----------
    weight : float
        Their probability under P.
    before : float
        The loss that the kind itself has.
    more : float
        The largest loss of what is not in `least` and `most`.
    least, most : Losses
        Of the rest, merged and rounded down, and rounded up.
    """

    weight: float
    before: float
    more: float = 0.0
    least: Losses | None = None
    most: Losses | None = None

    def beyond(self, eps: float) -> tuple[float, float]:
        """Bounds on what the kind adds to δ."""
        left = eps - self.before
        if self.least is None or self.most is None:
            lower, upper = -math.expm1(min(left, 0.0)), -math.expm1(min(left - self.more, 0.0))
        else:
            lower, upper = self.least.beyond(left), self.most.beyond(left - self.more)
        return self.weight * lower, self.weight * upper


@dataclass(frozen=True, slots=True)
class Profile:
    """How much of P lies beyond ``exp(eps) Q``, by ε; bounds on it.

    Attributes
    ----------
    kinds : tuple of Kind
    mu : float or None
        Where P and Q are normal distributions that differ by so much.
    """

    kinds: tuple[Kind, ...]
    mu: float | None = None

    def delta(self, eps: float) -> tuple[float, float]:
        """The hockey-stick divergence: at least, and at most."""
        if self.mu is not None:
            known = gdp_to_delta(self.mu, eps) if self.mu else 0.0
            return known * (1 - GAUSSIAN), known
        bands = [kind.beyond(eps) for kind in self.kinds]
        lower, upper = (math.fsum(band[side] for band in bands) for side in (0, 1))
        return max(lower - FLOATS, 0.0), min(upper + FLOATS, 1.0)

    def beyond(self, eps: float) -> tuple[float, float]:
        """The probabilities under P and under Q of losses beyond eps (approximate)."""
        if self.mu is not None:
            half, far = self.mu / 2, eps / self.mu if self.mu else math.inf
            return float(ndtr(half - far)), float(ndtr(-half - far))
        p = q = 0.0
        for kind in self.kinds:
            left, ratio = eps - kind.before, math.exp(-kind.before)
            if kind.most is None:
                mine = (1.0, 1.0) if kind.before + kind.more > eps else (0.0, 0.0)
            else:
                mine = kind.most.masses(left)
            p, q = p + kind.weight * mine[0], q + kind.weight * ratio * mine[1]
        return p, q


def eps_at(delta: float, profiles: Sequence[Profile]) -> tuple[float, float]:
    """Bounds on the smallest ε beside a δ above 0."""
    ends = []
    for side in (0, 1):

        def holds(eps: float, side: int = side) -> bool:
            return all(one.delta(eps)[side] <= delta for one in profiles)

        low, high = 0.0, 1.0
        while not holds(high):
            low, high = high, 2 * high
            if high > MAX_EPS:
                ends.append((MAX_EPS, math.inf))
                break
        else:
            for _ in range(40):
                middle = (low + high) / 2
                low, high = (low, middle) if holds(middle) else (middle, high)
            ends.append((0.0 if holds(0.0) else low, 0.0 if holds(0.0) else high))
    return ends[0][0], ends[1][1]


def profile(cases: Sequence[Case], *, forward: bool) -> Profile:
    """That of P against Q; of Q against P if not `forward`."""
    mu = gaussian(cases)
    if mu is not None:
        return Profile((), mu)
    return Profile(tuple(_kind(case, forward) for case in cases))


def gaussian(cases: Sequence[Case]) -> float | None:
    """By how many standard deviations normal distributions differ, if all is of that kind."""
    if len(cases) != 1 or cases[0].log_p != cases[0].log_q or not cases[0].experiments:
        return None
    shifts = []
    for experiment in cases[0].experiments:
        if not isinstance(experiment, Moved) or experiment.law != Law("normal"):
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
    before, more = log_p - log_q, 0.0
    cells: list[tuple[Cells, int]] = []
    for experiment, times, loss in _distinct(case.experiments, forward):
        cut = experiment.cells(CELLS) if len(cells) < MAX_DISTINCT else None
        if cut is not None:
            cells.append((cut if forward else cut.turned(), times))
        else:
            more += times * loss
    if not cells:
        return Kind(math.exp(log_p), before, more)
    least = _composed([(_merged(each), times) for each, times in cells], up=False)
    most = _composed([(Losses(each.p, each.high), times) for each, times in cells], up=True)
    return Kind(math.exp(log_p), before, more, least, most)


def _distinct(
    experiments: Sequence[Experiment], forward: bool
) -> list[tuple[Experiment, int, float]]:
    """Each with how often it is there and its largest loss, if it has any; the largest first."""
    keys = [each if isinstance(each, Moved) else id(each) for each in experiments]
    by_key: dict[Any, Experiment] = dict(zip(keys, experiments, strict=True))
    known = [(by_key[key], times, by_key[key].largest()) for key, times in Counter(keys).items()]
    found = [
        (each, times, largest.forward if forward else largest.backward)
        for each, times, largest in known
        if largest.forward or largest.backward
    ]
    return sorted(found, key=lambda each: -each[2])


def _merged(cells: Cells) -> Losses:
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.log(cells.p) - np.log(cells.q)
    return Losses(cells.p, np.nan_to_num(loss, nan=-np.inf, posinf=np.inf, neginf=-np.inf))


def _composed(parts: list[tuple[Losses, int]], *, up: bool) -> Losses:
    """The sum of independent losses, each as often as said, on a grid if there are several."""
    many = sum(times for _, times in parts)
    if many == 1:
        return parts[0][0]
    bounds = [_bounds(part, NEGLIGIBLE / many) for part, _ in parts]
    width = sum(times * (high - low) for (low, high), (_, times) in zip(bounds, parts, strict=True))
    step = max(width, 1e-9) / STEPS
    total, start, infinite = np.ones(1), 0, 1.0
    for (part, times), bound in zip(parts, bounds, strict=True):
        masses, first, lost = _on_grid(part, bound, step, up=up)
        total = _convolved(total, masses, times)
        start, infinite = start + times * first, infinite * (1 - lost) ** times
    loss = (start + np.arange(len(total))) * step
    return Losses(np.append(total, 1 - infinite), np.append(loss, np.inf))


def _convolved(one: Floats, other: Floats, times: int) -> Floats:
    """With the other so many times."""
    length = len(one) + times * (len(other) - 1)
    size = 1 << (length - 1).bit_length()
    product = np.fft.irfft(np.fft.rfft(one, size) * np.fft.rfft(other, size) ** times, size)
    return np.maximum(product[:length], 0.0)


def _bounds(part: Losses, negligible: float) -> tuple[float, float]:
    """Between which finite losses all but so much lies."""
    finite = np.isfinite(part.loss)
    order = np.argsort(part.loss[finite])
    loss, p = part.loss[finite][order], part.p[finite][order]
    if not len(loss):
        return 0.0, 0.0
    first = int(np.searchsorted(np.cumsum(p), negligible))
    last = len(p) - 1 - int(np.searchsorted(np.cumsum(p[::-1]), negligible))
    return float(loss[min(first, len(p) - 1)]), float(loss[max(last, 0)])


def _on_grid(
    part: Losses, bound: tuple[float, float], step: float, *, up: bool
) -> tuple[Floats, int, float]:
    """Masses by steps, the first step, and the mass of infinite losses.

    Rounding down, losses below the grid are left out, and those above it are at its end; rounding
    up, they are at its beginning, and infinite.
    """
    low, high = bound
    first, last = math.floor(low / step), math.ceil(high / step)
    above, below = part.loss > last * step, part.loss < first * step
    round_ = np.ceil if up else np.floor
    at = round_(np.clip(part.loss, first * step, last * step) / step).astype(np.int64) - first
    infinite = above if up else np.isposinf(part.loss)
    kept = ~infinite if up else ~(infinite | below)
    masses = np.bincount(at[kept], part.p[kept], minlength=last - first + 1)
    return masses.astype(float), first, float(part.p[infinite].sum())
