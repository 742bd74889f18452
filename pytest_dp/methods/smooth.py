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
    elementwise,
    is_draw,
    is_plain_number,
    objects,
    of_draws,
)
from pytest_dp.oracles.enumerated import flatten_output
from pytest_dp.outputs.raised import Raised
from pytest_dp.running.calling import Call, RunCounter
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generator_stand_ins import (
    RNG,
    CannotInstrument,
    plain_generator,
    stand_in,
    was_drawn_unasked,
)
from pytest_dp.running.instrumented import StandsFor, apply_instrument, shadow
from pytest_dp.running.laws import INTEGERS, Law

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
MAX_OUTPUTS = 6
"""Outputs of a path whose probabilities are followed. More take longer; fewer may miss the one
that leaks."""
UNKNOWN_LEFT = 1e-6
"""Probability of paths that are not followed. Larger: gradients are less exact; smaller: they take
longer."""
MAX_PATHS = 256
"""Paths that are followed. More take longer; with fewer, gradients are less exact."""


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
        """Return whether draws of a law are numbers here: all but those of few whole numbers."""
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
        return self.of(np.trunc) if kind is int else self

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
            self.refuse(f"np.{ufunc.__name__} of a draw")
        values = [value.values if is_draw(value) else value for value in plain]
        return Smooth(self.instrument, np.asarray(ufunc(*values), float))

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        """Return other functions of numpy, by what they do with objects."""
        if function in (np.round, np.around):
            return round(args[0], *args[1:], **keywords)
        made = function(*(objects(arg) if is_draw(arg) else arg for arg in args), **keywords)
        return of_draws(made) if isinstance(made, np.ndarray) and made.ndim else made


NUMBER_TYPES = {kind.__name__: StandsFor.of(kind) for kind in (float, int)}
"""Stand-ins for types by the names under which a mechanism finds them."""

Key = tuple[Hashable, tuple[Any, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """An output of a mechanism on one path."""

    key: Key
    """Its form, and its values; `Smooth` stands for numbers with noise."""
    numbers: tuple[Smooth, ...]
    """With noise."""
    weights: Floats
    """Of the path, of shape (inputs, draws or 1)."""


@dataclass(frozen=True, slots=True)
class Output:
    """A set of outputs: of one form, with numbers on one side of a threshold."""

    key: Key
    signs: tuple[int, ...]
    """Of each number: 1 if it is above its threshold, -1 if below; 0 if it may be anything, and
    then it has none."""

    def chance(self, weighed: Weighed, thresholds: Floats) -> Floats | float:
        """Return the weighted degree to which the outcome of a path is in it, by input and draw.

        Thresholds have a row for each input, and are those of numbers that have one.
        """
        if weighed.key != self.key:
            return 0.0
        chance, columns = weighed.weights, iter(thresholds.T)
        for number, sign in zip(weighed.numbers, self.signs, strict=True):
            if sign:
                margins = sign * (number.values - next(columns)[:, None])
                chance = chance * number.instrument.above(margins)
        return chance

    def holds(self, output: Any, thresholds: Floats) -> bool:
        """Return whether an output of a real run is in it."""
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


def outputs_of(
    outcomes: Sequence[Weighed], least: float, rng: np.random.Generator
) -> dict[Key, tuple[Output, Floats]]:
    """Return outputs that are likely enough, with thresholds at the averages of their numbers.

    Of many numbers, a few have a threshold. Their side of it is random.
    """
    found: dict[Key, tuple[Output, Floats]] = {}
    for outcome in outcomes:
        if outcome.weights.mean() >= least:
            count = len(outcome.numbers)
            signs = np.zeros(count, int)
            some = rng.permutation(count)[:MAX_OUTPUTS]
            signs[some] = rng.choice([-1, 1], len(some))
            averages = [number.average(outcome.weights) for number in outcome.numbers]
            thresholds = np.array(averages)[signs != 0]
            found[outcome.key] = Output(outcome.key, tuple(signs.tolist())), thresholds
    return found


Asked = tuple[Output, Floats]
"""An output, with a row of thresholds for each vector."""


class Smoothed:
    """A copy of a mechanism, which is run on several inputs at once where it can be.

    It may refuse arrays in place of numbers of its input, if not in place of draws; then it is run
    on one input after the other. Raises CannotCopy if there is no copy; and by its methods
    CannotInstrument if the mechanism does with numbers what arrays cannot do, or raises, and
    OutOfTime.
    """

    def __init__(self, call: Call, smoothing: Smoothing, deadline: Deadline) -> None:
        self.smoothing, self._deadline, self._side_by_side = smoothing, deadline, True
        (mechanism, params), _ = Pristine((call.mechanism, call.params)).fresh()
        shadow(mechanism, NUMBER_TYPES)
        # These are no runs of the audit.
        self._call = replace(call, mechanism=mechanism, params=params, made=RunCounter())

    def chances(self, side: Side, vectors: Floats, asked: Sequence[Asked]) -> Floats:
        """Return the probability of each output, by outputs, vectors and draws."""
        outcomes = self._together(side, vectors)
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
        """Return the outputs on all likely paths, on the input of a vector, which is a row."""
        outcomes = self._together(side, vector)
        assert outcomes is not None
        return outcomes

    def _together(self, side: Side, vectors: Floats) -> list[Weighed] | None:
        """Return all likely paths on inputs side by side; None if it takes but one at a time."""
        numbers = side.numbers(vectors)
        if self._side_by_side:
            columns = [column[:, None] for column in numbers.T]
            try:
                return self._explore(
                    lambda: side.build([Smooth(self.smoothing, c) for c in columns])
                )
            except CannotInstrument:
                self._side_by_side = False
        if len(vectors) > 1:
            return None
        return self._explore(lambda: side.build(numbers[0].tolist()))

    def _explore(self, data: Callable[[], Any]) -> list[Weighed]:
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
