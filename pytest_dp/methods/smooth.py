"""Numbers of which a comparison is true to a degree: arrays, by inputs and by draws.

All draws are fixed, and a number is an array: by inputs, which are looked at side by side, and by
draws. A comparison forks the run. Its branches have weights that sum to 1, by a sigmoid of how far
apart the two sides are, in units of how far the draws spread. So each path has a weight for each
input and draw, and the probability of an output is the mean of the weights of the paths to it.

A sigmoid is the distribution function of logistic noise: to smooth is to add a little noise to each
comparison, which makes variances 5 % larger here.

Source: Bichsel, Gehr, Drachsler-Cohen, Tsankov, Vechev, "DP-Finder", CCS 2018, Section 5: the rules
of Figure 8 follow from forking, and no code is rewritten. There the steepness is the same for all
noise.
"""

from __future__ import annotations

import functools
import math
import operator
import struct
from collections.abc import Callable, Sequence
from functools import partialmethod
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import expit

from pytest_dp.basics.arrays import Floats
from pytest_dp.oracles.branching import Branching, Path, Weight
from pytest_dp.oracles.deferred import (
    COMPARISONS,
    Deferred,
    Function,
    elementwise,
    is_draw,
    is_plain_number,
    objects,
    of_draws,
)
from pytest_dp.running.laws import INTEGERS, Law
from pytest_dp.running.modules import Replacements
from pytest_dp.running.requests import plain_generator

MAX_BRANCHES = 64
"""Values of a draw that a smoothed run takes one by one. More: paths multiply; fewer: gradients
are not known."""

STEEPNESS = float(8)
"""Of sigmoids, for margins in units of their spread. Derived: logistic noise of an eighth of the
spread adds pi^2 / 3 / 64, or 5 %, to a variance."""
MAX_COMPARISONS = 1_000
"""In one run. With more, runs that compare draws for ever take longer to be given up."""
HARD = math.inf
"""The steepness of comparisons as they are."""


class Smoothing(Branching):
    """Answers draws by arrays: the same numbers in all runs, `draws` of each.

    Other numbers follow from another `seed`.
    """

    def __init__(self, draws: int, seed: int, steepness: float = STEEPNESS) -> None:
        self.draws, self.steepness, self.spread = draws, steepness, 0.0
        self.weights: Floats = np.ones((1, 1))  # of the path of the run, by inputs and draws
        self._seed = seed
        self._fixed: dict[tuple[int, Law], Floats] = {}
        super().__init__()

    def start(self, path: Path) -> None:
        """Begin a run along a path."""
        super().start(path)
        self.drawn = 0
        self.weights = np.ones((1, 1))

    def takes(self, law: Law) -> bool:
        """Return all laws but those of few whole numbers, which are branches."""
        return law.family is not INTEGERS or law.parameter > MAX_BRANCHES

    def choose(self, weights: Sequence[Weight]) -> int:
        """Return a branch by its probability, whatever the draws."""
        branch = super().choose(weights)
        self.weights = self.weights * float(weights[branch])
        return branch

    def fork(self, chances: Floats) -> bool:
        """Return whether this run goes on as if a comparison were true."""
        if len(self.path.taken) >= MAX_COMPARISONS:
            self.refuse(f"it compares draws more than {MAX_COMPARISONS:,} times")
        weighted = self.weights * chances
        total = float(self.weights.mean())
        share = float(weighted.mean()) / total if total else 0.5
        holds = self.path.choose([share, 1 - share]) == 0
        self.weights = weighted if holds else self.weights * (1 - chances)
        return holds

    def above(self, margins: Floats, *, equal: bool = False) -> Floats:
        """Return to which degree margins are above 0, or at least 0."""
        if self.steepness == HARD:
            return np.asarray(margins >= 0 if equal else margins > 0, float)
        chances: Floats = expit(self.steepness / self.spread_of(margins) * margins)
        return chances

    def at(self, margins: Floats) -> Floats:
        """Return to which degree margins are 0; 0 everywhere for numbers with a density."""
        if self.steepness == HARD:
            return np.asarray(margins == 0, float)
        if margins.shape[-1] > 1 and (margins % 1).any():
            return np.zeros(margins.shape)
        nearness: Floats = np.exp(-self.steepness * margins**2)
        return nearness

    def integer(self, count: int, low: int = 0) -> Any:
        return (
            super().integer(count, low)
            if count <= MAX_BRANCHES
            else low + self.value_of(Law(INTEGERS, count))
        )

    def value_of(self, law: Law) -> Any:
        """Return the numbers for the next draw of a run."""
        key = self.drawn, law
        self.drawn += 1
        if key not in self._fixed:
            generator = plain_generator(Generator, struct.pack("<4Q", self._seed, self.drawn, 0, 0))
            self._fixed[key] = law.draws(generator, self.draws)[None, :]
        return Smooth(self, self._fixed[key])

    def spread_of(self, margins: Floats) -> float:
        """Return the spread of margins on the first input; if it is 0, the largest one so far."""
        spread = float(margins[0].std())
        self.spread = max(self.spread, spread)
        return spread or self.spread or 1.0


