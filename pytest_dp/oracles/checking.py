"""Replays of a pair of inputs: runs on both with the same draws, whose outputs have to agree."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.random import default_rng

from pytest_dp.basics.arrays import Floats
from pytest_dp.oracles.handing_out import (
    MAX_ELEMENTS,
    AnsweredRequest,
    HandingOut,
    Numbers,
    Plan,
    ReplayedRun,
    Shift,
    StandardDraws,
)
from pytest_dp.outputs.flatten import flatten
from pytest_dp.outputs.raised import Raised, equal_outputs
from pytest_dp.running.calling import Call, RunCounter
from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generator_stand_ins import RNG, CannotInstrument, stand_in
from pytest_dp.running.instrumented import apply_instrument

ROUNDING_TRIALS = 6
"""Replays with rounding errors. Fewer: alignments are dropped where a ratio amplifies such
errors."""
ROUNDING_ERROR = 2.0**-47
"""Relative size of such errors: that of 32 operations on floats."""
AMPLIFIED = 8.0
"""How many times more than in these trials outputs may differ."""
MAX_INPUTS_KEPT = 4
"""Inputs of which runs are kept for further pairs. Fewer: shared data are run for each pair."""
TOO_FEW_RUNS = "too few runs are left to replay it"
SCALES_DEPEND = "the scale of a draw depends on other draws"
OTHER_LAWS = "it draws from other laws, or more often, on one input than on the other"
OUTPUTS_DIFFER = "no shift of its draws cancels the difference of the inputs"
ROUNDING = 1e-13
"""Relative difference of equal numbers. Larger: exact numbers of large datasets look equal."""


class NotAligned(Exception):  # noqa: N818  a way out, not an error
    """An error if no alignment was found; the message says why."""


@dataclass(slots=True)
class Memory:
    """Runs and counts that alignments on several pairs of one mechanism share."""

    runs: dict[Any, tuple[Any, dict[Any, ReplayedRun]]] = field(default_factory=dict)
    """Runs with draws that are not moved, by the input and the plan of the replays; and the input,
    of which no other object may get the identity."""
    made: int = 0
    """Runs for replays so far, whether an alignment was found or not."""
    max_runs: float = math.inf
    """Runs for replays, at most; after so many, no further alignment is found."""
    by_path: bool = False
    """Whether the last pair was aligned by a shift for each path: the next is tried so first."""

    def side_with_runs(self, keys: Sequence[Any], plan: Plan) -> int:
        """Return 1 if runs of the plan are kept of the second of two input keys alone, else 0."""
        of_one, of_other = ((key, *plan.key) in self.runs for key in keys)
        return int(of_other and not of_one)

    def runs_on(self, key: Any, data: Any, plan: Plan) -> dict[Any, ReplayedRun]:
        """Return the kept runs on an input by the seeds of their draws: a dict, which callers fill.

        Inputs of one `key` are equal; `data` is held so that its id stays its own. The inputs used
        longest ago are forgotten.
        """
        kept = self.runs.pop((key, *plan.key), (data, {}))
        while len(self.runs) >= MAX_INPUTS_KEPT:
            del self.runs[next(iter(self.runs))]
        self.runs[key, *plan.key] = kept
        return kept[1]


class Replayer:
    """A copy of a mechanism that runs on a few inputs, with planned numbers for its draws.

    Use it as a context manager: draws are answered while it is entered. Inputs are named by their
    place in `inputs`. `runs` counts the runs so far, of which there are `max_runs` at most.
    """

    def __init__(
        self, call: Call, inputs: Sequence[Any], deadline: Deadline, max_runs: float = math.inf
    ) -> None:
        self._instrument, self._deadline, self.runs = HandingOut(), deadline, 0
        self._original, self._inputs, self._max_runs = call, inputs, max_runs

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self._stack.enter_context(apply_instrument(self._instrument, self._deadline))
        with self._stack:  # closed again if there is no copy
            self._items = [Input(data) for data in self._inputs]
            self.renew_copy()
            self._stack = self._stack.pop_all()
        return self

    def key_of_input(self, side: int) -> Any:
        """Return a key of an input, which is equal for equal inputs."""
        frozen = self._items[side].frozen
        return id(self._inputs[side]) if frozen is None else frozen

    def renew_copy(self) -> None:
        """Replace the copy of the mechanism by a new one; raise CannotCopy if there is none."""
        given = [item.fresh() for item in self._items]
        copied, own = self._original.copy_unseeded(*given)
        self._call = replace(copied, made=RunCounter())  # these are no samples
        self._fresh: list[Callable[[], Any]] = [
            item.fresh if mine is theirs else partial(copy.deepcopy, mine)
            for item, mine, theirs in zip(self._items, own, given, strict=True)
        ]

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]

    def run(
        self,
        side: int,
        numbers: StandardDraws,
        shift: Shift | None = None,
        *,
        tracked: bool = False,
        rows: int = 1,
    ) -> ReplayedRun:
        """Run the mechanism on an input, with planned numbers plus the shift as its draws.

        With several `rows`, its output holds as many outputs. Raises CannotInstrument if a draw
        cannot be answered or no run is left, and OutOfTime after the deadline.
        """
        if self._deadline.remaining() <= 0:
            raise OutOfTime
        if self.runs >= self._max_runs:
            raise CannotInstrument(TOO_FEW_RUNS)
        self.runs += 1
        self._instrument.begin_run(numbers, shift or {}, tracked=tracked)
        given, rng = self._fresh[side](), stand_in(self._instrument, RNG)
        output = (
            self._call.draw_one(given, rng) if rows == 1 else self._call.draw_rows(given, rows, rng)
        )
        return self._instrument.finish_run(output)


@dataclass(slots=True)
class Pairing:
    """The replays of a pair of inputs in one direction: from the source to the target.

    `source` and `target` are the places of the inputs in the replayer.
    """

    replayer: Replayer
    source: int
    target: int
    sizes: dict[int, float] = field(default_factory=dict)
    """By the number of a request: the largest number that its draws were added to in any run."""

    def run_on_source(self, numbers: Numbers, *, tracked: bool = False) -> ReplayedRun:
        """Run the mechanism on the source, and return the run."""
        return self.note_sizes(self.replayer.run(self.source, numbers, tracked=tracked))

    def run_on_target(
        self, numbers: Numbers, shift: Shift, *, tracked: bool = False
    ) -> ReplayedRun:
        """Run the mechanism on the target, with the draws moved by a shift, and return the run."""
        return self.note_sizes(self.replayer.run(self.target, numbers, shift, tracked=tracked))

    def note_sizes(self, run: ReplayedRun) -> ReplayedRun:
        """Update `sizes` by the sums of a run, and return the run."""
        for each in run.record.sums:
            for at, _ in each.form:
                number = at // MAX_ELEMENTS
                self.sizes[number] = max(abs(each.constant), self.sizes.get(number, 0.0))
        return run

    def agrees(self, numbers: Numbers, shift: Shift, output: Any, moved: ReplayedRun) -> bool:
        """Return whether an output on the source equals that of a run on the target, to rounding.

        If they differ, runs the mechanism again on the target up to six times, with draws that are
        moved by rounding errors: outputs may differ by eight times as much as these runs do.
        """
        found = differences(output, moved.output)
        if found is not None and not found.any():
            return True
        generator, spread = default_rng(numbers.seed), np.zeros(0 if found is None else len(found))
        for _ in range(ROUNDING_TRIALS):
            rounded = {
                each.number: self._add_rounding_errors(generator, shift, each, noise)
                for each, noise in zip(moved.requests, moved.noise, strict=True)
                if each.law is not None and not each.law.lattice
            }
            again = self.run_on_target(numbers, {**shift, **rounded}).output
            apart = differences(output, again)
            if apart is not None and not apart.any():
                return True
            apart = differences(moved.output, again)
            if found is not None and apart is not None:
                spread = np.maximum(spread, apart)
        return found is not None and bool((found <= AMPLIFIED * spread).all())

    def _add_rounding_errors(
        self, generator: Any, shift: Shift, each: AnsweredRequest, noise: Floats
    ) -> Floats:
        """Return the shift of a request's draws plus or minus errors as of their arithmetic."""
        before = shift.get(each.number, np.zeros(len(noise)))
        size = np.abs(noise).max(initial=0.0) + np.abs(before).max(initial=0.0)
        size += self.sizes.get(each.number, 0.0)
        moved: Floats = before + generator.choice([-1.0, 1.0], len(before)) * ROUNDING_ERROR * size
        return moved


