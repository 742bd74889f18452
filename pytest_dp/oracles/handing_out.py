"""Runs whose draws are given: the instrument that hands them out, and what it saw of each run."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
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
class Gap:
    """Draws that one input asks for and the other does not, by their numbers on the former."""

    requests: frozenset[int] = frozenset()
    """Whole requests."""
    elements: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Places in the arrays of requests."""

    def __bool__(self) -> bool:
        return bool(self.requests or self.elements)


NO_GAP = Gap()


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """One request that was answered."""

    number: int
    law: Law | None
    """None where the law of the method is not known."""
    scale: Floats
    """Of each draw."""
    count: int
    """Draws in the request, with those of a gap."""
    request: Request
    line: tuple[int, int]
    """A hash of the line of code that asked, and how often it had asked before."""
    stack: tuple[Site, ...] = ()
    """The lines that lead to the request, innermost first; empty unless draws were tracked."""

    def is_like(self, other: AnsweredRequest) -> bool:
        """Return whether both are draws of the same laws."""
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
    """A run whose draws were given."""

    output: Any
    drawn: list[AnsweredRequest]
    record: TrackedRun
    """Empty unless the draws were tracked."""
    noise: list[Floats]
    """The draws of each request, without their location."""


class HandingOut(Instrument):
    """Answers draws by given numbers, moved by a shift."""

    words = bytes(32)

    def begin(self, numbers: StandardDraws, shift: Shift, gap: Gap, *, tracked: bool) -> None:
        """Begin a run that lacks the draws of the gap."""
        self.refusal = ""
        self._numbers, self._shift, self._gap, self._tracked = numbers, shift, gap, tracked
        self._next, self._record = 0, TrackedRun()
        self._drawn: list[AnsweredRequest] = []
        self._noise: list[Floats] = []
        self._lines: dict[int, int] = {}

    def end(self, output: Any) -> ReplayedRun:
        """Return the run; raises CannotInstrument if some of its draws could not be given."""
        if was_drawn_unasked():
            self.note("compiled code draws from its generator")
        if self.refusal:
            raise CannotInstrument(self.refusal)
        return ReplayedRun(output, self._drawn, self._record, self._noise)

    def draw(self, request: Request) -> Any:
        """Answer a draw with the number planned for it, in the type and shape of the real method.

        Draws of unknown laws come from a seed. Refuses what cannot be replayed.
        """
        if len(self._drawn) >= MAX_DRAWS:
            self.refuse(f"it draws more than {MAX_DRAWS:,} times in a run")
        standard_of = draw_kind_of(request).standard
        if standard_of is None:
            number = self._note(None, np.zeros(0), request, np.zeros(0))
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
        number = self._note(law, scales, request, scales)
        missing = self._gap.elements.get(number, ())
        count = len(scales) + len(missing)
        if missing:
            self._drawn[-1] = replace(self._drawn[-1], count=count)
        noise = self._numbers.standard(number, law, count)
        shift = self._shift.get(number)
        places = np.arange(count)
        if missing:
            noise, places = np.delete(noise, missing), np.delete(places, missing)
        noise = noise * scales
        if shift is not None and len(shift) == count:
            noise = noise + (np.delete(shift, missing) if missing else shift)
        self._noise[-1] = noise
        values = noise.reshape(shape or ()) + np.asarray(loc)
        if law.lattice:
            values = np.round(values).astype(np.int64)
        if self._tracked:
            numbers = (number * MAX_ELEMENTS + places).reshape(shape or ())
            drawn = values if shape is not None else values[()]
            return tracked_draws(drawn, self._record, numbers, loc)
        if shape is not None:
            return values
        return (_type_of_whole(request) if law.lattice else float)(values[()])

    def _note(self, law: Law | None, scale: Floats, request: Request, noise: Floats) -> int:
        """Note a request, and return its number."""
        while self._next in self._gap.requests:
            self._next += 1
        sites = stack() if self._tracked else ()
        line = hash(sites)
        times = self._lines[line] = self._lines.get(line, -1) + 1
        self._drawn.append(
            AnsweredRequest(self._next, law, scale, len(scale), request, (line, times), sites)
        )
        self._noise.append(noise)
        self._next += 1
        return self._next - 1

    def other(self, source: Source, name: str) -> NoReturn:
        """Refuse what does not draw."""
        self.refuse(f"it uses {source.name}.{name}")

    def created(self, source: Source, seed: tuple[Any, ...]) -> None:  # noqa: ARG002
        """Refuse generators whose numbers do not change."""
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
    """Replays one copy of a mechanism on a few inputs, by their numbers, while it is entered.

    It makes `max_runs` runs at most.
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
            self.start_afresh()
            self._stack = self._stack.pop_all()
        return self

    def key(self, side: int) -> Any:
        """Return what is equal for equal inputs, of the input of this number."""
        frozen = self._items[side].frozen
        return id(self._inputs[side]) if frozen is None else frozen

    def start_afresh(self) -> None:
        """Go on with a new copy of the mechanism."""
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
        gap: Gap = NO_GAP,
        *,
        tracked: bool = False,
        rows: int = 1,
    ) -> ReplayedRun:
        """Return a run on the input of this number; of several rows, their outputs in a list.

        Raises CannotInstrument if its draws cannot be given or no run is left, and OutOfTime.
        """
        if self._deadline.remaining() <= 0:
            raise OutOfTime
        if self.runs >= self._max_runs:
            raise CannotInstrument(TOO_FEW_RUNS)
        self.runs += 1
        self._instrument.begin(numbers, shift or {}, gap, tracked=tracked)
        given, rng = self._fresh[side](), stand_in(self._instrument, RNG)
        output = (
            self._call.draw_one(given, rng) if rows == 1 else self._call.draw_rows(given, rows, rng)
        )
        return self._instrument.end(output)
