"""Numbers for the draws of replays: from the laws of the draws, and from their tails."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.random import Generator, default_rng

from pytest_dp.basics.arrays import Bools, Floats
from pytest_dp.running.laws import (
    EXPONENTIAL,
    GEOMETRIC,
    GUMBEL,
    INTEGERS,
    LAPLACE,
    LOGISTIC,
    NORMAL,
    UNIFORM,
    Family,
    Law,
)

MAX_STRATIFIED = 64
"""Elements of an array of draws whose quantiles are spread evenly over the replays; of more, they
are independent. A larger number takes more memory in each plan."""
TAIL_DIGITS = 14.0
"""Tails of draws are replayed down to a probability of 10 to minus this. Beyond, the distribution
functions of floats end."""


def _normal(tail: Floats, _: float) -> Floats:
    from scipy.special import ndtri  # loaded where it is of use: workers do without

    quantile: Floats = ndtri(tail)
    return quantile


_SYMMETRIC: dict[Family, Callable[[Floats, float], Floats]] = {
    LAPLACE: lambda tail, _: np.log(2 * tail),
    NORMAL: _normal,
    LOGISTIC: lambda tail, _: np.log(tail) - np.log1p(-tail),
}
"""Quantiles at probabilities of at most one half."""
_LOWER: dict[Family, Callable[[Floats, float], Floats]] = {
    EXPONENTIAL: lambda tail, _: -np.log1p(-tail),
    GUMBEL: lambda tail, _: -np.log(-np.log(tail)),
    UNIFORM: lambda tail, _: tail,
    GEOMETRIC: lambda tail, ratio: np.floor(np.log1p(-tail) / math.log(ratio)),
    INTEGERS: lambda tail, count: np.floor(tail * count),
}
_UPPER: dict[Family, Callable[[Floats, float], Floats]] = {
    EXPONENTIAL: lambda tail, _: -np.log(tail),
    GUMBEL: lambda tail, _: -np.log(-np.log1p(-tail)),
    UNIFORM: lambda tail, _: 1 - tail,
    GEOMETRIC: lambda tail, ratio: np.floor(np.log(tail) / math.log(ratio)),
    INTEGERS: lambda tail, count: count - 1 - np.floor(tail * count),
}
"""The same from below and from above, for laws that are not symmetric."""


def quantiles(law: Law, tail: Floats, upper: Bools) -> Floats:
    """Return values with probability `tail`, at most one half, beyond them: above or below."""
    family, parameter = law.family, law.parameter
    if family is GEOMETRIC and not parameter:
        return np.zeros(np.shape(tail))
    if family in _SYMMETRIC:
        below = _SYMMETRIC[family](tail, parameter)
        return np.where(upper, -below, below)
    return np.where(upper, _UPPER[family](tail, parameter), _LOWER[family](tail, parameter))


def is_supported(law: Law) -> bool:
    """Return whether replays can draw from a law."""
    return law.family in _SYMMETRIC or law.family in _LOWER


class StandardDraws(Protocol):
    """The standard draws of a run; draws of unknown laws follow from the seed."""

    seed: tuple[int, int]

    def standard(self, order: int, law: Law, count: int) -> Floats: ...


class Numbers:
    """The standard draws of one replay, by the order in which they are asked for.

    They are the same however often they are asked for.
    """

    def __init__(self, plan: Plan, replay: int) -> None:
        self._plan, self._replay = plan, replay
        self.is_of_tails = replay >= plan.from_laws
        self.seed = (plan.seed, replay)

    def standard(self, order: int, law: Law, count: int) -> Floats:
        """Return `count` values of a law for the draw of this number."""
        if count > MAX_STRATIFIED:
            return self._independent(order, law, count)
        values: Floats = self._plan.standard(order, law, count)[self._replay]
        return values

    def _independent(self, order: int, law: Law, count: int) -> Floats:
        generator = default_rng((*self.seed, order))
        if self.is_of_tails:
            tail, upper = _from_tails(generator, 1, count)
            return quantiles(law, tail[0], upper[0])
        u = generator.uniform(1e-16, 1, count)
        return quantiles(law, np.minimum(u, 1 - u), u > 0.5)


class Plan:
    """The numbers of several replays.

    Of those with draws from the laws, the quantiles of each draw are spread evenly, so that what a
    single draw decides in one of `from_laws` runs or more happens in one of them.
    """

    def __init__(self, seed: int, from_laws: int, from_tails: int) -> None:
        self.seed, self.from_laws, self.from_tails = seed, from_laws, from_tails
        self._values: dict[tuple[int, Law, int], Floats] = {}

    @property
    def key(self) -> tuple[int, int, int]:
        """Equal for plans of the same numbers."""
        return self.seed, self.from_laws, self.from_tails

    def standard(self, order: int, law: Law, count: int) -> Floats:
        """Return the values of `count` draws in all replays, a row each."""
        key = order, law, count
        if key not in self._values:
            generator = default_rng((self.seed, order))
            strata = generator.random((self.from_laws, count)).argsort(axis=0)
            u = (strata + generator.uniform(1e-9, 1, strata.shape)) / max(self.from_laws, 1)
            tail, upper = _from_tails(generator, self.from_tails, count)
            self._values[key] = quantiles(
                law,
                np.concatenate([np.minimum(u, np.maximum(1 - u, 1e-16)), tail]),
                np.concatenate([u > 0.5, upper]),
            )
        return self._values[key]

    def numbers(self) -> list[Numbers]:
        """Return the numbers of all replays, those from tails among the others."""
        all_of_them = [Numbers(self, replay) for replay in range(self.from_laws + self.from_tails)]
        order = default_rng(self.seed).permutation(len(all_of_them))
        return [all_of_them[at] for at in order]


def _from_tails(generator: Generator, rows: int, count: int) -> tuple[Floats, Bools]:
    """Return probabilities beyond draws, and whether they are upper ones.

    In each row, some of the draws or all are far out, all above, all below, or on either side.
    """
    far = generator.random((rows, count)) < generator.choice([0.3, 1.0], (rows, 1))
    tail = np.where(
        far,
        10 ** -generator.uniform(0.31, TAIL_DIGITS, (rows, count)),
        generator.uniform(1e-9, 0.5, (rows, count)),
    )
    side = generator.choice([-1, 0, 1], (rows, 1))
    upper = np.where(side == 0, generator.random((rows, count)) < 0.5, side > 0)
    return tail, upper
