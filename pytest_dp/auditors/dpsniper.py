"""DP-Sniper: learn to tell two inputs apart, and count on held-out samples how well that works.

The search (`dd_search`) ends with one attack, one direction and one pair, sometimes with a readable
event beside the attack. Both are counted once, on held-out samples (`held_out`).

Source: Bichsel, Steffen, Bogunovic, Vechev, "DP-Sniper", IEEE S&P 2021. Bounds are those of
`pytest_dp.evidence.event_test`; with a fixed `c` those of the paper, two Clopper-Pearson bounds.
"""

from __future__ import annotations

import math
from functools import partial

from pytest_dp.auditors import held_out
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.dd_search import find_witness
from pytest_dp.auditors.picturing import pictures_of
from pytest_dp.auditors.pool import Pool
from pytest_dp.auditors.result import AuditResult
from pytest_dp.auditors.two_stage import search_then_test
from pytest_dp.auditors.witness import Witness
from pytest_dp.evidence.counts import as_published, resolution, sharp
from pytest_dp.limits import HOPE_UNSEEN, SHOWN_OUTPUTS
from pytest_dp.results.result import Verdict


def audit(context: Context) -> AuditResult:
    """Audit one claim with DP-Sniper; errors are those of `sequential.audit`.

    The result is ``violated`` exactly if the lower bound exceeds the claim, and ``inconclusive`` as
    for StatDP.
    """
    return search_then_test(context, find_witness, _test, _conclude)


def _test(context: Context, pool: Pool, witness: Witness) -> held_out.Tested | None:
    return held_out.count(context, pool, witness, int(min(context.to_test, context.affordable())))


def _conclude(
    context: Context, pool: Pool, witness: Witness, tested: held_out.Tested, pairs: tuple[int, int]
) -> AuditResult:
    guarantee, alpha = context.guarantee, context.alpha
    claimed = guarantee.claimed
    bounds = held_out.bounds(context, tested, sharp if context.method.c is None else as_published)
    best = bounds[0]
    lower = max(best.lower, 0.0)
    p_value = min(min(bound.p_value * alpha / bound.alpha, 1.0) for bound in bounds)
    violated = lower > claimed
    if violated:
        held_out.check_independent(context, witness, tested)
    caught = resolution(best.counts, guarantee, best.alpha, context.method.c)
    loss = best.loss
    verdict: Verdict = "violated" if violated else "no violation"
    if not violated and math.isinf(caught):
        verdict = "inconclusive"
        c = context.method.c
        if c is not None and c * math.exp(guarantee.eps or 0.0) >= 1:
            context.sampler.note(
                f"an event with c={c:g} cannot show a loss above {-math.log(c):.2g}: give a "
                "smaller c, or leave it out",
                hinders=True,
            )
    if not violated and loss[1] < HOPE_UNSEEN * claimed:
        context.sampler.note(
            f"strongest attack reached {max(loss[0], 0):.2g} to {max(loss[1], 0):.2g} of "
            f"{guarantee.written(f'{claimed:g}')}: more noise than needed, or a weak search"
        )
    shown = held_out.shown(bounds, claimed)
    example = held_out.counterexample(context, pool, witness, shown) if violated else None
    table = partial(pool.table, witness.rival, stop=SHOWN_OUTPUTS)
    return context.result(
        verdict,
        lower=lower,
        p_value=context.agreeing(p_value, violated),
        resolution=caught,
        counterexample=example,
        strongest=held_out.described(best, witness),
        loss=loss,
        pairs=pairs,
        pictures=pictures_of(context, witness, shown, example, table),
    )
