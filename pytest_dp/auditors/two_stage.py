"""What every auditor of fixed size does: search on some samples, test once on held-out ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pytest_dp.auditors.context import Context
from pytest_dp.auditors.game import Game
from pytest_dp.auditors.held_out import Tested
from pytest_dp.auditors.pool import BLIND, cannot_be_read, never_varies, note_left_out
from pytest_dp.auditors.result import AuditResult
from pytest_dp.auditors.witness import Witness
from pytest_dp.evidence.losing_now import may_lose
from pytest_dp.evidence.resolution import told_apart, would_show
from pytest_dp.inputs import Pair
from pytest_dp.inputs.sources import PairSource
from pytest_dp.sampling.chunks import Input
from pytest_dp.sampling.deadline import OutOfTime
from pytest_dp.sampling.per_run import CannotCouple
from pytest_dp.sampling.streams import Purpose


def search_then_test(
    context: Context,
    search: Callable[[Game], Witness | None],
    test: Callable[[Game, Witness], Tested | None],
    conclude: Callable[[Game, Witness, Tested], AuditResult],
    *,
    coupled: bool,
    pairs: Sequence[Pair] = (),
) -> AuditResult:
    """Run an audit in two stages.

    The search plays a game without stakes, and returns what is to be tested, if anything; the test
    counts on held-out samples, and returns None if there were none left. `coupled` is whether the
    search may run both inputs with the same random numbers. `pairs` are looked at in place of
    those of the claim.

    The result is ``inconclusive`` if time ran out, if nothing could be tested, if nothing tells
    inputs apart, or if nothing was shown while outputs never varied or some pairs were left out.
    Raises MechanismError if every run of the mechanism raises, or if it hangs.
    """
    try:
        context.sampler.warm_up(Input(context.pairs[0].inputs[0]), context.deadline)
        context.limit_to_time()
        game, witness, agree = _searched(context, search, pairs or context.pairs, coupled)
        tested = test(game, witness) if witness is not None else None
    except OutOfTime as out:
        context.refuse_hung(out)
        context.sampler.note(
            "stopped before the test, as too little of "
            f"max_seconds={context.settings.max_seconds:g} was left for it: raise max_seconds",
            hinders=True,
        )
        return context.result("inconclusive")
    seen = len(game.seen), game.bandit.claimed
    if seen[0] < seen[1] > 1:
        note_left_out(context, seen[0])
    says_nothing = never_varies(context, game.pool) or seen[0] < seen[1]
    if witness is None or tested is None:
        return context.result("inconclusive", pairs=seen)
    result = replace(conclude(game, witness, tested), pairs=seen)
    if says_nothing and not result.violated:
        return replace(result, verdict="inconclusive")
    known = [state.record for state in game.seen if state.binnings]
    if known and context.guarantee.delta and not result.violated:  # the event tested is but one
        now = max(may_lose(record, context.guarantee) for record in known)
        result = replace(result, may_lose=now, resolution=max(result.resolution, now))
    if result.verdict == "no violation" and _is_blind(game, tested, agree):
        notes, hindrances = (BLIND, *result.notes), (BLIND, *result.hindrances)
        unknown = replace(result, notes=notes, hindrances=hindrances, resolution=math.inf)
        return replace(unknown, verdict="inconclusive", blind=True)
    return result


def _searched(
    context: Context,
    search: Callable[[Game], Witness | None],
    pairs: Sequence[Pair],
    coupled: bool,
) -> tuple[Game, Witness | None, bool]:
    """The game that was played, what it found, and whether both inputs gave the same outputs.

    Where they did with the same random numbers, nothing can be learned from such outputs.
    """
    source, agree = PairSource(pairs), False
    if coupled:
        game = Game(context, Purpose.SEARCH, 0.0, coupled=True, source=source)
        try:
            witness = search(game)
        except CannotCouple as reason:
            context.sampler.note(f"started again without shared random numbers, as {reason}")
        else:
            agree = bool(game.seen) and all(state.outputs.alike() for state in game.seen)
            if witness is not None or not agree:
                return game, witness, agree
    game = Game(context, Purpose.RESTART, 0.0, coupled=False, source=source)
    return game, search(game), agree


def _is_blind(game: Game, tested: Tested, agree: bool) -> bool:
    """Whether what was tested does not tell inputs apart that it should, and that do differ."""
    counted = [counts for counts in (tested.attack, tested.event) if counts is not None]
    apart = np.array([counts.apart for counts in counted])
    runs = min(min(counts.n1, counts.n2) for counts in counted)
    if told_apart(apart) or not would_show(game.context.guarantee, runs, len(apart)):
        return False
    agree = agree or all(state.outputs.alike() for state in game.seen)
    return not agree or bool(cannot_be_read(game.pool))
