"""The switch that plays the new betting loop (`pytest_dp.auditing`) in place of `auditors.game`.

Benchmarks and tests ask for it by the environment variable `SWITCH`, to compare both loops. It
takes no part in what users run: results have a verdict, bounds and counts, and no counterexample,
pairs outside of the declared inputs are passed over, and no loss is computed without bets.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

import numpy as np

from pytest_dp.arrays import Bools, Ints
from pytest_dp.attacks.binning import Reader
from pytest_dp.auditing.betting_loop import BettingLoop, Budget
from pytest_dp.auditing.detector import count_batch
from pytest_dp.auditing.pair_queue import PairQueue, PairStatus
from pytest_dp.auditors.bandit import says_that_it_is_empty
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.pair_state import PairState, quantities_of
from pytest_dp.auditors.pool import Pool
from pytest_dp.auditors.result import AuditResult
from pytest_dp.inputs import Pair
from pytest_dp.inputs.sources import Tried
from pytest_dp.limits import (
    COUPLED_SHARE,
    FEW,
    MIN_ROOM,
    OUTPUTS_PER_QUANTITY,
    RESERVE,
    TOTAL_ROOM,
)
from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.features import affordable
from pytest_dp.outputs.hashed import has_seed
from pytest_dp.outputs.outcome import all_raised
from pytest_dp.outputs.table import Table, concatenated
from pytest_dp.outputs.targeted import target_of
from pytest_dp.results.evidence import e_value
from pytest_dp.sampling.chunks import Input
from pytest_dp.sampling.deadline import OutOfTime
from pytest_dp.sampling.per_run import CannotCouple
from pytest_dp.sampling.streams import Purpose
from pytest_dp.statistics.event_ranking import rank_for
from pytest_dp.statistics.ledger import Ledger

SWITCH = "PYTEST_DP_NEW_LOOP"
"""The environment variable; any value but the empty one asks for the new loop."""


def is_asked_for() -> bool:
    """Return whether the new loop should be played."""
    return bool(os.environ.get(SWITCH))


def audit(context: Context) -> AuditResult:
    """Audit one claim by the new loop, with shared random numbers where that is possible."""
    try:
        context.sampler.warm_up(Input(context.pairs[0].inputs[0]), context.deadline)
    except OutOfTime as out:
        context.refuse_hung(out)
    context.screened = context.source.screener.screen()
    if not context.method.coupled:
        return _play(context, Purpose.BET, 1.0, coupled=False)
    try:
        return _play(context, Purpose.BET, COUPLED_SHARE, coupled=True)
    except CannotCouple as reason:  # so all that was won is worth nothing
        context.sampler.note(f"started again without shared random numbers, as {reason}")
        return _play(context, Purpose.RESTART, 1 - COUPLED_SHARE, coupled=False)


def _play(context: Context, purpose: Purpose, share: float, *, coupled: bool) -> AuditResult:
    """Return the result of a game that may spend a share of alpha."""
    given = context.source.given
    queue = PairQueue(given, partial(_propose, context), max(MIN_ROOM, TOTAL_ROOM // len(given)))
    runs = _Runs(context, purpose, coupled=coupled)
    rank = rank_for(context.guarantee, rarest=0.0)
    ledger = Ledger(context.guarantee, share * context.alpha)
    loop = BettingLoop(queue, ledger, runs, runs.features, rank)
    most = int((1 - RESERVE) * context.max_samples - context.sampler.runs) // 2
    try:
        loop.play(Budget(most, context.settings.margin))
    except OutOfTime as out:
        context.refuse_hung(out)
    found = loop.outcome
    if found.refuted:
        context.broken = max(queue.seen, key=lambda status: status.earned).pair
    return context.result(
        "violated" if found.refuted else "no violation",
        lower=found.lower,
        p_value=context.agreeing(min(found.p_value / share, 1.0), found.refuted),
        e_value=share * e_value(found.log_e_value),
        bet_samples=2 * found.drawn,
        pairs=(min(len(queue.seen), len(given)), len(given)),
        proposed=max(0, len(queue.seen) - len(given)),
        **({} if found.power is None else {"resolution": found.power.detects_from}),
        may_lose=None if found.power is None else found.power.not_ruled_out,
    )


def _propose(context: Context, seen: Sequence[Tried]) -> Pair | None:
    """Return a pair of a search that decides the verdict, if one is left."""
    pair = context.source.more(seen)
    while pair is not None and context.only_told(pair):
        pair = context.source.more(seen)
    return pair


class _Runs:
    """Runs of the mechanism on pairs of inputs, by the sampler of an audit."""

    def __init__(self, context: Context, purpose: Purpose, *, coupled: bool) -> None:
        self._context, self._purpose, self._coupled = context, purpose, coupled
        self._pool = Pool()
        self._states: dict[int, PairState] = {}

    def can_couple(self, status: PairStatus) -> bool:
        """Return whether both inputs can be run with the same random numbers."""
        if not self._coupled:
            return False
        sampler, state = self._context.sampler, self._state(status)
        input1, input2 = (self._pool.inputs[i] for i in (state.input1, state.input2))
        can = sampler.can_couple(input1, input2, self._context.deadline)
        if status.number < len(self._context.source.given):
            self._coupled = can
        return can

    def draw(self, status: PairStatus, size: int, *, keep: bool) -> list[Ints]:
        """Draw a batch, and return its counts through the detector of the pair."""
        state, binnings = self._state(status), status.detector.binnings
        state.coupled = status.coupled
        reader = Reader(binnings, keep, status.outputs.extract)
        draws = state.draws(self._pool, size, self._purpose, status.batches)
        parts = self._context.sampler.measure(draws, reader, self._context.deadline)
        if keep:
            on_d, on_d2 = (concatenated([t for _, t in part if t is not None]) for part in parts)
            status.outputs.add(on_d, on_d2, coupled=status.coupled)
        sides = [np.concatenate([bins for bins, _ in part], axis=1) for part in parts]
        return count_batch(binnings, list(sides[0]), list(sides[1]))

    def is_rejected(self, status: PairStatus) -> bool:
        """Return whether the mechanism refuses an input of the pair, by its first batch."""
        sides = status.outputs.sides()
        raised = [all_raised(outputs) for outputs in sides]
        if not any(raised):
            return False
        if status.number >= len(self._context.source.given):
            return self._context.source.generated is None
        at = raised.index(True)
        stated = says_that_it_is_empty(self._context, status.pair.inputs[at], sides[at])
        return not all(raised) and stated

    def features(self, status: PairStatus, table: Table, on_d: Bools) -> list[Feature]:
        """Return the features of outputs on a pair that there are enough outputs to learn from."""
        state = self._state(status)
        if not status.detector.binnings:
            self._look_at_first_outputs(status, state)
        about = quantities_of(self._context, state, table, on_d, status.outputs.coupled)
        return affordable(about, table, on_d, OUTPUTS_PER_QUANTITY)

    def _look_at_first_outputs(self, status: PairStatus, state: PairState) -> None:
        """Ask what the answers are without noise, and which hashes and records they show."""
        context, inputs = self._context, status.pair.inputs
        examples = status.outputs.examples().raw
        if context.settings.features is None:
            state.target = target_of(*inputs, examples, context.seed)
        param = context.privacy_param
        answers = [context.sampler.noiseless(data, param) for data in inputs]
        state.references = [answer for answer in answers if answer is not None]
        if any(map(has_seed, examples[:FEW])):
            items = [self._pool.inputs[i] for i in (state.input1, state.input2)]
            state.hashed = context.sampler.hash_templates(items)

    def _state(self, status: PairStatus) -> PairState:
        if status.number not in self._states:
            input1, input2 = map(self._pool.add, status.pair.inputs)
            self._states[status.number] = PairState(status.number, status.pair, input1, input2)
        return self._states[status.number]
