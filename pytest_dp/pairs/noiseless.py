"""Runs in which each draw gives a fixed value: the centre of its law, or a point away from it.

As these values are the same on every input, runs differ by their inputs alone. Whatever an event
can tell counts: numbers (also in texts), types, names, the order of keys.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats, copy_data
from pytest_dp.basics.errors import ClaimError, MechanismError
from pytest_dp.data.relations import WithParams
from pytest_dp.outputs.flatten import flatten
from pytest_dp.outputs.leaves import NUMBERS, as_float, category, type_name
from pytest_dp.outputs.raised import Raised
from pytest_dp.pairs.unreached import LineTracer
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import CannotCopy, Pristine
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.generator_stand_ins import (
    RNG,
    CannotInstrument,
    Instrument,
    Request,
    answer_request,
    make_generator,
    stand_in,
    was_drawn_unasked,
)
from pytest_dp.running.instrumented import apply_instrument
from pytest_dp.running.laws import (
    GEOMETRIC,
    INTEGERS,
    NORMAL,
    UNIFORM,
    Law,
    Standard,
    draw_kind_of,
    size_of,
)

MAX_DRAWS = 10_000
"""Draws of one run, after which it is given up: with fixed draws, some loops never end."""
MAX_ENDLESS = 3
"""Runs at one point that draw without end, after which none is made there."""
GOLDEN, SILVER = 0.6180339887498949, 0.41421356237309515
"""Fractions whose multiples differ, by which draws away from the centre differ."""
FAR_POINTS = 100
"""Points from here on are up to six times as far from the centre: noise that rarely comes."""
CENTRE, AWAY = 0, 1
"""The points at which runs are made: each draw at its centre, and away from it."""


UNSEEN_CHECKED_EVERY = 50
"""Runs between checks whether compiled code drew. With more, it is noticed later."""

MAX_LEAVES = 10_000
"""Leaves of one output that are read. Those behind are not seen to move."""
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])")
"""A number in a text, which stands by itself."""


@dataclass(frozen=True, slots=True)
class GeneratorCall:
    """The request of one call of a generator."""

    method: str
    law: Hashable
    """The family with its parameter, or what is known of the arguments; equal for equal laws."""
    scale: Floats
    """Of each single draw, in order; 1 where the law has none."""
    gaussian: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class OutputReading:
    """The leaves of one output."""

    form: tuple[Any, ...]
    """The places of the leaves, the types of containers and of numbers, and the order of keys."""
    numbers: Floats
    """Finite numbers as they are; 0 in place of others."""
    categories: tuple[Any, ...]
    """Texts, truths, missing values, NaN and infinities, with their places among the leaves."""
    raised: bool = False
    """Whether the run raised: then what it said is the output."""


@dataclass(frozen=True, slots=True, eq=False)
class NoiselessRun:
    """The requests and the output of one run."""

    draws: tuple[GeneratorCall, ...]
    output: OutputReading


class _TooManyDraws(BaseException):
    """A run drew more often than allowed."""


class _Fixed(Instrument):
    """An instrument that answers each draw with a value fixed by its number in the run and its law.

    At the point `CENTRE` that is the centre of the law. Other points are away from it; `moved` says
    for single draws, by call and place, how far from there they are, in scales.
    """

    words = bytes(32)

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[Any, Floats] = {}
        self.start(CENTRE)

    def start(self, point: int, moved: dict[tuple[int, int], float] | None = None) -> None:
        """Begin another run at a point, with single draws `moved`; forget the draws before."""
        self.refusal = ""
        self.point, self.moved, self.draws = point, moved or {}, list[GeneratorCall]()
        self._plain.clear()

    def draw(self, request: Request) -> Any:
        """Append the call to `draws`, and return its fixed value; seeded draws of an unknown law.

        Raises _TooManyDraws after `MAX_DRAWS` draws in a run.
        """
        number = len(self.draws)
        if number >= MAX_DRAWS:
            raise _TooManyDraws
        arguments = _named_arguments(request)
        standard = _standard_law(request, arguments)
        if standard is None:
            return self._draw_without_law(request, number, arguments)
        law, scale, location = standard
        size = size_of(request, arguments)
        known = (law.family.name, law.parameter)
        if size is None and isinstance(scale, float | int) and isinstance(location, float | int):
            scales = np.array([scale], float)
            self.draws.append(GeneratorCall(request.method, known, scales, law.family is NORMAL))
            value = location + scale * float(self._standard_draws(law, number, 1)[0])
            return round(value) if law.lattice else value
        try:
            scales, locations = np.asarray(scale, float), np.asarray(location, float)
            shape = np.broadcast_shapes(scales.shape, locations.shape)
        except (TypeError, ValueError):
            return self._draw_without_law(request, number, arguments)
        is_number = size is None and not shape
        if size is not None:
            shape = (size,) if isinstance(size, int | np.integer) else tuple(size)
        positions = self._standard_draws(law, number, math.prod(shape))
        flat_scales = np.broadcast_to(scales, shape).ravel() if shape else scales.reshape(1)
        self.draws.append(GeneratorCall(request.method, known, flat_scales, law.family is NORMAL))
        values = locations + scales * positions.reshape(shape)
        if law.lattice:
            values = np.rint(values).astype(int)
        return values.item() if is_number else values

    def _standard_draws(self, law: Law, number: int, count: int) -> Floats:
        """Return the standard draws of a call, by its `number` in the run: shape (count,)."""
        key = (law, number, count, self.point)
        positions = self._known.get(key)
        if positions is None:
            positions = np.full(count, _centre(law))
            if self.point != CENTRE:
                positions = positions + _offsets_away(law, number, count, self.point)
            if len(self._known) < MAX_DRAWS:
                self._known[key] = positions
        for (call, place), by in self.moved.items():
            if call == number and place < count:
                positions = positions.copy()
                positions[place] += by
        return positions

    def _draw_without_law(self, request: Request, number: int, arguments: dict[str, Any]) -> Any:
        """Append the call to `draws`, and return seeded draws, equal in all runs at this point.

        The weights of choices, if there are any, are noted as the law.
        """
        weights = arguments.get("p", arguments.get("weights")) if arguments else None
        law: Hashable = ()
        if weights is not None:
            law = tuple(np.ravel(np.asarray(weights, float)).tolist())
        self.draws.append(GeneratorCall(request.method, law, np.ones(1)))
        seed = number.to_bytes(16, "little") + bytes([self.point % 256]) * 16
        return answer_request(make_generator(request.source.kind, seed), request)

    def other(self, source: Any, name: str) -> Any:
        """Return an attribute that does not draw; generators that it spawns are stand-ins."""
        if name in ("spawn", "jumped"):
            return lambda n=1: [stand_in(self, source) for _ in range(n)]
        return super().other(source, name)


def _copy_input(data: Any) -> Any:
    """Return a copy of an input that a run may change; parameters are shared."""
    if isinstance(data, WithParams):
        return replace(data, data=copy_data(data.data))
    return copy_data(data)


def _named_arguments(request: Request) -> dict[str, Any]:
    """Return the arguments of a draw by name; empty where they do not fit the method."""
    try:
        return request.arguments
    except TypeError:
        return {}


def _standard_law(request: Request, arguments: dict[str, Any]) -> Standard | None:
    """Return the law of a draw with its scale and location; None if unknown or badly called."""
    kind = draw_kind_of(request)
    try:
        return None if kind.standard is None else kind.standard(arguments)
    except (TypeError, ValueError, KeyError):
        return None


def _centre(law: Law) -> float:
    """Return the centre of a law in standard units; 0 for laws that have none."""
    if law.family.centre is not None:
        return law.family.centre(law.parameter)
    if law.family is UNIFORM:
        return 0.5
    return float((law.parameter - 1) // 2) if law.family is INTEGERS else 0.0


def _offsets_away(law: Law, number: int, count: int, point: int) -> Floats:
    """Return how far from the centre the `count` draws of a call are at a point, in scales.

    Each call of a run has its `number`. Continuous draws differ; whole and bounded ones may agree.
    """
    spots = np.asarray(
        (GOLDEN * np.arange(1, count + 1) + SILVER * (number + 1) * (2 * point - 1)) % 1, float
    )
    signs = np.where((spots * 16 % 2) < 1, -1.0, 1.0)
    sizes: Floats = (0.5 + 2 * spots) * (1 if point < FAR_POINTS else 1 + point % 6)
    low, _ = law.support
    if law.family is UNIFORM:
        sizes = np.asarray(signs * np.minimum(sizes, 2.4) / 5, float)
    elif law.family is INTEGERS:
        most = float((law.parameter - 1) // 2)
        sizes = np.minimum(np.rint(sizes * max(most, 1) / 3), most)
    elif law.family is GEOMETRIC:
        sizes = np.rint(sizes * 3)
    elif low == -math.inf:
        sizes = np.asarray(signs * sizes, float)
    return sizes


class NoiselessRunner:
    """A runner of one copy of a mechanism with fixed draws, inside of `in_place`.

    `reason` is why runs cannot be made; it is empty while they can. `tracer` has the lines that
    ran. With `rewrite`, runs are not traced: it is called with the copy of the mechanism and the
    mechanism itself, and may change the copy's functions.
    """

    def __init__(
        self,
        call: Call,
        tracer: LineTracer | None = None,
        rewrite: Callable[[Any, Any], None] | None = None,
    ) -> None:
        self.reason, self.runs = "", 0
        self._is_traced = rewrite is None
        self.tracer = LineTracer() if tracer is None else tracer
        self._fixed = _Fixed()
        self._endless: Counter[int] = Counter()
        self._call: Call | None = None
        try:
            (mechanism, params), _ = Pristine((call.mechanism, call.params)).copy()
            self._call = replace(call, mechanism=mechanism, params=params, input=None)
            if rewrite is not None:
                rewrite(mechanism, call.mechanism)
        except CannotCopy as reason:
            self.reason = str(reason)

    @contextmanager
    def in_place(self, deadline: Deadline) -> Iterator[None]:
        """Answer all draws inside with fixed values; raise OutOfTime once the deadline is over."""
        tracing = self.tracer.tracing() if self._is_traced else nullcontext()
        with apply_instrument(self._fixed, deadline), tracing:
            yield

    def run(
        self, data: Any, point: int = CENTRE, moved: dict[tuple[int, int], float] | None = None
    ) -> NoiselessRun | None:
        """Run the mechanism with fixed draws on a copy of the data; return draws and output.

        `point` says how far all draws are from their centres, `moved` by how many scales single
        draws move, by call and place. An exception of the mechanism is an output; of a vectorised
        mechanism, it gives None. None also if `reason` is set, if the mechanism draws without end,
        or if a draw cannot be fixed. Sets `reason` if compiled code draws.
        """
        if self.reason or self._call is None or self._endless[point] >= MAX_ENDLESS:
            return None
        self.runs += 1
        fixed = self._fixed
        fixed.start(point, moved)
        try:
            output = self._call.draw_one(_copy_input(data), stand_in(fixed, RNG))
        except _TooManyDraws:
            self._endless[point] += 1
            return None
        except (ClaimError, MechanismError, CannotInstrument):
            return None
        if not fixed.refusal and self.runs % UNSEEN_CHECKED_EVERY == 1 and was_drawn_unasked():
            self.reason = "compiled code draws the noise"
        if fixed.refusal or self.reason:
            return None
        return NoiselessRun(tuple(fixed.draws), read_output(output))


def read_output(output: Any) -> OutputReading:
    """Return the numbers and categories of an output, up to its first `MAX_LEAVES` leaves."""
    kind = type(output)
    if kind is np.ndarray and output.dtype.kind in "iuf" and output.size <= MAX_LEAVES:
        numbers = output.ravel().astype(float)
        if np.isfinite(numbers).all():
            return OutputReading((output.shape, output.dtype), numbers, ())
    leaves, _, _, (structure,), _, forms = flatten([output], {kind})
    reader = _Reader([structure, len(leaves), *forms.names])
    for leaf in leaves[:MAX_LEAVES]:
        reader.add(leaf)
    numbers, categories = np.array(reader.numbers, float), tuple(reader.categories)
    return OutputReading(tuple(reader.form), numbers, categories, isinstance(output, Raised))


class _Reader:
    """A collector of the values in one output."""

    def __init__(self, form: list[Any]) -> None:
        self.form = form
        self.numbers: list[float] = []
        self.categories: list[Any] = []

    def add(self, leaf: Any) -> None:
        """Add a leaf: a number, a text with numbers, or a category."""
        if isinstance(leaf, NUMBERS) and not isinstance(leaf, bool):
            self.form.append(type_name(type(leaf)))
            self._add_number(as_float(leaf))
        elif isinstance(leaf, Raised):
            self.form.append(("raised", leaf.kind))
            self._add_text(leaf.message)
        elif isinstance(leaf, str):
            self.form.append("text")
            self._add_text(leaf)
        else:
            self.form.append("category")
            self.categories.append((len(self.form), category(leaf)))

    def _add_text(self, text: str) -> None:
        """Add the numbers in a text, and the text without them as a category."""
        self.categories.append((len(self.form), _NUMBER.sub("#", text)))
        for number in _NUMBER.findall(text):
            self._add_number(float(number))

    def _add_number(self, number: float) -> None:
        """Add a number; NaN and infinities as a category, with 0 among the numbers."""
        if not math.isfinite(number):
            self.categories.append((len(self.form), repr(number)))
            number = 0.0
        self.numbers.append(number)
