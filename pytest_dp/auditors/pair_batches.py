"""Batches of outputs on a pair of inputs: drawn, counted through its binnings, and kept."""

from __future__ import annotations

from functools import partial

from pytest_dp.auditors.context import Context
from pytest_dp.auditors.pair_state import PairState, joints_of, make_room
from pytest_dp.auditors.pool import Pool
from pytest_dp.basics.arrays import Ints
from pytest_dp.betting.binning import Reader
from pytest_dp.outputs.table import concatenate
from pytest_dp.outputs.targeted import target_of
from pytest_dp.running.deadline import Deadline, within


def draw_batch(
    context: Context,
    pool: Pool,
    state: PairState,
    size: int,
    purpose: int,
    max_kept: int,
    deadline: Deadline,
) -> list[Ints]:
    """Draw `size` outputs on both inputs of a pair; return their counts through its binnings.

    They are kept as long as the pair has at most `max_kept` of them, and there is room.
    """
    outputs = state.outputs
    if outputs.extract is None and not outputs.has_room(size):
        within(deadline.remaining(), partial(make_room, context, state))
    keep = outputs.pairs + size <= max_kept and outputs.has_room(size)
    draws = state.draws(pool, size, purpose, state.batches)
    state.batches += 1
    reader = Reader(state.binnings, keep, outputs.extract)
    parts = context.sampler.measure(draws, reader, deadline)
    state.drawn += size
    if keep:
        batch1, batch2 = (
            concatenate([table for _, table in part if table is not None]) for part in parts
        )
        outputs.add(batch1, batch2, coupled=state.coupled)
        pool.see(state.input1, batch1)
        pool.see(state.input2, batch2)
    return joints_of(parts, state.binnings)


def look_for_target(context: Context, state: PairState) -> None:
    """Find which record outputs may show, unless the user's function says what to look at."""
    if context.settings.features is None:
        inputs = state.pair.inputs
        state.target = target_of(*inputs, state.outputs.examples().raw, context.seed)
