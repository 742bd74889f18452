"""Smoothed runs: a number is an array over inputs and draws, and a comparison is true to a degree.

All draws are fixed. A number of a run is an array: one axis for inputs that are run side by side,
one for draws. A comparison forks the run into two paths. The paths have weights that sum to 1, by a
sigmoid of the difference of both sides, in units of the standard deviation over the draws. So each
path has a weight for each input and draw, and the probability of an output is the mean weight of
the paths to it: a smooth function of the inputs.

A sigmoid is the distribution function of logistic noise: smoothing adds a little noise to each
comparison, which makes variances 5 % larger here.

Source: Bichsel, Gehr, Drachsler-Cohen, Tsankov, Vechev, "DP-Finder", CCS 2018, Section 5: the rules
of Figure 8 follow from forking, and no code is rewritten. There the steepness is the same for all
noise.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partialmethod
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import expit

from pytest_dp.basics.arrays import Floats
from pytest_dp.basics.errors import ClaimError, MechanismError
from pytest_dp.methods.families import Side
from pytest_dp.oracles.branching import Branching, Path, Weight, explore_paths
from pytest_dp.oracles.deferred import (
    COMPARISONS,
    Deferred,
    Function,
    as_draw_array,
    elementwise,
    is_draw,
    is_plain_number,
    objects,
)
from pytest_dp.oracles.enumerated import flatten_output
from pytest_dp.outputs.raised import Raised
from pytest_dp.running.calling import Call, RunCounter
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generator_stand_ins import (
    RNG,
    CannotInstrument,
    make_generator,
    stand_in,
    was_drawn_unasked,
)
from pytest_dp.running.instrumented import StandsFor, apply_instrument, shadow
from pytest_dp.running.laws import INTEGERS, Law

STEEPNESS = float(8)
"""Of sigmoids, per spread of a margin. Derived: 1/8 adds pi^2 / 3 / 64, or 5 %, to a variance."""
MAX_COMPARISONS = 1_000
"""In one run. With more, runs that compare draws for ever take longer to be given up."""
HARD = math.inf
"""The steepness of comparisons as they are."""
UNKNOWN_LEFT = 1e-6
"""Probability of paths not followed. Larger: less exact gradients; smaller: slower."""
MAX_PATHS = 256
"""Paths that are followed. More take longer; with fewer, gradients are less exact."""


class Smoothing(Branching):
    """A stand-in for generators that returns arrays of `draws` numbers, all made from `seed`."""

    def __init__(self, draws: int, seed: int, steepness: float = STEEPNESS) -> None:
        self.draws, self.steepness, self.spread = draws, steepness, 0.0
        self.weights: Floats = np.ones((1, 1))
        """Weights of the path of the present run, shape (inputs or 1, draws or 1)."""
        self._seed = seed
        self._fixed: dict[tuple[int, Law], Floats] = {}
        super().__init__()

    def start(self, path: Path) -> None:
        """Begin a run along a path: no draw was made, and all weights are 1."""
        super().start(path)
        self.drawn = 0
        self.weights = np.ones((1, 1))

    def takes(self, law: Law) -> bool:
        """Return whether a draw is an array here: all but uniform draws of whole numbers."""
        return law.family is not INTEGERS

    def choose(self, weights: Sequence[Weight]) -> int:
        """Fork the run, multiply its weights by the branch's probability, and return the branch."""
        branch = super().choose(weights)
        self.weights = self.weights * float(weights[branch])
        return branch

    def fork(self, chances: Floats) -> bool:
        """Fork the run at a comparison, and return whether it goes on as if the comparison holds.

        `chances` are degrees from 0 to 1, shape (inputs or 1, draws or 1). The weights of the run
        are multiplied by the degrees of its branch. After `MAX_COMPARISONS`, notes a refusal.
        """
        if len(self.path.taken) >= MAX_COMPARISONS:
            self.refuse(f"it compares draws more than {MAX_COMPARISONS:,} times")
        weighted = self.weights * chances
        total = float(self.weights.mean())
        share = float(weighted.mean()) / total if total else 0.5
        holds = self.path.choose([share, 1 - share]) == 0
        self.weights = weighted if holds else self.weights * (1 - chances)
        return holds

    def degree_above(self, margins: Floats, *, equal: bool = False) -> Floats:
        """Return the degrees (0 to 1) to which margins are above 0, or at least 0 if `equal`."""
        if self.steepness == HARD:
            return np.asarray(margins >= 0 if equal else margins > 0, float)
        chances: Floats = expit(self.steepness / self.spread_of(margins) * margins)
        return chances

    def degree_equal(self, margins: Floats) -> Floats:
        """Return the degrees (0 to 1) to which margins are 0; all 0 if not all margins are whole.

        A margin without noise may be any number.
        """
        if self.steepness == HARD:
            return np.asarray(margins == 0, float)
        if margins.shape[-1] > 1 and (margins % 1).any():
            return np.zeros(margins.shape)
        nearness: Floats = np.exp(-self.steepness * margins**2)
        return nearness

    def value_of(self, law: Law) -> Any:
        """Return the numbers of the next draw of a run; the first run makes and keeps them."""
        key = self.drawn, law
        self.drawn += 1
        if key not in self._fixed:
            generator = make_generator(Generator, struct.pack("<4Q", self._seed, self.drawn, 0, 0))
            self._fixed[key] = law.draws(generator, self.draws)[None, :]
        return Smooth(self, self._fixed[key])

    def spread_of(self, margins: Floats) -> float:
        """Return the standard deviation of margins over the draws, on the first input.

        If it is 0, return the largest deviation so far, or 1. Updates that largest deviation.
        """
        spread = float(margins[0].std())
        self.spread = max(self.spread, spread)
        return spread or self.spread or 1.0


