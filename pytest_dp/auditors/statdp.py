"""StatDP: look for the most suspicious event on some samples, test it on held-out ones.

Algorithm 1 of the paper tests on 500,000 held-out samples. Here they are as many as the search says
are needed. That, the pair and the event rest on search samples only, and the one event is tested
once, on samples that nobody has looked at; so the p-value is valid whatever the search did.

Source: Ding, Wang, Wang, Zhang, Kifer, "Detecting Violations of Differential Privacy", CCS 2018,
Algorithms 1 to 4; the p-value is that of `pytest_dp.evidence.statdp`. For claims of more than ε,
which the paper does not have, it is that of `pytest_dp.evidence.event_test`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from pytest_dp.attacks.expected_bounds import likelier_first
from pytest_dp.auditors import held_out
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.picturing import pictures_of
from pytest_dp.auditors.pool import Pool
from pytest_dp.auditors.result import AuditResult
from pytest_dp.auditors.statdp_search import Suspect, find_suspect, largest_shown
from pytest_dp.auditors.two_stage import search_then_test
from pytest_dp.evidence import clopper_pearson
from pytest_dp.evidence.counts import Bound, classical
from pytest_dp.evidence.event_test import event_test
from pytest_dp.limits import SHOWN_OUTPUTS, THOUSAND
from pytest_dp.results.result import Verdict
from pytest_dp.sampling.sampler import Draw
from pytest_dp.sampling.streams import Purpose


def audit(context: Context) -> AuditResult:
    """Audit one claim with StatDP; errors are those of `sequential.audit`.

    The result is ``violated`` exactly if the p-value is at most alpha, and ``inconclusive`` as by
    `sequential.audit`.
    """
    return search_then_test(context, find_suspect, _test, _conclude)


def _test(context: Context, pool: Pool, best: Suspect) -> held_out.Tested | None:
    """Count the event in held-out samples, as many as the search says are needed."""
    runs = _runs_of_test(context, best)
    if runs < 1:
        return None
    draw1, draw2 = (
        Draw(pool.inputs[i], runs, (Purpose.TEST, i, side))
        for side, i in enumerate((best.input1, best.input2))
    )
    witness = best.witness
    return held_out.count_drawn(context, witness, [*likelier_first(witness.sign, draw1, draw2)])


def _runs_of_test(context: Context, best: Suspect) -> int:
    claim, witness = context.guarantee, best.witness
    left = int(min(context.to_test, context.affordable())) // 2
    if not best.decided:
        return left
    p1 = clopper_pearson.lower(round(witness.p1 * best.runs), best.runs, 0.01)
    p2 = clopper_pearson.upper(round(witness.p2 * best.runs), best.runs, 0.01)
    enough = event_test(claim).classical_runs(p1, p2, context.alpha / 2, left)
    return left if enough is None else min(left, max(2 * enough, THOUSAND))


def _conclude(
    context: Context, pool: Pool, best: Suspect, tested: held_out.Tested, pairs: tuple[int, int]
) -> AuditResult:
    witness = best.witness
    (bound,) = held_out.bounds(context, tested, classical)
    if bound.counts.c2 > bound.counts.c1:  # StatDP's test looks the other way as well
        bound = replace(bound, counts=bound.counts.swapped())
        witness = replace(witness, sign=-witness.sign)
    violated = bound.p_value <= context.alpha or bound.lower > context.guarantee.claimed
    if violated:
        held_out.check_independent(context, witness, tested)
    resolution = _resolution(bound, largest_shown(best, pool, context.guarantee))
    verdict: Verdict = "violated" if violated else "no violation"
    if not violated and math.isinf(resolution):
        verdict = "inconclusive"
    c1, runs, c2, _ = bound.counts.four
    example = held_out.counterexample(context, pool, witness, bound) if violated else None
    table = partial(pool.table, witness.rival, stop=SHOWN_OUTPUTS)
    return context.result(
        verdict,
        lower=max(bound.lower, 0.0),
        p_value=context.agreeing(bound.p_value, violated),
        resolution=resolution,
        counterexample=example,
        strongest=f"{witness.event}: {c1:,} against {c2:,} of {runs:,}",
        pairs=pairs,
        pictures=pictures_of(context, witness, bound, example, table),
    )


def _resolution(bound: Bound, largest: float) -> float:
    """The smallest true loss that this audit would have caught with 95 % power (approximate).

    The test gets 99 %, which leaves a share for the search to fail. Of an event that has nearly
    the mechanism's full loss, the likelier side is seldom above one half. Where there is little to
    find, the event that was tested may show less than the `largest` that was seen; a larger loss
    is then needed in the same proportion.
    """
    c1, runs, c2, _ = bound.counts.four
    test = event_test(bound.guarantee)
    caught = test.classical_resolution(min(c1 / runs, 0.5), runs, bound.alpha)
    chances = (np.array(min((c + 0.5) / runs, 1.0)) for c in (c1, c2))
    return caught * max(1.0, largest / max(float(test.shows(*chances)), 1e-3))