class Laws:
    """The laws of the draws of all replays of a pair, which may not depend on input or draws."""

    def __init__(self) -> None:
        self._first: dict[Any, AnsweredRequest] = {}

    def check(self, ours: ReplayedRun, theirs: ReplayedRun, key: Any = None) -> None:
        """Raise NotAligned unless two runs have draws of the laws of all earlier runs of the key.

        A key names a path of the mechanism, if shifts differ between paths.
        """
        left, right = ours.requests, theirs.requests
        if len(left) != len(right) or not all(map(AnsweredRequest.has_law_of, left, right)):
            raise NotAligned(OTHER_LAWS)
        for each in left:
            before = self._first.setdefault((key, each.number), each)
            if before.law is not None and not before.has_law_of(each):
                raise NotAligned(SCALES_DEPEND)


_FRACTION = re.compile(r"(-?\d+\.\d+(?:[eE][-+]?\d+)?|-?\d+[eE][-+]?\d+)")
"""A number with a fraction in a text."""


def differences(left: Any, right: Any) -> Floats | None:
    """Return by how much each number of two outputs differs; None if anything else differs.

    Numbers that differ by rounding of their last digits differ by 0; equal exceptions give [].
    """
    if isinstance(left, Raised) or isinstance(right, Raised):
        return np.zeros(0) if left == right else None
    if type(left) is type(right) is float:
        found = _difference(left, right)
        return None if found is None else np.array([found])
    types = {type(left), type(right)}
    flat, _, offsets, _, structures, forms = flatten([left, right], types)
    if structures[0] != structures[1] or forms.which[0] != forms.which[1]:
        return None
    ours, theirs = flat[: offsets[1]], flat[offsets[1] :]
    each = [_difference(one, other) for one, other in zip(ours, theirs, strict=True)]
    return None if any(value is None for value in each) else np.array(each, float)


def _difference(left: Any, right: Any) -> float | None:
    """Return how far apart two leaves of outputs are: 0 if equal, None if no numbers say how far.

    Texts are as far apart as the numbers with a fraction in them.
    """
    if type(left) is not type(right):
        return None
    if isinstance(left, float | np.floating | complex | np.complexfloating):
        if left == right or (left != left and right != right):
            return 0.0
        difference = abs(left - right)
        if not np.isfinite(difference):
            return None
        small = difference <= ROUNDING * max(abs(left), abs(right))
        return 0.0 if small and not (_is_whole(left) and _is_whole(right)) else float(difference)
    if isinstance(left, str) and left != right:
        ours, theirs = _FRACTION.split(left), _FRACTION.split(right)  # numbers at odd places
        if ours[::2] != theirs[::2]:
            return None
        found = differences([*map(float, ours[1::2])], [*map(float, theirs[1::2])])
        return None if found is None else float(found.max(initial=0.0))
    return 0.0 if equal_outputs(left, right) else None


def _is_whole(number: Any) -> bool:
    """Return whether a number may be an identifier or a count: such numbers are not rounded."""
    return isinstance(number, float | np.floating) and bool(number % 1 == 0)