class Smooth(Deferred):
    """A number of a smoothed run: `values` has shape (inputs or 1, draws or 1).

    Arithmetic gives further such numbers; comparisons fork the run.
    """

    __slots__ = ("values",)
    instrument: Smoothing

    def __init__(self, instrument: Smoothing, values: Floats) -> None:
        super().__init__(instrument)
        self.values = values

    def average(self, weights: Floats) -> float:
        """Return the average of the values with these weights, which broadcast with them."""
        values, weights = np.broadcast_arrays(self.values, weights)
        return float(np.average(values, weights=weights))

    def combine(self, other: Any, function: Function) -> Any:
        """Return a function of this number and another; NotImplemented for other objects."""
        if isinstance(other, Smooth):
            return Smooth(self.instrument, function(self.values, other.values))
        if not is_plain_number(other):
            return NotImplemented
        return Smooth(self.instrument, function(self.values, float(other)))

    def of(self, function: Callable[[Floats], Any]) -> Smooth:
        """Return a function of this number."""
        return Smooth(self.instrument, np.asarray(function(self.values), float))

    __neg__ = partialmethod(of, operator.neg)
    __abs__ = partialmethod(of, np.abs)
    __floor__ = partialmethod(of, np.floor)
    __ceil__ = partialmethod(of, np.ceil)
    __trunc__ = partialmethod(of, np.trunc)

    def __round__(self, digits: int | None = None) -> Any:
        return self.of(lambda values: np.round(values, digits or 0))

    def __converted__(self, kind: type) -> Any:
        return self.of(np.trunc) if kind is int else self

    def is_above(self, *, equal: bool) -> bool:
        """Fork the run at the comparison with 0, and return which branch the run takes."""
        return self.instrument.fork(self.instrument.degree_above(self.values, equal=equal))

    def __eq__(self, other: object) -> Any:
        margins = self.combine(other, operator.sub)
        if margins is NotImplemented:
            return margins
        return other is self or self.instrument.fork(self.instrument.degree_equal(margins.values))

    def __getattr__(self, name: str) -> Any:
        """Return the method that numpy calls on objects in arrays: a function of one number."""
        ufunc = getattr(np, name, None)
        if isinstance(ufunc, np.ufunc) and ufunc.nin == 1:
            return lambda: self.of(ufunc)
        raise AttributeError(f"a draw has no attribute {name!r}")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Return a function of numpy, applied to the arrays of the numbers; comparisons fork."""
        if method != "__call__" or keywords.keys() - {"dtype", "casting"}:
            return getattr(ufunc, method)(*map(objects, inputs), **keywords)
        if any(isinstance(value, np.ndarray) and value.ndim for value in inputs):
            return as_draw_array(elementwise(ufunc, *map(objects, inputs)))
        if ufunc.__name__ in COMPARISONS:
            return ufunc(*map(objects, inputs))
        plain = [value.item() if isinstance(value, np.ndarray) else value for value in inputs]
        if ufunc.nout != 1:
            self.refuse(f"np.{ufunc.__name__} of a draw")
        values = [value.values if is_draw(value) else value for value in plain]
        return Smooth(self.instrument, np.asarray(ufunc(*values), float))

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        """Return other functions of numpy, applied to arrays of numbers as objects."""
        if function in (np.round, np.around):
            return round(args[0], *args[1:], **keywords)
        made = function(*(objects(arg) if is_draw(arg) else arg for arg in args), **keywords)
        return as_draw_array(made) if isinstance(made, np.ndarray) and made.ndim else made


NUMBER_TYPES = {kind.__name__: StandsFor.of(kind) for kind in (float, int)}
"""Stand-ins for types by the names under which a mechanism finds them."""

Key = tuple[Hashable, tuple[Any, ...]]
"""The form of an output, and its values; `Smooth` stands for each number with noise."""


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """An output of a mechanism on one path, with the weights of the path."""

    key: Key
    numbers: tuple[Smooth, ...]
    """The numbers with noise, in order."""
    weights: Floats
    """Weights of the path, shape (inputs or 1, draws or 1)."""


@dataclass(frozen=True, slots=True)
class Output:
    """A set of outputs: all of one form, with numbers on one side of a threshold each."""

    key: Key
    signs: tuple[int, ...]
    """For each number: 1 if it is above its threshold, -1 if below, 0 if it has no threshold."""

    def chance(self, weighed: Weighed, thresholds: Floats) -> Floats | float:
        """Return the weights of a path times the degree to which its output is in this set.

        `thresholds` has a row for each input, a column for each number with a threshold. The result
        broadcasts to shape (inputs, draws).
        """
        if weighed.key != self.key:
            return 0.0
        chance, columns = weighed.weights, iter(thresholds.T)
        for number, sign in zip(weighed.numbers, self.signs, strict=True):
            if sign:
                margins = sign * (number.values - next(columns)[:, None])
                chance = chance * number.instrument.degree_above(margins)
        return chance

    def contains(self, output: Any, thresholds: Floats) -> bool:
        """Return whether an output of a real run is in this set."""
        leaves: list[Any] = []
        form, values = self.key
        if flatten_output(output, leaves) != form or len(leaves) != len(values):
            return False
        left, signs = iter(thresholds.tolist()), iter(self.signs)
        for leaf, value in zip(leaves, values, strict=True):
            if value is not Smooth:
                if leaf != value:
                    return False
            elif (sign := next(signs)) and not sign * (leaf - next(left)) > 0:
                return False
        return True


Asked = tuple[Output, Floats]
"""An output, with a row of thresholds for each vector."""


class Smoothed:
    """A copy of a mechanism whose runs are smoothed, on several inputs side by side where it can.

    If the mechanism raises with arrays in place of input numbers, it is run on one input after the
    other. Raises CannotCopy if the mechanism cannot be copied. Methods raise CannotInstrument if
    the mechanism raises with arrays in place of draws, and OutOfTime.
    """

    def __init__(self, call: Call, smoothing: Smoothing, deadline: Deadline) -> None:
        self.smoothing, self._deadline, self._side_by_side = smoothing, deadline, True
        (mechanism, params), _ = Pristine((call.mechanism, call.params)).copy()
        shadow(mechanism, NUMBER_TYPES)
        # These are no runs of the audit.
        self._call = replace(call, mechanism=mechanism, params=params, made=RunCounter())

    def chances(self, side: Side, vectors: Floats, asked: Sequence[Asked]) -> Floats:
        """Run the mechanism on the inputs of vectors, and return the chance of each output.

        The result has shape (outputs, vectors, draws); its mean over the draws is a probability.
        """
        outcomes = self._run_side_by_side(side, vectors)
        if outcomes is None:
            rows = [
                self.chances(side, vectors[[row]], [(out, t[[row]]) for out, t in asked])
                for row in range(len(vectors))
            ]
            return np.concatenate(rows, axis=1)
        total = np.zeros((len(asked), len(vectors), self.smoothing.draws))
        for number, (output, thresholds) in enumerate(asked):
            for outcome in outcomes:
                total[number] += output.chance(outcome, thresholds)
        return total

    def weigh_outputs(self, side: Side, vector: Floats) -> list[Weighed]:
        """Run one input, of a vector of shape (1, numbers); return outputs of all likely paths."""
        outcomes = self._run_side_by_side(side, vector)
        assert outcomes is not None
        return outcomes

    def _run_side_by_side(self, side: Side, vectors: Floats) -> list[Weighed] | None:
        """Run all likely paths on inputs side by side, and return their outputs.

        None for several inputs if the mechanism takes one input at a time only, as all later calls
        know.
        """
        numbers = side.numbers(vectors)
        if self._side_by_side:
            columns = [column[:, None] for column in numbers.T]
            try:
                return self._follow_paths(
                    lambda: side.build([Smooth(self.smoothing, c) for c in columns])
                )
            except CannotInstrument:
                self._side_by_side = False
        if len(vectors) > 1:
            return None
        return self._follow_paths(lambda: side.build(numbers[0].tolist()))

    def _follow_paths(self, data: Callable[[], Any]) -> list[Weighed]:
        """Run up to `MAX_PATHS` likely paths, and return their outputs; may raise OutOfTime."""
        found: list[Weighed] = []
        with apply_instrument(self.smoothing, self._deadline):
            for _, outcome, left in explore_paths(lambda path: self._run(path, data)):
                if outcome is not None:
                    found.append(outcome)
                if left < UNKNOWN_LEFT or len(found) >= MAX_PATHS:
                    break
                if self._deadline.remaining() <= 0:
                    raise OutOfTime
        for outcome in found:
            for number in outcome.numbers:
                self.smoothing.spread_of(number.values)
        return found

    def _run(self, path: Path, data: Callable[[], Any]) -> Weighed | None:
        """Run one path, and return its output; None if the run was abandoned on the way.

        Raises CannotInstrument if the mechanism raises, or draws other than through the stand-in.
        """
        smoothing = self.smoothing
        smoothing.start(path)
        try:
            output = self._call.draw_one(data(), stand_in(smoothing, RNG))
        except (ClaimError, MechanismError) as error:  # as vectorised mechanisms raise
            raise CannotInstrument(str(error).partition("\n")[0]) from None
        if smoothing.abandoned:
            return None
        if smoothing.refusal or was_drawn_unasked():
            raise CannotInstrument(smoothing.refusal or "compiled code draws from its generator")
        if isinstance(output, Raised):
            raise CannotInstrument(f"it {output}, with draws that are arrays")
        leaves: list[Any] = []
        form = flatten_output(output, leaves)
        numbers = tuple(leaf for leaf in leaves if isinstance(leaf, Smooth))
        plain = tuple(Smooth if isinstance(leaf, Smooth) else leaf for leaf in leaves)
        return Weighed((form, plain), numbers, smoothing.weights)
