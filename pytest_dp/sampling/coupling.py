"""Common random numbers of two inputs: run by run, or row by row where a call gives many draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pytest_dp.arrays import Outputs
from pytest_dp.limits import TRIAL_RUNS
from pytest_dp.sampling.calling import Call
from pytest_dp.sampling.deadline import Deadline
from pytest_dp.sampling.keys import Purpose
from pytest_dp.sampling.per_run import draw_per_run, try_per_run
from pytest_dp.sampling.row_aligned import draw_row_aligned, try_row_aligned
from pytest_dp.sampling.streams import stream

TRIAL_KEY = (Purpose.TRIAL, 0, 0)
"""Key of the streams on which mechanisms are tried."""


def draw_shared(
    call: Call,
    data: Any,
    count: int,
    sequence: np.random.SeedSequence,
    idle: frozenset[int],
) -> tuple[Outputs, bytes | None]:
    """The outputs of a shared chunk, and a digest that has to be the same on every input, if any.

    Raises CannotCouple if a check shows that draws of the chunk depend on each other.
    """
    if call.size is None:
        return draw_per_run(call, data, count, sequence, idle), None
    return draw_row_aligned(call, data, count, sequence)


def try_coupling(
    calls: Sequence[tuple[Call, Any]],
    seed: int,
    deadline: Deadline,
    rows: int | None = None,
) -> frozenset[int]:
    """Try whether draws on two inputs may be shared; which sources need no restart.

    Each input comes with a call of a copy that is used for nothing else; `rows` is the number of
    draws in each call of a vectorised mechanism. Raises CannotCouple if draws may not be shared,
    and OutOfTime if the deadline passes first.
    """
    if calls[0][0].size is None:
        return try_per_run(calls, stream(seed, *TRIAL_KEY), deadline)
    rows = rows or 2 * TRIAL_RUNS
    try_row_aligned(calls, stream(seed, *TRIAL_KEY, rows), deadline, rows)
    return frozenset()
