"""Pairs of distributions (P, Q) on one line: the largest losses between them, in closed form.

The loss of a point is log(p / q), in nats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pytest_dp.arrays import Floats
from pytest_dp.limits import ROUNDED
from pytest_dp.randomness.laws import LAPLACE, NORMAL, TWO_SIDED_GEOMETRIC, Law


@dataclass(frozen=True, slots=True)
class Largest:
    """The suprema of the loss and of its negative, and by how much they may be off.

    The error is infinite where they were searched for.
    """

    forward: float
    backward: float
    error: float = 0.0

    def __add__(self, other: Largest) -> Largest:
        return Largest(
            self.forward + other.forward,
            self.backward + other.backward,
            self.error + other.error,
        )


@dataclass(frozen=True, slots=True)
class Cells:
    """A pair of distributions, cut into cells: arrays of shape (cells,)."""

    p: Floats
    q: Floats
    """The probability of each cell, as `p`."""
    low: Floats
    high: Floats
    """An upper bound on the loss in each cell, as `low` is a lower one."""

    def swapped(self) -> Cells:
        return Cells(self.q, self.p, -self.high, -self.low)


class Experiment(Protocol):
    """A pair of distributions."""

    def largest(self) -> Largest:
        """The suprema of the loss."""
        ...

    def cells(self, count: int) -> Cells | None:
        """About so many cells; None if the probabilities of cells have no closed form."""
        ...


@dataclass(frozen=True, slots=True)
class Moved:
    """A standard draw under P; under Q, the same stretched and moved."""

    law: Law
    shift: float
    stretch: float = 1.0
    """1 for laws of integers."""

    @property
    def same_scale(self) -> bool:
        return abs(self.stretch - 1) <= ROUNDED

    def largest(self) -> Largest:
        """By the family: unbounded wherever a tail, or the support, differs."""
        shift = abs(self.shift)
        if self.same_scale:
            if shift <= ROUNDED:
                return Largest(0.0, 0.0)
            if self.law.family.exponential_tails:
                return Largest(shift, shift, 4 * ROUNDED * shift)
            if self.law.family is TWO_SIDED_GEOMETRIC and float(shift).is_integer():
                loss = -shift * math.log(self.law.parameter)
                return Largest(loss, loss, 4 * ROUNDED * loss)
        return Largest(math.inf, math.inf)  # one of them, at least: the estimate is the larger

    def cells(self, count: int) -> Cells | None:
        """By quantiles of both; in each the loss is monotone."""
        return _cut(self, count)

    def loss(self, x: Floats) -> Floats:
        """The loss of points; 0 where neither has a density."""
        log_p = self.law.log_density(x)
        log_q = self.law.log_density((x - self.shift) / self.stretch) - math.log(self.stretch)
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(log_p) & np.isneginf(log_q), 0.0, log_p - log_q)


@dataclass(frozen=True, slots=True)
class Tailed:
    """A sum of independent draws, moved; its tails are exponential, so its loss is known."""

    shift: float
    """In units of the scale of the tails."""

    def largest(self) -> Largest:
        """No more than that of the draw with the largest scale, and approached far out."""
        return Largest(abs(self.shift), abs(self.shift), 4 * ROUNDED * abs(self.shift))

    def cells(self, count: int) -> Cells | None:  # noqa: ARG002
        """Its density is not known."""
        return None


@dataclass(frozen=True, slots=True)
class Table:
    """Finitely many values, with their probabilities."""

    p: Floats
    q: Floats

    def largest(self) -> Largest:
        """By all values that either can have."""
        possible = (self.p > 0) | (self.q > 0)
        with np.errstate(divide="ignore"):
            loss = np.log(self.p[possible]) - np.log(self.q[possible])
        if not loss.size:
            return Largest(0.0, 0.0)
        return Largest(float(loss.max()), float(-loss.min()), 1e-13)

    def cells(self, count: int) -> Cells:  # noqa: ARG002
        """One for each value."""
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = np.log(self.p) - np.log(self.q)
        loss = np.nan_to_num(loss, nan=0.0, posinf=np.inf, neginf=-np.inf)
        return Cells(self.p, self.q, loss, loss)


@dataclass(frozen=True, slots=True)
class Different:
    """Distributions whose loss is unbounded."""

    overlap: bool = False
    """Whether events that have some probability have it under both."""

    def largest(self) -> Largest:
        """Infinite on both sides."""
        return Largest(math.inf, math.inf)

    def cells(self, count: int) -> Cells | None:  # noqa: ARG002
        """Two, each possible under one of them only; none where the two overlap."""
        if self.overlap:
            return None
        infinite = np.array([np.inf, -np.inf])
        return Cells(np.array([1.0, 0.0]), np.array([0.0, 1.0]), infinite, infinite)


def _cut(moved: Moved, count: int) -> Cells | None:
    """Cells between points of a grid of each distribution, and of those where the loss turns."""
    family, stretch, shift = moved.law.family, moved.stretch, moved.shift
    if moved.law.lattice:
        return _cut_integers(moved, count)
    if not moved.same_scale and family not in (LAPLACE, NORMAL):
        return None
    grid = np.linspace(*family.bulk(moved.law.parameter), count // 2 + 1)
    if family is LAPLACE and moved.same_scale:
        grid = np.linspace(min(shift, 0.0), max(shift, 0.0), count)  # the loss is constant beyond
    turns = [0.0, shift]
    if family is NORMAL and not moved.same_scale:
        turns.append(-shift / (stretch**2 - 1))
    edges = np.unique(np.concatenate([grid, shift + stretch * grid, turns]))
    ends = np.concatenate([[-np.inf], edges, [np.inf]])
    p = np.exp(moved.law.log_between(ends[:-1], ends[1:]))
    standard = (ends - shift) / stretch
    q = np.exp(moved.law.log_between(standard[:-1], standard[1:]))
    if family.piecewise:  # the loss is constant between these points
        inside = np.concatenate([[ends[1] - 1], (edges[1:] + edges[:-1]) / 2, [ends[-2] + 1]])
        loss = moved.loss(inside)
        return Cells(p, q, loss, loss)
    loss = moved.loss(edges)
    if family is LAPLACE and moved.same_scale:
        loss = np.concatenate([loss[:1], loss, loss[-1:]])  # constant beyond the edges
        return Cells(p, q, np.minimum(loss[1:], loss[:-1]), np.maximum(loss[1:], loss[:-1]))
    bound = abs(shift) if family.exponential_tails and moved.same_scale else np.inf
    low = np.concatenate([[-bound], np.minimum(loss[1:], loss[:-1]), [-bound]])
    high = np.concatenate([[bound], np.maximum(loss[1:], loss[:-1]), [bound]])
    return Cells(p, q, low, high)


def _cut_integers(moved: Moved, count: int) -> Cells | None:
    """A cell for each integer, but for those in the tails."""
    low, high = map(int, moved.law.family.bulk(moved.law.parameter))
    shift = moved.shift
    if not float(shift).is_integer():
        return Different().cells(count)
    low, high = min(low, low + int(shift)), max(high, high + int(shift))
    if high - low > 20 * count:
        return None
    integers = np.arange(float(low), high + 1)
    p, q = (np.exp(moved.law.log_between(k - 0.5, k + 0.5)) for k in (integers, integers - shift))
    return Table(p, q).cells(count)
