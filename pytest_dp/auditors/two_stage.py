"""What every auditor of fixed size does: search on some samples, test once on held-out ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from pytest_dp.auditors.context import Context
from pytest_dp.auditors.held_out import Tested
from pytest_dp.auditors.pool import BLIND, Contender, Pool, cannot_be_read, never_varies
from pytest_dp.auditors.result import AuditResult
from pytest_dp.evidence.resolution import told_apart, would_show
from pytest_dp.sampling.deadline import OutOfTime

Best = TypeVar("Best")


def search_then_test(
    context: Context,
    search: Callable[[Context, Pool], tuple[Sequence[Contender], Best | None]],
    test: Callable[[Context, Pool, Best], Tested | None],
    conclude: Callable[[Context, Pool, Best, Tested, tuple[int, int]], AuditResult],
) -> AuditResult:
    """Run an audit in two stages.

    The search returns the pairs that took part, and what to test, if anything; the test counts on
    held-out samples, and returns None if there were none left. The last argument of `conclude` is
    how many pairs took part, and how many there are.

    The result is ``inconclusive`` if time ran out, if nothing could be tested, if nothing tells
    inputs apart, or if nothing was shown while outputs never varied or some pairs were left out.
    Raises MechanismError if every run of the mechanism raises, or if it hangs.
    """
    pool = Pool()
    try:
        context.sampler.warm_up(pool.inputs[pool.add(context.pairs[0].inputs[0])], context.deadline)
        context.limit_to_time()
        contenders, best = search(context, pool)
        tested = test(context, pool, best) if best is not None else None
    except OutOfTime as out:
        context.refuse_hung(out)
        context.sampler.note(
            "stopped before the test, as too little of "
            f"max_seconds={context.settings.max_seconds:g} was left for it: raise max_seconds",
            hinders=True,
        )
        return context.result("inconclusive")
    says_nothing = never_varies(context, pool) or len(contenders) < len(context.pairs)
    pairs = len(contenders), len(context.pairs)
    if best is None or tested is None:
        return context.result("inconclusive", pairs=pairs)
    result = conclude(context, pool, best, tested, pairs)
    if says_nothing and not result.violated:
        return replace(result, verdict="inconclusive")
    if result.verdict == "no violation" and _is_blind(context, pool, contenders, tested):
        notes, hindrances = (BLIND, *result.notes), (BLIND, *result.hindrances)
        unknown = replace(result, notes=notes, hindrances=hindrances, resolution=math.inf)
        return replace(unknown, verdict="inconclusive", blind=True)
    return result


def _is_blind(
    context: Context, pool: Pool, contenders: Sequence[Contender], tested: Tested
) -> bool:
    """Whether what was tested does not tell inputs apart that it should, and that do differ."""
    counted = [counts for counts in (tested.attack, tested.event) if counts is not None]
    apart = np.array([counts.apart for counts in counted])
    runs = min(min(counts.n1, counts.n2) for counts in counted)
    if told_apart(apart) or not would_show(context.guarantee, runs, len(apart)):
        return False
    agree = pool.agree or all(map(pool.alike, contenders))
    return not agree or bool(cannot_be_read(pool))