class Smooth(Deferred):
    """A number by inputs and draws: `values` has shape (inputs or 1, draws or 1)."""

    __slots__ = ("values",)
    instrument: Smoothing

    def __init__(self, instrument: Smoothing, values: Floats) -> None:
        super().__init__(instrument)
        self.values = values

    def average(self, weights: Floats) -> float:
        """Return its average, weighed by inputs and draws."""
        values, weights = np.broadcast_arrays(self.values, weights)
        return float(np.average(values, weights=weights))

    def combined(self, other: Any, function: Function) -> Any:
        if isinstance(other, Smooth):
            return Smooth(self.instrument, function(self.values, other.values))
        if not is_plain_number(other):
            return NotImplemented
        return Smooth(self.instrument, function(self.values, float(other)))

    def of(self, function: Callable[[Floats], Any]) -> Smooth:
        """Return a function of its values."""
        return Smooth(self.instrument, np.asarray(function(self.values), float))

    __neg__ = partialmethod(of, operator.neg)
    __abs__ = partialmethod(of, np.abs)
    __floor__ = partialmethod(of, np.floor)
    __ceil__ = partialmethod(of, np.ceil)
    __trunc__ = partialmethod(of, np.trunc)

    def __round__(self, digits: int | None = None) -> Any:
        return self.of(lambda values: np.round(values, digits or 0))

    def __converted__(self, kind: type) -> Any:
        if kind is bool:
            return bool(self)
        return self.of(np.trunc) if kind is int else self

    def through(self, function: Callable[[Any], Any]) -> Any:
        """Return a function of Python, such as ``math.log``."""

        def apply(value: float) -> float:
            try:
                return float(function(value))
            except (ValueError, OverflowError):
                return math.nan

        return self.of(np.frompyfunc(apply, 1, 1))

    def is_above(self, *, equal: bool) -> bool:
        return self.instrument.fork(self.instrument.above(self.values, equal=equal))

    def __eq__(self, other: object) -> Any:
        margins = self.combined(other, operator.sub)
        if margins is NotImplemented:
            return margins
        return other is self or self.instrument.fork(self.instrument.at(margins.values))

    def __getattr__(self, name: str) -> Any:
        """Return what numpy looks for on objects in arrays: functions of one number."""
        ufunc = getattr(np, name, None)
        if isinstance(ufunc, np.ufunc) and ufunc.nin == 1:
            return lambda: self.of(ufunc)
        raise AttributeError(f"a draw has no attribute {name!r}")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Return a function of numpy, on the arrays that numbers are; comparisons fork."""
        if method != "__call__" or keywords.keys() - {"dtype", "casting"}:
            return getattr(ufunc, method)(*map(objects, inputs), **keywords)
        if any(isinstance(value, np.ndarray) and value.ndim for value in inputs):
            return of_draws(elementwise(ufunc, *map(objects, inputs)))
        if ufunc.__name__ in COMPARISONS:
            return ufunc(*map(objects, inputs))
        plain = [value.item() if isinstance(value, np.ndarray) else value for value in inputs]
        if ufunc.nout != 1:
            self.value(f"np.{ufunc.__name__} of a draw")
        values = [value.values if is_draw(value) else value for value in plain]
        return Smooth(self.instrument, np.asarray(ufunc(*values), float))

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        """Return other functions of numpy, by what they do with objects."""
        if function in (np.round, np.around):
            return round(args[0], *args[1:], **keywords)
        made = function(*(objects(arg) if is_draw(arg) else arg for arg in args), **keywords)
        return of_draws(made) if isinstance(made, np.ndarray) and made.ndim else made


FUNCTIONS = {
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "erf"),
    *("tanh", "atan", "sinh", "asinh"),
}
"""Functions of `math` that take draws."""


@functools.cache
def functions_of_draws() -> Replacements:
    """Return functions of `math` that take draws; of other arguments they are what they were."""
    names = FUNCTIONS & vars(math).keys()
    return Replacements((math, name, _taking_draws(vars(math)[name])) for name in sorted(names))


def _taking_draws(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def apply(x: Any, *base: Any) -> Any:
        return x.through(lambda value: function(value, *base)) if is_draw(x) else function(x, *base)

    return apply
