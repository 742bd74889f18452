"""The trace of a run on stand-ins: its decisions, with the conditions that they depend on.

The noise of such a run does not depend on the inputs, but through its scale.
"""

from __future__ import annotations

import linecache
import sys
import types
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import z3

from pytest_dp.basics.errors import ClaimError, MechanismError
from pytest_dp.basics.reprs import SHORT_LENGTH
from pytest_dp.basics.whose_code import is_project_file
from pytest_dp.proposers.stand_ins import (
    CONVERSIONS,
    Truth,
    arrays_of_stand_ins,
    find_stand_in,
    is_stand_in,
    parts_of_output,
    plain_values,
    term,
)
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import CannotCopy
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generator_stand_ins import (
    RNG,
    CannotInstrument,
    Instrument,
    Request,
    stand_in,
)
from pytest_dp.running.instrumented import apply_instrument, shadow
from pytest_dp.running.laws import draw_kind_of, size_of

MAX_BRANCHES = 1_000
"""Branches of a run that are noted. More take memory; fewer miss late ones."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction of the project's code."""

    file: str = ""
    line: int = 0
    offset: int = -1
    """In the code of its function; -1 of a comparison that is released, not decided."""

    def __str__(self) -> str:
        """Return its line, as in ``line 12 `if total > 50```."""
        text = linecache.getline(self.file, self.line).strip()
        text = text if len(text) <= SHORT_LENGTH else f"{text[: SHORT_LENGTH - 6]} (...)"
        where = f"{Path(self.file).name}:{self.line}" if self.file else "the output"
        return f"{where} `{text}`" if text else where


@dataclass(frozen=True, slots=True)
class Branch:
    """A decision: where, how many were made there before, its condition, and whether it held."""

    place: Instruction
    number: int
    condition: Any
    held: bool

    @property
    def key(self) -> tuple[Instruction, int]:
        return self.place, self.number

    @property
    def taken_condition(self) -> Any:
        """The condition of going the same way."""
        return self.condition if self.held else z3.Not(self.condition)

    @property
    def other_condition(self) -> Any:
        """The condition of going the other way."""
        return z3.Not(self.condition) if self.held else self.condition


class Trace:
    """A record of a run on stand-ins, for z3.

    `branches` are its decisions in order. `facts` are conditions that formulas rest on, each behind
    a number of branches. `scales` are those of its noise that depend on the inputs. `concrete`
    counts what turned stand-ins into plain values.
    """

    def __init__(self) -> None:
        self.branches: list[Branch] = []
        self.facts: list[tuple[int, Any]] = []
        self.scales: list[Any] = []
        self.concrete: Counter[str] = Counter()
        self._numbers: Counter[Instruction] = Counter()

    def note_decision(self, condition: Any, held: bool) -> bool:
        """Note a condition with its outcome `held`, up to `MAX_BRANCHES` of them; return `held`."""
        if len(self.branches) < MAX_BRANCHES:
            self._note(_place(sys._getframe(1)), condition, held)  # noqa: SLF001
        return held

    def note_released(self, condition: Any, held: bool) -> None:
        """Append a comparison that is part of the output to `branches`."""
        self._note(Instruction(), condition, held)

    def _note(self, place: Instruction, condition: Any, held: bool) -> None:
        self.branches.append(Branch(place, self._numbers[place], condition, held))
        self._numbers[place] += 1

    def assume(self, fact: Any) -> None:
        """Append a condition that later formulas rest on to `facts`."""
        self.facts.append((len(self.branches), fact))

    def note(self, what: str) -> None:
        """Count that stand-ins became plain values, for the reason `what`."""
        self.concrete[what] += 1

    def conditions_before(self, at: int) -> list[Any]:
        """Return the conditions under which the run comes to `branches[at]`."""
        facts = [fact for since, fact in self.facts if since <= at]
        return facts + [branch.taken_condition for branch in self.branches[:at]]


def _place(frame: types.FrameType | None) -> Instruction:
    """Return the innermost instruction of the project's code; without one, that of the output."""
    while frame is not None and not is_project_file(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return Instruction()
    return Instruction(frame.f_code.co_filename, frame.f_lineno, frame.f_lasti)


class Centred(Instrument):
    """An instrument that answers draws by the centres of their laws; without one, seeded draws.

    Equal draws have equal answers on every input, up to scale and location.
    """

    words = bytes(32)

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self._trace = trace

    def other(self, source: Any, name: str) -> Any:
        """Return an attribute, which does not draw, of a seeded generator."""
        return getattr(self.real_generator(source.kind), name)

    def draw(self, request: Request) -> Any:
        """Return the centre of the law; a seeded draw if the law has none."""
        try:
            centre = self._centre(request)
        except (TypeError, ValueError, AttributeError):
            centre = None
        return self._draw_plainly(request) if centre is None else centre

    def _centre(self, request: Request) -> Any:
        """Return the centre of the law in the shape of the draw, and note its scales in the trace.

        None if the law has no centre, or the draw writes into an array.
        """
        standard_of = draw_kind_of(request).standard
        if standard_of is None or request.arguments.get("out") is not None:
            return None
        law, scale, location = standard_of(request.arguments)
        if law.family.centre is None:
            return None
        scales = np.ravel(np.asarray(scale, object)).tolist()
        self._trace.scales += [term(each) for each in scales if is_stand_in(each)]
        size = size_of(request)
        shape = np.broadcast_shapes(np.shape(scale), np.shape(location)) if size is None else size
        middle = float(law.family.centre(law.parameter))
        if size is None and not shape:
            return location + scale * middle
        return np.asarray(location + np.multiply(scale, np.full(shape, middle)))

    def _draw_plainly(self, request: Request) -> Any:
        """Return a seeded draw; stand-ins in it become plain values, which the trace notes."""
        given = [*request.args, *request.keywords.values()]
        found = find_stand_in(given)
        if found is not None and request.method != "shuffle":  # which only moves them
            found.trace.note(f"{request.source.name}.{request.method}")
            args = tuple(map(plain_values, request.args))
            named = {name: plain_values(value) for name, value in request.keywords.items()}
            request = Request(request.source, request.method, args, named)
        generator = self.real_generator(request.source.kind)
        return getattr(generator, request.method)(*request.args, **request.keywords)


def trace_run(call: Call, data_of: Callable[[Trace], Any], deadline: Deadline) -> Trace | None:
    """Run a copy of the mechanism on stand-ins; return its trace, None if it could not be run.

    `data_of` makes the stand-in of the input, and may raise StagingError. A run that raises has a
    trace up to there, unless the mechanism is vectorised.
    """
    trace = Trace()
    instrument = Centred(trace)
    try:
        copied, _ = call.copy_unseeded()
        data = data_of(trace)
        shadow(copied.mechanism, CONVERSIONS)
        with apply_instrument(instrument, deadline), arrays_of_stand_ins().in_place():
            output = copied.draw_one(data, stand_in(instrument, RNG))
    except (CannotCopy, CannotInstrument, ClaimError, MechanismError, OutOfTime):
        return None
    for part in parts_of_output(output):
        if type(part) is Truth:  # which nothing decided
            trace.note_released(part.condition, part.value)
    return trace
