"""Probabilities of outputs as smooth functions of inputs, by runs on numbers that are arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.basics.errors import ClaimError, MechanismError
from pytest_dp.methods.families import Side
from pytest_dp.methods.smooth import Smooth, Smoothing, functions_of_draws
from pytest_dp.oracles.branching import Path, explore_paths
from pytest_dp.oracles.enumerating import flatten_output
from pytest_dp.outputs.raised import Raised
from pytest_dp.running.calling import Call, Made
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generator_stand_ins import CannotInstrument, stand_in, was_drawn_unasked
from pytest_dp.running.instrumented import apply_instrument
from pytest_dp.running.requests import RNG
from pytest_dp.running.shadowing import StandsFor, shadow

MAX_OUTPUTS = 6
"""Outputs of a path whose probabilities are followed. More take longer; fewer may miss the one
that leaks."""
UNKNOWN_LEFT = 1e-6
"""Probability of paths that are not followed. Larger: gradients are less exact; smaller: they take
longer."""
MAX_PATHS = 256
"""Paths that are followed. More take longer; with fewer, gradients are less exact."""

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
        self._call = replace(call, mechanism=mechanism, params=params, made=Made())

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
        with apply_instrument(self.smoothing, self._deadline), functions_of_draws().in_place():
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
            output = self._call.one(data(), stand_in(smoothing, RNG))
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
