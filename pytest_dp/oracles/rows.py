"""Rows of vectorised calls, held against each other and against calls of one row.

Where the draws of rows change places, their outputs have to, and a call of one row with the draws
of a row has to give its output. So rows share no draws, their places make no difference, and what
is known of calls of one row holds for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.random import default_rng

from pytest_dp.basics.arrays import Floats
from pytest_dp.oracles.checking import differences
from pytest_dp.oracles.handing_out import Replayer
from pytest_dp.oracles.standard_draws import Numbers, Plan
from pytest_dp.running.calling import Call
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.generator_stand_ins import CannotInstrument
from pytest_dp.running.laws import Law

SINGLE_ROWS = 20
"""Rows of a call that are held against calls of one row. With fewer, calls that treat their rows
otherwise if these are many go unseen more often; with more, each size of calls takes longer."""
ROUNDING = 1e-9
"""Difference of rows that counts as rounding, relative to the largest number in them: arrays are
summed in another order than single numbers."""
SHARED = "rows of a vectorised call are not what calls of one row give with the same draws"


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
    return bool((found <= ROUNDING * largest).all())
