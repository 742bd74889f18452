"""Enumeration: every path that a mechanism can take on an input, and its output's distribution."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from pytest_dp.oracles.branching import Path, Weight, explore_paths
from pytest_dp.oracles.deferred import (
    COMBINED,
    COMPARED,
    HELD,
    is_draw,
)
from pytest_dp.oracles.enumerated import Distribution, group_outputs
from pytest_dp.oracles.open_numbers import Enumeration
from pytest_dp.outputs.raised import Raised, attributes
from pytest_dp.running.calling import Call, RunCounter
from pytest_dp.running.chunks import Input
from pytest_dp.running.copies import CannotCopy
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generator_stand_ins import CannotInstrument
from pytest_dp.running.instrumented import apply_instrument, run_copy

MAX_DEPTH = 5
"""Levels of containers in which open draws are looked for. Fewer: deeper ones go unseen."""
WEIGHT_ERROR = 1e-13
"""Relative error of a weight that is no fraction. Smaller: rounding may make a bound too small."""
UNKNOWN_LEFT = 1e-12
"""Probability that may stay unknown. Larger: losses of rare outputs are missed; smaller:
enumeration takes longer."""
MAX_WORK = 8_192
"""Runs of an enumeration. More take longer; fewer: losses are not known."""

TOO_MANY, TOO_SLOW = "too many paths", "runs take too long"


def has_open_draw(output: Any, depth: int = MAX_DEPTH) -> bool:
    """Return whether an output holds a draw whose value is open."""
    if is_draw(output):
        return True
    if isinstance(output, str | bytes | int | float | Raised | None) or not depth:
        return False
    if isinstance(output, np.ndarray):
        inside: Iterable[Any] = output.flat if output.dtype.hasobject else ()
    elif isinstance(output, dict):
        inside = [*output.keys(), *output.values()]
    elif isinstance(output, list | tuple | set | frozenset):
        inside = output
    else:
        inside = (attributes(output) or {}).values()
    return any(has_open_draw(member, depth - 1) for member in inside)


def flatten_output(output: Any, leaves: list[Any]) -> Hashable:
    """Return the structure of an output, whose numbers are added to `leaves`."""
    if is_draw(output):
        leaves.append(output)
        return "number"
    if isinstance(output, np.ndarray):
        if output.dtype.kind == "f":
            leaves += output.ravel().tolist()
            return ("array", output.shape)
        for element in output.astype(object).view(np.ndarray).ravel():
            flatten_output(_as_float(element), leaves)
        return ("array", output.shape)
    if isinstance(output, dict):
        items = [
            (flatten_output(key, []), repr(key), flatten_output(v, leaves))
            for key, v in output.items()
        ]
        return ("dict", *items)
    if isinstance(output, list | tuple):
        return (type(output).__qualname__, *(flatten_output(element, leaves) for element in output))
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        fields = (getattr(output, field.name) for field in dataclasses.fields(output))
        return (type(output).__qualname__, *(flatten_output(value, leaves) for value in fields))
    if isinstance(output, np.generic):
        output = output.item()
    if not isinstance(output, bool | int | float | complex | str | bytes | None):
        raise CannotInstrument(f"its outputs hold objects of type {type(output).__qualname__}")
    leaves.append(output)
    return "number"


def _as_float(element: Any) -> Any:
    """Return an element of an array, whose numbers are all of one type."""
    return float(element) if isinstance(element, bool | int) and abs(element) < 2**53 else element


def enumerate_outputs(call: Call, data: Any, deadline: Deadline) -> Distribution:
    """Return the distribution of a mechanism's outputs on an input, each run being of a new copy.

    What is not enumerated after `MAX_WORK` is residual. Raises CannotInstrument if its paths cannot
    be enumerated, are too many, or take too long.
    """
    try:
        return _distribution(Paths(call, data), deadline)
    except CannotInstrument as reason:
        if str(reason) not in (COMBINED, COMPARED):
            raise
    return _by_shared_draw(call, data, deadline)


def _by_shared_draw(call: Call, data: Any, deadline: Deadline) -> Distribution:
    """Return the distribution where draws are compared with the first one.

    Where comparisons put kinks into integrands shows in a first round.
    """
    first = Enumeration(shared=True)
    _distribution(Paths(call, data, first), deadline)
    return _distribution(Paths(call, data, Enumeration(shared=True, found=first)), deadline)


def _distribution(paths: Paths, deadline: Deadline) -> Distribution:
    with enumeration(paths.instrument, deadline):
        paths.explore(deadline)
        return paths.distribution()


@contextmanager
def enumeration(instrument: Enumeration, deadline: Deadline) -> Iterator[None]:
    """Put an instrument in place for runs; raises CannotInstrument where they cannot be made."""
    try:
        with apply_instrument(instrument, deadline):
            yield
    except CannotCopy as reason:
        raise CannotInstrument(str(reason)) from None
    except OutOfTime:
        raise CannotInstrument(TOO_SLOW) from None
    except (MemoryError, RecursionError) as error:
        raise CannotInstrument(type(error).__name__) from None


class Paths:
    """The runs of an enumeration.

    `outputs` and `weights` are those of paths that came to an end; `left` and `abandoned` are the
    weights of paths that were not run, and of those that were given up. `inexact` is the most
    rounded choices on a path.
    """

    def __init__(
        self,
        call: Call,
        data: Any,
        instrument: Enumeration | None = None,
    ) -> None:
        self.call = replace(call, made=RunCounter())  # no runs of the audit
        self.data = data if isinstance(data, Input) else Input(data)
        self.instrument = instrument or Enumeration()
        self.outputs: list[Any] = []
        self.weights: list[Weight] = []
        self.left: Weight = 1
        self.abandoned: Weight = 0
        self.runs = self.inexact = self.choices = 0
        # after so many runs, so much of the probability has to be known
        self._steps = iter(((64, 0.1), (256, 0.65), (1_024, 0.95)))
        self._next: tuple[float, float] = next(self._steps)

    def explore(
        self, deadline: Deadline, path_of: Callable[[tuple[int, ...]], Path] = Path
    ) -> None:
        """Run along all paths, or as many as there is work for; raises OutOfTime."""
        for _, _, left in explore_paths(self._run, path_of):
            self.left = left
            if self._are_done():
                return
            if deadline.remaining() <= 0:
                raise OutOfTime

    def _run(self, path: Path) -> None:
        instrument = self.instrument
        instrument.start(path)
        self.runs += 1
        output = None
        try:
            output = run_copy(self.call, self.data, instrument)
            if not instrument.abandoned and not instrument.refusal and has_open_draw(output):
                instrument.refuse(HELD)
        except CannotInstrument:
            if not instrument.abandoned:
                raise
        if instrument.refusal:  # the mechanism may have caught it
            raise CannotInstrument(instrument.refusal)
        self.choices += len(path.taken)
        if instrument.abandoned:
            self.abandoned += path.weight
            return
        self.inexact = max(self.inexact, instrument.inexact)
        self.outputs.append(output)
        self.weights.append(path.weight)

    def _are_done(self) -> bool:
        """Return whether enough is known, or no more will be.

        Raises CannotInstrument if too little is known after so much work.
        """
        left, work = float(self.left + self.abandoned), self.runs + self.choices / 10
        while work >= self._next[0]:
            if left > UNKNOWN_LEFT and 1 - left < self._next[1]:
                raise CannotInstrument(TOO_MANY)
            self._next = next(self._steps, (math.inf, 0.0))
        return left <= UNKNOWN_LEFT or work >= MAX_WORK

    def distribution(self) -> Distribution:
        residual = max(self.left, 0) + self.abandoned
        return group_outputs(self.outputs, self.weights, residual, self.rounding)

    @property
    def rounding(self) -> float:
        """The relative error of weights."""
        return self.inexact * (WEIGHT_ERROR)
