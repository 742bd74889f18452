"""Runs whose random draws are planned numbers: a *replay* is one such run on each of two inputs."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn, Self

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.oracles.standard_draws import StandardDraws, is_supported
from pytest_dp.oracles.tracked import TrackedRun, tracked_draws
from pytest_dp.outputs.raised import same
from pytest_dp.running.calling import Call, RunCounter
from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generator_stand_ins import (
    RNG,
    CannotInstrument,
    Instrument,
    Request,
    Site,
    Source,
    answer_request,
    plain_generator,
    stack,
    stand_in,
    was_drawn_unasked,
)
from pytest_dp.running.instrumented import apply_instrument
from pytest_dp.running.laws import Law, draw_kind_of, size_of

MAX_DRAWS = 10_000
"""Requests for draws in one run. With more, runs that reject draws for ever are replayed longer
before they are given up."""
MAX_ELEMENTS = 1 << 20
"""Draws in one request. The number of a draw is that of its request times this, plus its place."""
SAME_SCALE = 1e-12
"""Relative difference of scales that count as equal. A larger one hides a loss of that size for
each draw; a smaller one tells apart what differs by rounding."""
TOO_FEW_RUNS = "too few runs are left to replay it"
WIDE = {np.dtype(float), np.dtype(np.int64), np.dtype(bool)}
"""Types of numbers that hold any draw, and what is added to it, without loss."""
SEEDED = "it makes a generator of a seed of its own"
NARROW = "it asks for draws of a narrow type, or in an array of its own"

Shift = Mapping[int, Floats]
"""What is added to the draws of each request, by the number of the request."""


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """A call of a drawing method in a run, such as ``rng.laplace(size=3)``, with its draws' law."""

    number: int
    """How many requests the run had made before."""
    law: Law | None
    """None where the law of the method is not known."""
    scale: Floats
    """The scale of each draw of the request; empty where the law is not known."""
    request: Request
    line: tuple[int, int]
    """A hash of the lines of code that asked, and how often they had asked before."""
    stack: tuple[Site, ...] = ()
    """The lines that lead to the request, innermost first; empty unless draws were tracked."""

    @property
    def count(self) -> int:
        """The number of draws; 0 where the law is not known."""
        return len(self.scale)

    def has_law_of(self, other: AnsweredRequest) -> bool:
        """Return whether both requests ask for draws with the same laws and scales."""
        if self.law is None or other.law is None:
            return (
                self.law is other.law
                and self.request.method == other.request.method
                and same(self.request.args, other.request.args)
                and same(self.request.keywords, other.request.keywords)
            )
        return (
            self.law.family is other.law.family
            and math.isclose(self.law.parameter, other.law.parameter, rel_tol=SAME_SCALE)
            and self.scale.shape == other.scale.shape
            and bool((np.abs(self.scale - other.scale) <= SAME_SCALE * self.scale).all())
        )


@dataclass(frozen=True, slots=True)
class ReplayedRun:
    """A run on one input whose draws were planned numbers."""

    output: Any
    requests: list[AnsweredRequest]
    record: TrackedRun
    """The sums of draws and the comparisons; empty unless the draws were tracked."""
    noise: list[Floats]
    """The draws of each request, without their location."""


