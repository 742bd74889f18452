"""Shared pieces: restarted run by run, or aligned row by row where a call gives many draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pytest_dp.arrays import Outputs
from pytest_dp.sampling.alignment import FIRST, draw_aligned, tried_aligned
from pytest_dp.sampling.calling import Call
from pytest_dp.sampling.deadline import Deadline
from pytest_dp.sampling.hidden import Hidden
from pytest_dp.sampling.restarting import draw_restarted, tried_restarted

TRIAL_KEY = (0, 0, 0)
"""Key of the streams on which mechanisms are tried."""


def draw_shared(
    call: Call,
    data: Any,
    count: int,
    sequence: np.random.SeedSequence,
    hidden: Hidden,
    idle: frozenset[int],
) -> tuple[Outputs, bytes | None]:
    """The outputs of a shared piece, and a digest that has to be the same on every input, if any.

    Raises
    ------
    CannotCouple
        If a check shows that draws of the piece depend on each other.
    """
    if call.size is None:
        return draw_restarted(call, data, count, sequence, hidden, idle), None
    return draw_aligned(call, data, count, sequence, hidden)


def tried(
    calls: Sequence[tuple[Call, Any]],
    seed: int,
    hidden: Hidden,
    deadline: Deadline,
    rows: int | None = None,
) -> frozenset[int]:
    """Try whether draws on two inputs may be shared; which sources need no restart.

    Parameters
    ----------
    calls : sequence of (Call, data)
        For each of the inputs; of a copy that is used for nothing else.
    seed : int
    hidden : Hidden
        The generators of the copy.
    deadline : Deadline
    rows : int, optional
        Draws in each call of a vectorised mechanism.

    Raises
    ------
    CannotCouple
        If they may not.
    OutOfTime
        If the deadline passes first.
    """
    if calls[0][0].size is None:
        return tried_restarted(calls, seed, TRIAL_KEY, hidden, deadline)
    tried_aligned(calls, seed, TRIAL_KEY, hidden, deadline, rows or FIRST)
    return frozenset()
