"""Losses on a pair of inputs that are known without a sample, and why they may be wrong.

What is derived may be wrong, as of code that treats numbers differently that are traced. So it is
held against outputs of real runs before anybody is told.

Rows of vectorised calls are held against each other and against calls of one row. Where the draws
of rows change places, their outputs have to, and a call of one row with the draws of a row has to
give its output. So rows share no draws, their places make no difference, and what is known of calls
of one row holds for each of them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import default_rng

from pytest_dp.basics.arrays import Floats
from pytest_dp.basics.reach import reach
from pytest_dp.oracles.alignment import Alignment
from pytest_dp.oracles.checking import differences
from pytest_dp.oracles.enumerated import EnumeratedPair
from pytest_dp.oracles.handing_out import Replayer
from pytest_dp.oracles.standard_draws import Numbers, Plan
from pytest_dp.privacy import Guarantee
from pytest_dp.running.calling import Call, RunCounter
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import Deadline, interruptible
from pytest_dp.running.generator_stand_ins import CannotInstrument
from pytest_dp.running.generators import seed_randomness
from pytest_dp.running.laws import Law

ROUNDING = 1e-9
"""Relative error after a few operations. Larger: a leak of more than delta counts as one of delta;
smaller: rounding makes a difference."""

KnownPair = EnumeratedPair | Alignment
"""The loss between the outputs on D and on D', as far as it is known."""

RUNS = 2
"""Runs of the copy that is looked at. With one, what only the second run changes goes unseen."""
KEEPS = "it keeps something from run to run"
SINGLE_ROWS = 20
"""Rows of a call that are held against calls of one row. With fewer, calls that treat their rows
otherwise if these are many go unseen more often; with more, each size of calls takes longer."""
ROW_ROUNDING = 1e-9
"""Difference of rows that counts as rounding, relative to the largest number in them: arrays are
summed in another order than single numbers."""
SHARED = "rows of a vectorised call are not what calls of one row give with the same draws"


def parameter_of(known: KnownPair, guarantee: Guarantee) -> tuple[float, float]:
    """Return the parameter of a guarantee on a pair, and its error.

    Raises CannotInstrument if it is unknown.
    """
    if isinstance(known, Alignment):
        return known.parameter_of(guarantee), 0.0
    if guarantee.parameter != "eps":
        raise CannotInstrument(f"a claim of {guarantee.parameter}")
    value, error = known.eps_at(guarantee.delta)
    if guarantee.delta and value > guarantee.claimed:  # a leak of delta may round to more
        value, error = known.eps_at(guarantee.delta * (1 + ROUNDING))
    return value, error


def doubt_about(call: Call, data: Any, deadline: Deadline) -> str:
    """Return why traced runs may not tell what later ones do; empty if nothing speaks for it.

    Raises what the mechanism raises, and OutOfTime if the deadline passes.
    """
    copied, (on_copy,) = call.copied(data)
    copied = replace(copied, made=RunCounter())  # these are no samples
    before = content_of(copied)
    sequence = np.random.SeedSequence(0)
    with interruptible(deadline, None), seed_randomness(sequence, copied.captured) as rng:
        for _ in range(RUNS):
            copied.draw_one(on_copy, rng)
    has_cached = any(cache.cache_info().currsize for cache in _caches(copied))
    if has_cached or content_of(copied) != before:
        return KEEPS
    return ""


def content_of(call: Call) -> bytes:
    """Return a mechanism and its parameters as text: the same as long as nothing changes."""
    return Pristine((call.mechanism, call.params)).content


def _caches(call: Call) -> Iterator[Any]:
    for value, _ in reach((call.mechanism, "")):
        if isinstance(value, functools._lru_cache_wrapper):  # noqa: SLF001
            yield value


class RowDraws:
    """The draws of some rows of a call: each row has an entry along the first axis of draws."""

    def __init__(self, numbers: Numbers, count: int, chosen: Sequence[int]) -> None:
        self._numbers, self._count, self._chosen = numbers, count, chosen
        self.seed = numbers.seed

    def standard(self, order: int, law: Law, count: int) -> Floats:
        """Return `count` standard draws for the request of this number."""
        each = count // len(self._chosen)
        if each * len(self._chosen) != count:
            raise CannotInstrument(SHARED)
        drawn = self._numbers.standard(order, law, each * self._count)
        own: Floats = drawn.reshape(self._count, each)[list(self._chosen)].ravel()
        return own


def check_rows(call: Call, data: Any, sizes: Iterable[int], deadline: Deadline) -> int:
    """Return how many rows were made to look at rows of calls of some sizes.

    Each call is held against one that is smaller by a row, and whose rows are in another order.
    Draws are from their laws, and from the tails where the size is odd.

    Raises CannotInstrument where a row is not what a call of one row gives, and OutOfTime.
    """
    made = 0
    with Replayer(call, [data], deadline) as replayer:

        def rows_of(numbers: Numbers, size: int, chosen: Sequence[int]) -> Sequence[Any]:
            output = replayer.run(0, RowDraws(numbers, size, chosen), rows=len(chosen)).output
            return [output] if len(chosen) == 1 else list(output)

        for size in sizes:
            numbers = Plan(size, 1 - size % 2, size % 2).numbers()[0]
            outputs = rows_of(numbers, size, range(size))
            order = default_rng(size).permutation(size).tolist()[1:]
            moved = rows_of(numbers, size, order) if order else []
            if not _are_close([outputs[number] for number in order], moved):
                raise CannotInstrument(SHARED)
            single = (0, size - 1, *order[:SINGLE_ROWS])
            for number in single:
                if not _are_close([outputs[number]], rows_of(numbers, size, [number])):
                    raise CannotInstrument(SHARED)
            made += size + len(order) + len(single)
    return made


def _are_close(one: Any, other: Any) -> bool:
    found = differences(one, other)
    if found is None or not found.any():
        return found is not None
    try:
        largest = np.nanmax(np.abs(np.asarray(other, float)), initial=1.0)
    except (TypeError, ValueError):  # no array of numbers
        largest = 1.0
    return bool((found <= ROW_ROUNDING * largest).all())