class HandingOut(Instrument):
    """Answers each draw of a run by a planned number, plus what a shift adds to the draw."""

    words = bytes(32)

    def begin_run(self, numbers: StandardDraws, shift: Shift, *, tracked: bool) -> None:
        """Forget the last run, and answer the draws of the next one by numbers and a shift."""
        self.refusal = ""
        self._numbers, self._shift, self._tracked = numbers, shift, tracked
        self._record = TrackedRun()
        self._drawn: list[AnsweredRequest] = []
        self._noise: list[Floats] = []
        self._lines: dict[int, int] = {}

    def finish_run(self, output: Any) -> ReplayedRun:
        """Return the run with its output; raise CannotInstrument if a draw was not answered."""
        if was_drawn_unasked():
            self.note("compiled code draws from its generator")
        if self.refusal:
            raise CannotInstrument(self.refusal)
        return ReplayedRun(output, self._drawn, self._record, self._noise)

    def draw(self, request: Request) -> Any:
        """Answer a request by its planned numbers, in the type and shape of the real method.

        Draws of unknown laws come from a seed. Raises CannotInstrument for methods, types and
        numbers of draws that are not replayed.
        """
        if len(self._drawn) >= MAX_DRAWS:
            self.refuse(f"it draws more than {MAX_DRAWS:,} times in a run")
        standard_of = draw_kind_of(request).standard
        if standard_of is None:
            number = self._note_request(None, np.zeros(0), request)
            return answer_request(
                _generator(request.source.kind, self._numbers.seed, number), request
            )
        arguments = request.arguments
        if arguments.get("out") is not None or np.dtype(arguments.get("dtype", float)) not in WIDE:
            self.refuse(NARROW)
        try:
            law, scale, loc = standard_of(arguments)
        except TypeError:
            self.refuse(f"{request} is not replayed")
        if not is_supported(law):
            self.refuse(f"draws of {request.method} are not replayed")
        size, shape = size_of(request), np.broadcast(scale, loc).shape
        is_array = size is not None or bool(shape)
        if size is not None:
            shape = tuple(np.atleast_1d(size).tolist())
        if math.prod(shape) > MAX_ELEMENTS:
            self.refuse(f"it draws more than {MAX_ELEMENTS:,} numbers at once")
        return self._hand_out(request, (law, scale, loc), shape if is_array else None)

    def _hand_out(self, request: Request, standard: Any, shape: tuple[int, ...] | None) -> Any:
        law, scale, loc = standard
        scales = np.array(np.broadcast_to(np.asarray(scale, float), shape or ())).ravel()
        number = self._note_request(law, scales, request)
        noise = self._numbers.standard(number, law, len(scales)) * scales
        shift = self._shift.get(number)
        if shift is not None and len(shift) == len(scales):
            noise = noise + shift
        self._noise[-1] = noise
        values = noise.reshape(shape or ()) + np.asarray(loc)
        if law.lattice:
            values = np.round(values).astype(np.int64)
        if self._tracked:
            places = np.arange(len(scales))
            numbers = (number * MAX_ELEMENTS + places).reshape(shape or ())
            drawn = values if shape is not None else values[()]
            return tracked_draws(drawn, self._record, numbers, loc)
        if shape is not None:
            return values
        return (_type_of_whole(request) if law.lattice else float)(values[()])

    def _note_request(self, law: Law | None, scale: Floats, request: Request) -> int:
        """Add a request to those of the run, and return its number."""
        sites, number = stack() if self._tracked else (), len(self._drawn)
        line = hash(sites)
        times = self._lines[line] = self._lines.get(line, -1) + 1
        self._drawn.append(AnsweredRequest(number, law, scale, request, (line, times), sites))
        self._noise.append(scale)
        return number

    def other(self, source: Source, name: str) -> NoReturn:
        """Refuse a method of a generator that does not draw, such as one that seeds it."""
        self.refuse(f"it uses {source.name}.{name}")

    def created(self, source: Source, seed: tuple[Any, ...]) -> None:  # noqa: ARG002
        """Refuse a generator that the mechanism seeds: its numbers are no random draws."""
        if seed:
            self.refuse(SEEDED)


def _generator(kind: type, seed: tuple[int, ...], number: int) -> Any:
    words = np.random.SeedSequence((*seed, number)).generate_state(8, np.uint32)
    return plain_generator(kind, words.tobytes())


_WHOLE: dict[tuple[type, str], type] = {}


def _type_of_whole(request: Request) -> type:
    """Return the type in which a method returns one whole number."""
    key = request.source.kind, request.method
    if key not in _WHOLE:
        _WHOLE[key] = type(answer_request(plain_generator(request.source.kind, bytes(32)), request))
    return _WHOLE[key]


class Replayer:
    """Runs one copy of a mechanism on a few inputs, with planned numbers for its draws.

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
        copied, own = self._original.copy_alone(*given)
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
        """Run the mechanism on an input, with these numbers plus the shift as its draws.

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
