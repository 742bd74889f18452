"""Runs with given numbers in place of draws, held against what was traced: they have to agree.

A traced run shows what a mechanism does with objects that stand for draws. Here it gets plain
numbers, of the types that real generators give, on every way that the trace went, and has to put
out what follows from the trace. All runs are of one copy, so that what it keeps from run to run
shows as well.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng

from pytest_dp.arrays import Floats
from pytest_dp.known.affine import Affine
from pytest_dp.known.branching import Branching
from pytest_dp.known.finite import Finite
from pytest_dp.known.outcomes import Outcome, opened
from pytest_dp.known.paths import Path, Weight
from pytest_dp.known.trace import EVERYWHERE, Interval
from pytest_dp.limits import EQUAL, MANY, STEPS, THOUSAND
from pytest_dp.outputs.outcome import Raised
from pytest_dp.randomness.catalogue import draw_kind_of
from pytest_dp.randomness.laws import INTEGERS, UNIFORM, Law
from pytest_dp.randomness.requests import RNG, Request, Source, answer_request
from pytest_dp.randomness.stand_ins import CannotInstrument, stand_in, was_drawn_unasked
from pytest_dp.sampling.calling import Call, Made
from pytest_dp.sampling.chunks import Input
from pytest_dp.sampling.deadline import Deadline
from pytest_dp.sampling.instrumented import apply_instrument

Plan = tuple[Outcome, list[float]]
"""An outcome, and numbers for its draws."""
OTHERWISE = "with plain numbers it does something else than with draws that are traced"
SHARED = "rows of a vectorised call may share draws"
SEEDED = "it makes a generator of a seed of its own"


class Forced(Branching):
    """Answers draws by numbers that were chosen before, in the types of real draws."""

    def begin(self, laws: Sequence[Law], numbers: Sequence[Any]) -> None:
        """Begin a run whose draws have these laws, and in their standard form these values.

        Of a vectorised call, the values of each row.
        """
        self.start(Path())
        self._laws, self._numbers, self._used = laws, numbers, 0

    def check(self) -> None:
        """Raise CannotInstrument unless all draws were asked for, and nothing else was."""
        if was_drawn_unasked() or self.refusal or self._used < len(self._laws):
            raise CannotInstrument(self.refusal or OTHERWISE)

    def takes(self, law: Law) -> bool:  # noqa: ARG002
        """Any law."""
        return True

    def value_of(self, law: Law) -> Any:
        """The next number, if it is of this law."""
        if self._used >= len(self._laws) or self._laws[self._used] != law:
            self.refuse(OTHERWISE)
        self._used += 1
        number = self._numbers[self._used - 1]
        return round(number) if law.lattice else number

    def integer(self, count: int, low: int = 0) -> Any:
        return low + self.value_of(Law(INTEGERS, count))

    def choose(self, weights: Sequence[Weight]) -> int:
        """The branch that the next number falls into, as in a trace."""
        cuts = list(itertools.accumulate(map(float, weights[:-1])))
        return bisect_left(cuts, self.value_of(Law(UNIFORM)))

    def number(self, law: Law, scale: Any, loc: Any) -> Any:
        return loc + scale * self.value_of(law) if scale else loc

    def draw(self, request: Request) -> Any:
        """A number, or an array of them, as a real generator would give it."""
        value = super().draw(request)
        if draw_kind_of(request).standard is None:
            return value
        real = answer_request(self.plain(request.source.kind), request)
        if isinstance(real, np.ndarray):
            real[...] = value  # in memory of its own, as a real one
            return real
        return type(real)(value)

    def created(self, source: Source, seed: tuple[Any, ...]) -> None:  # noqa: ARG002
        if seed:
            self.refuse(SEEDED)


class ForcedRows(Forced):
    """The same for a vectorised call: each row of what is drawn has the numbers of its own run."""

    most = STEPS * THOUSAND

    def value_of(self, law: Law) -> Any:  # noqa: ARG002
        """A draw that several rows would share."""
        self.refuse(SHARED)

    def array(self, law: Law, scale: Any, loc: Any, room: Any) -> Any:
        rows, each = len(self._numbers), math.prod(room.shape[1:])
        laws = self._laws[self._used : self._used + each]
        if room.shape[0] != rows or len(laws) < each or any(other != law for other in laws):
            self.refuse(SHARED)
        values = np.asarray(self._numbers)[:, self._used : self._used + each].reshape(room.shape)
        self._used += each
        return loc + scale * (values.astype(np.int64) if law.lattice else values)


def replayed(
    call: Call,
    data: Any,
    outcomes: Sequence[Outcome],
    runs: int,
    deadline: Deadline,
    calls: Iterable[int] = (),
) -> int:
    """How many runs on an input, or rows, gave what follows from its traced outcomes.

    Vectorised calls are as large as `calls` say; by default there are two of a thousand rows or
    so.

    There is at least one run for each outcome that numbers were found for, unless there are more
    than `runs`; these are the likeliest. Every other run has draws that lie far out, where real
    ones hardly ever are. Raises CannotInstrument if a run gives something else.
    """
    if call.size is not None:
        runs = THOUSAND
    plans = list(_plans(outcomes, runs))
    item, done = Input(data), 0
    forced = Forced() if call.size is None else ForcedRows()
    with apply_instrument(forced, deadline):
        if call.size is not None:
            return _replayed_rows(call, item, plans, forced, sorted(calls))
        copied, inputs = call.copy_alone(*(item.fresh() for _ in plans))
        copied = replace(copied, made=Made())
        for (outcome, numbers), fresh in zip(plans, inputs, strict=True):
            forced.begin(outcome.laws, numbers)
            (output,) = copied.draw(fresh, 1, stand_in(forced, RNG))
            forced.check()
            _check(output, outcome, numbers)
            done += 1
            if deadline.remaining() <= 0:
                break
    return done


def _replayed_rows(
    call: Call, item: Input, plans: list[Plan], forced: Forced, calls: Sequence[int]
) -> int:
    """The same in vectorised calls, with a row for each run."""
    laws = plans[0][0].laws if plans else ()
    if not laws or any(list(outcome.laws) != list(laws) for outcome, _ in plans):
        return 0
    calls = calls or [len(plans) - 1, len(plans)]  # of which one is odd
    rows = itertools.cycle(plans)
    copied, inputs = call.copy_alone(*(item.fresh() for _ in calls))
    copied = replace(copied, made=Made())  # these are no samples
    for size, fresh in zip(calls, inputs, strict=True):
        planned = list(itertools.islice(rows, size))
        forced.begin(laws, [numbers for _, numbers in planned])
        outputs = copied.rows(fresh, size, stand_in(forced, RNG))
        forced.check()
        for output, (outcome, numbers) in zip(outputs, planned, strict=True):
            _check(output, outcome, numbers)
    return sum(calls)


def _plans(outcomes: Sequence[Outcome], runs: int) -> Iterator[Plan]:
    """Numbers for the draws of runs, with the outcomes that they should have."""
    generator, rounds = default_rng(len(outcomes)), -(-runs // len(outcomes))
    found = [
        _numbers(outcome, generator, rounds, far_out=number % 2 if rounds == 1 else 0)
        for number, outcome in enumerate(outcomes[:runs])
    ]
    for at in range(rounds):
        for outcome, numbers in zip(outcomes, found, strict=False):
            if numbers:
                yield outcome, numbers[at % len(numbers)]


def _check(output: Any, outcome: Outcome, numbers: Sequence[float]) -> None:
    if not _follows(output, outcome, numbers):
        raise CannotInstrument(OTHERWISE)


def _follows(output: Any, outcome: Outcome, numbers: Sequence[float]) -> bool:
    """Whether an output is what an outcome says of these draws."""
    leaves: list[Any] = []
    structure: Hashable = None if isinstance(output, Raised) else opened(output, leaves)
    if structure != outcome.structure or len(leaves) != len(outcome.leaves):
        return False
    return all(map(_agree, leaves, (_at(leaf, numbers) for leaf in outcome.leaves)))


def _at(leaf: Any, numbers: Sequence[float]) -> tuple[Any, float]:
    """The value of a leaf, and how large the numbers are of which it is made."""
    if isinstance(leaf, Affine):
        summands = leaf.summands(numbers.__getitem__)
        return math.fsum(summands), math.fsum(map(abs, summands))
    leaf = leaf.value_at(numbers.__getitem__) if isinstance(leaf, Finite) else leaf
    leaf = leaf.item() if isinstance(leaf, np.generic) else leaf
    return leaf, abs(leaf) if isinstance(leaf, int | float | complex) else 0.0


def _agree(real: Any, traced: tuple[Any, float]) -> bool:
    value, size = traced
    plain = isinstance(real, int | float) and isinstance(value, int | float)
    if plain and isinstance(real, bool) == isinstance(value, bool):
        if math.isnan(real) or math.isnan(value):
            return math.isnan(real) and math.isnan(value)
        return bool(real == value or abs(real - value) <= EQUAL * size)
    return bool(type(real) is type(value) and real == value)


def _numbers(
    outcome: Outcome, generator: Generator, rounds: int, far_out: int
) -> list[list[float]]:
    """Draws on the way of an outcome for each of some runs; for fewer if no more were found.

    Without conditions, those of every other run are far out: of the first, if `far_out` is 1.
    """
    most = max(THOUSAND * THOUSAND // max(len(outcome.laws), 1), 2)
    count = THOUSAND if outcome.conditions else min(rounds, most)
    if outcome.conditions and count * len(outcome.laws) > 100 * THOUSAND:
        return []
    allowed = [outcome.allowed.get(draw, EVERYWHERE) for draw in range(len(outcome.laws))]
    columns = [_within(*each, count, generator) for each in zip(outcome.laws, allowed, strict=True)]
    if not outcome.conditions:
        apart = slice(1 - far_out, None, 2)
        for column, law, intervals in zip(columns, outcome.laws, allowed, strict=True):
            column[apart] = _anywhere(law, intervals, len(column[apart]), generator)
    holds = np.ones(count, bool)
    for condition in outcome.conditions:
        total = sum(by * columns[draw] for draw, by in condition.terms.items())
        holds &= total > -condition.constant
    rows = np.flatnonzero(holds)[:rounds]
    return [[float(column[row]) for column in columns] for row in rows]


def _anywhere(law: Law, allowed: Sequence[Interval], count: int, generator: Generator) -> Floats:
    """Draws that are as likely to be in the tails as in the middle, or close to an end."""
    first, last = law.reach
    ends = np.array([(max(low, first), min(high, last)) for low, high in allowed])
    low, high = ends[generator.integers(len(ends), size=count)].T
    share = generator.random(count) ** generator.choice([1, 8], count)
    share = np.where(generator.random(count) < 0.5, share, 1 - share)
    numbers: Floats = low + share * (high - low)
    if law.lattice:
        numbers = np.minimum(np.maximum(np.ceil(numbers), np.floor(low) + 1), np.floor(high))
    else:  # `low` itself is outside
        numbers = np.clip(numbers, np.nextafter(low, math.inf), high)
    return numbers


def _within(law: Law, allowed: Sequence[Interval], count: int, generator: Generator) -> Floats:
    """Draws that lie in some intervals: some of many, or any where these are too rare."""
    values = np.asarray(law.draws(generator, max(count, MANY)), float)
    inside = np.logical_or.reduce([(values > low) & (values <= high) for low, high in allowed])
    if inside.any():
        return np.resize(values[inside], count)
    return _anywhere(law, allowed, count, generator)
