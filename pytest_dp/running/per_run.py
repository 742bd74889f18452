"""Common random numbers, run by run: before each, every source of random numbers starts afresh.

Two inputs can then share their random numbers run by run, while different runs stay independent,
however many numbers each of them takes. This holds if an output depends on nothing but the input
and the stream, which is tried first, and looked at again and again while outputs are drawn. Both
happen on copies of the mechanism, so that what is audited never gets the same numbers twice.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Outputs
from pytest_dp.outputs.raised import same
from pytest_dp.running.calling import Call
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generators import PYTHONS_NUMBER, RunStreams
from pytest_dp.running.streams import child

ATTEMPTS = 3
"""Attempts with sources that should be idle, and runs of a check. More take longer; fewer: another
thread's draw is taken for the mechanism's."""
RERUN_SHARE = 0.02
"""Share of runs made again, which shows that some depend on others. Larger takes longer; smaller
misses more."""

_FORTH = [(run, side) for side in (0, 1) for run in range(ATTEMPTS)]
SCHEDULE = (*_FORTH, *((run, 1 - side) for run, side in reversed(_FORTH)))
"""Streams and inputs of a trial: each stream twice on either input, in another order than before,
so that an output that depends on earlier runs has other ones before it."""

CHECK_CHILD, ANEW_CHILD = 4, 5
"""Which child of a chunk's seed sequence decides what is checked, and seeds runs that are made
anew; given by `seeded`, which uses the children before these."""


class CannotCouple(Exception):  # noqa: N818  a way out, not an error
    """Draws on two inputs must not share random numbers; the message says why."""


NOTHING_RANDOM = "nothing random within reach"
"""A reason that need not be told: more is gained by nothing else."""
DEPENDS_ON_EARLIER_RUNS = "its outputs depend on earlier runs (a buffer, a cache, a counter)"


def _rerun(call: Call, data: Any, runs: RunStreams, run: int) -> Any:
    return call.draw(data, 1, runs.rng, lambda _: runs.restart(run))[0]


def draw_per_run(
    call: Call,
    data: Any,
    count: int,
    sequence: np.random.SeedSequence,
    idle: frozenset[int],
) -> Outputs:
    """Return the outputs of a chunk, each from its run's stream; check some of them on a copy.

    Raises CannotCouple if an output that was checked depends on more than the input and the stream.
    """
    if threading.current_thread() is not threading.main_thread():
        idle -= {PYTHONS_NUMBER}  # others are at work in this process, and may use it at any time
    before, wasted = call.made.runs, 0
    for _ in range(ATTEMPTS if idle else 1):
        wasted = call.made.runs - before
        outputs = _attempt(call, data, count, sequence, idle)
        if outputs is not None:
            call.made.runs -= wasted  # by others: how many samples there are does not depend on it
            return outputs
    # The mechanism uses a source that it did not use in the trial. Again, with new numbers.
    return draw_per_run(call, data, count, child(sequence, ANEW_CHILD), frozenset())


def _attempt(
    call: Call,
    data: Any,
    count: int,
    sequence: np.random.SeedSequence,
    idle: frozenset[int],
) -> Outputs | None:
    """Return outputs like `draw_per_run`; None if a source that should be idle was used."""
    choose = np.random.default_rng(child(sequence, CHECK_CHILD))
    checked = choose.integers(count, size=int(RERUN_SHARE * count + 0.25 + choose.random()))
    with RunStreams(sequence, count, call.captured, idle) as runs:
        outputs = call.draw(data, count, runs.rng, runs.restart)
        if not runs.are_idle():
            return None
        if len(checked) and not call.captured.generators:
            copied, data = call.spare(data)  # which draws on the same sources
            _check(copied, data, outputs, checked.tolist(), runs)
            runs.are_idle()
    if len(checked) and call.captured.generators:
        copied, data = call.spare(data)
        with RunStreams(sequence, count, copied.captured, idle) as runs:
            _check(copied, data, outputs, checked.tolist(), runs)
    return outputs


def _check(call: Call, data: Any, outputs: Outputs, checked: list[int], runs: RunStreams) -> None:
    """Make some of the runs again: the outputs have to stay."""
    for run in checked:
        if not same(outputs[run], _rerun(call, data, runs, run)):
            raise CannotCouple(DEPENDS_ON_EARLIER_RUNS)


def try_per_run(
    calls: Sequence[tuple[Call, Any]], sequence: np.random.SeedSequence, deadline: Deadline
) -> frozenset[int]:
    """Return which sources are idle, if outputs depend on nothing but the input and the stream.

    Each input comes with a call of a copy that is used for nothing else. Raises CannotCouple if
    draws may not be shared, as where nothing is used that can be restarted, and OutOfTime if the
    deadline passes first.
    """
    captured = calls[0][0].captured
    touched: set[int] = set()
    draw: set[int] = set()
    seen: dict[tuple[int, int], tuple[Any, dict[int, Any]]] = {}
    with RunStreams(sequence, ATTEMPTS, captured, frozenset()) as runs:
        for run, side in SCHEDULE:
            if deadline.remaining() <= 0:
                raise OutOfTime
            output, ends = _trace_run(*calls[side], runs, run)
            earlier, earlier_ends = seen.setdefault((run, side), (output, ends))
            if ends != earlier_ends or not same(output, earlier):
                raise CannotCouple(DEPENDS_ON_EARLIER_RUNS)
            if not ends:  # whether a pure function draws at all depends on the input alone
                raise CannotCouple(DEPENDS_ON_EARLIER_RUNS if side in draw else NOTHING_RANDOM)
            draw.add(side)
            touched |= ends.keys()
    return frozenset(range(3 + len(captured.generators))) - touched


def _trace_run(call: Call, data: Any, runs: RunStreams, run: int) -> tuple[Any, dict[int, Any]]:
    """Return the output of a run, and where it left the sources that it used."""
    runs.restart(run)
    starts = runs.states()
    output = _rerun(call, data, runs, run)
    return output, runs.used_since(starts)
