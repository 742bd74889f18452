"""Runs whose random draws are planned numbers: a *replay* is one such run on each of two inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.random import Generator, default_rng

from pytest_dp.basics.arrays import Bools, Floats
from pytest_dp.oracles.tracked import TrackedRun, tracked_draws
from pytest_dp.outputs.raised import equal_outputs
from pytest_dp.running.generator_stand_ins import (
    CannotInstrument,
    Instrument,
    Request,
    Site,
    Source,
    answer_request,
    make_generator,
    stack,
    was_drawn_unasked,
)
from pytest_dp.running.laws import (
    EXPONENTIAL,
    GEOMETRIC,
    GUMBEL,
    INTEGERS,
    LAPLACE,
    LOGISTIC,
    NORMAL,
    UNIFORM,
    Family,
    Law,
    draw_kind_of,
    size_of,
)

MAX_DRAWS = 10_000
"""Requests for draws in one run. More: runs that reject draws for ever end later."""
MAX_ELEMENTS = 1 << 20
"""Draws in one request. The number of a draw is that of its request times this, plus its place."""
SAME_SCALE = 1e-12
"""Relative difference of equal scales. Larger: hides a loss of that size for each draw."""
WIDE = {np.dtype(float), np.dtype(np.int64), np.dtype(bool)}
"""Types of numbers that hold any draw, and what is added to it, without loss."""
SEEDED = "it makes a generator of a seed of its own"
NARROW = "it asks for draws of a narrow type, or in an array of its own"

MAX_STRATIFIED = 64
"""Elements of an array whose quantiles are spread evenly over the replays. More take memory."""
TAIL_DIGITS = 14.0
"""Tails are replayed down to 10 to minus this, where distribution functions of floats end."""

Shift = Mapping[int, Floats]
"""What is added to the draws of each request, by the number of the request."""


def _normal_quantile(tail: Floats, _: float) -> Floats:
    """Return the lower quantiles of the standard normal law."""
    from scipy.special import ndtri  # loaded where it is of use: workers do without

    quantile: Floats = ndtri(tail)
    return quantile


_SYMMETRIC: dict[Family, Callable[[Floats, float], Floats]] = {
    LAPLACE: lambda tail, _: np.log(2 * tail),
    NORMAL: _normal_quantile,
    LOGISTIC: lambda tail, _: np.log(tail) - np.log1p(-tail),
}
"""Lower quantiles of laws symmetric around 0, at probabilities of at most one half."""
_LOWER: dict[Family, Callable[[Floats, float], Floats]] = {
    EXPONENTIAL: lambda tail, _: -np.log1p(-tail),
    GUMBEL: lambda tail, _: -np.log(-np.log(tail)),
    UNIFORM: lambda tail, _: tail,
    GEOMETRIC: lambda tail, ratio: np.floor(np.log1p(-tail) / math.log(ratio)),
    INTEGERS: lambda tail, count: np.floor(tail * count),
}
_UPPER: dict[Family, Callable[[Floats, float], Floats]] = {
    EXPONENTIAL: lambda tail, _: -np.log(tail),
    GUMBEL: lambda tail, _: -np.log(-np.log1p(-tail)),
    UNIFORM: lambda tail, _: 1 - tail,
    GEOMETRIC: lambda tail, ratio: np.floor(np.log(tail) / math.log(ratio)),
    INTEGERS: lambda tail, count: count - 1 - np.floor(tail * count),
}
"""Quantiles from below and from above, for laws that are not symmetric."""


def quantiles(law: Law, tail: Floats, upper: Bools) -> Floats:
    """Return numbers above which a draw is with probability `tail`; below which, unless `upper`.

    Probabilities are at most one half; `upper` is a mask of their shape.
    """
    family, parameter = law.family, law.parameter
    if family is GEOMETRIC and not parameter:
        return np.zeros(np.shape(tail))
    if family in _SYMMETRIC:
        below = _SYMMETRIC[family](tail, parameter)
        return np.where(upper, -below, below)
    return np.where(upper, _UPPER[family](tail, parameter), _LOWER[family](tail, parameter))


def is_supported(law: Law) -> bool:
    """Return whether the quantiles of a law are known, so that replays can draw from it."""
    return law.family in _SYMMETRIC or law.family in _LOWER


class StandardDraws(Protocol):
    """The standard draws of a run; draws of unknown laws follow from the seed."""

    seed: tuple[int, int]

    def standard(self, order: int, law: Law, count: int) -> Floats: ...


class Numbers:
    """The standard draws (of scale 1, around 0) of one replay: equal for equal requests."""

    def __init__(self, plan: Plan, replay: int) -> None:
        self._plan, self._replay = plan, replay
        self.is_of_tails = replay >= plan.from_laws
        self.seed = (plan.seed, replay)

    def standard(self, order: int, law: Law, count: int) -> Floats:
        """Return `count` draws of a law for the request number `order`."""
        if count > MAX_STRATIFIED:
            return self._independent(order, law, count)
        values: Floats = self._plan.standard(order, law, count)[self._replay]
        return values

    def _independent(self, order: int, law: Law, count: int) -> Floats:
        """Return draws without strata, from the law or from its tails."""
        generator = default_rng((*self.seed, order))
        if self.is_of_tails:
            tail, upper = _from_tails(generator, 1, count)
            return quantiles(law, tail[0], upper[0])
        u = generator.uniform(1e-16, 1, count)
        return quantiles(law, np.minimum(u, 1 - u), u > 0.5)


class Plan:
    """The standard draws of several replays: of `from_laws` from the laws, of others from tails.

    In draws from the laws, the quantiles of each draw are spread evenly: an outcome that a single
    draw decides in one of `from_laws` runs comes in about one of them.
    """

    def __init__(self, seed: int, from_laws: int, from_tails: int) -> None:
        self.seed, self.from_laws, self.from_tails = seed, from_laws, from_tails
        self._values: dict[tuple[int, Law, int], Floats] = {}

    @property
    def key(self) -> tuple[int, int, int]:
        """A key that plans of equal draws share."""
        return self.seed, self.from_laws, self.from_tails

    def standard(self, order: int, law: Law, count: int) -> Floats:
        """Return `count` draws of a law in all replays, shape (replays, count), for a request."""
        key = order, law, count
        if key not in self._values:
            generator = default_rng((self.seed, order))
            strata = generator.random((self.from_laws, count)).argsort(axis=0)
            u = (strata + generator.uniform(1e-9, 1, strata.shape)) / max(self.from_laws, 1)
            tail, upper = _from_tails(generator, self.from_tails, count)
            self._values[key] = quantiles(
                law,
                np.concatenate([np.minimum(u, np.maximum(1 - u, 1e-16)), tail]),
                np.concatenate([u > 0.5, upper]),
            )
        return self._values[key]

    def numbers(self) -> list[Numbers]:
        """Return the draws of each replay; those from tails are mixed among the others."""
        all_of_them = [Numbers(self, replay) for replay in range(self.from_laws + self.from_tails)]
        order = default_rng(self.seed).permutation(len(all_of_them))
        return [all_of_them[at] for at in order]


def _from_tails(generator: Generator, rows: int, count: int) -> tuple[Floats, Bools]:
    """Draw probabilities of tails, shape (rows, count); return them, and a mask of upper tails.

    In each row, all draws are far out, or each with chance 0.3; the others are anywhere. All are
    above, all below, or each on a random side.
    """
    far = generator.random((rows, count)) < generator.choice([0.3, 1.0], (rows, 1))
    tail = np.where(
        far,
        10 ** -generator.uniform(0.31, TAIL_DIGITS, (rows, count)),
        generator.uniform(1e-9, 0.5, (rows, count)),
    )
    side = generator.choice([-1, 0, 1], (rows, 1))
    upper = np.where(side == 0, generator.random((rows, count)) < 0.5, side > 0)
    return tail, upper


# The instrument


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
        """The number of draws; 0 if the law is not known."""
        return len(self.scale)

    def has_law_of(self, other: AnsweredRequest) -> bool:
        """Return whether both requests ask for draws with the same laws and scales.

        If a law is not known, their methods and arguments have to be equal.
        """
        if self.law is None or other.law is None:
            return (
                self.law is other.law
                and self.request.method == other.request.method
                and equal_outputs(self.request.args, other.request.args)
                and equal_outputs(self.request.keywords, other.request.keywords)
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
    """An instrument that answers each draw by a planned number, plus a shift of the draw."""

    words = bytes(32)

    def begin_run(self, numbers: StandardDraws, shift: Shift, *, tracked: bool) -> None:
        """Answer the next run by numbers plus a shift; record sums of draws if `tracked`."""
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
                _seeded_generator(request.source.kind, self._numbers.seed, number), request
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
        """Return planned numbers plus the shift, in a shape; one number if that is None."""
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
        """Raise CannotInstrument for a method that does not draw, such as one that seeds."""
        self.refuse(f"it uses {source.name}.{name}")

    def note_creation(self, source: Source, seed: tuple[Any, ...]) -> None:  # noqa: ARG002
        """Raise CannotInstrument if the mechanism seeds a generator: its numbers are not random."""
        if seed:
            self.refuse(SEEDED)


def _seeded_generator(kind: type, seed: tuple[int, ...], number: int) -> Any:
    """Return a generator of numpy or Python by a seed and the number of a request."""
    words = np.random.SeedSequence((*seed, number)).generate_state(8, np.uint32)
    return make_generator(kind, words.tobytes())


_WHOLE: dict[tuple[type, str], type] = {}


def _type_of_whole(request: Request) -> type:
    """Return the type in which a method returns one whole number."""
    key = request.source.kind, request.method
    if key not in _WHOLE:
        _WHOLE[key] = type(answer_request(make_generator(request.source.kind, bytes(32)), request))
    return _WHOLE[key]
