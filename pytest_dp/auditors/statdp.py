"""StatDP: look for the most suspicious event on some samples, test it on fresh ones.

Algorithm 1 of the paper tests on 500,000 fresh samples. Here they are as many as the search says
are needed. That, the pair and the event rest on search samples only, and the one event is tested
once, on samples that nobody has looked at; so the p-value is valid whatever the search did.

Source: Ding, Wang, Wang, Zhang, Kifer, "Detecting Violations of Differential Privacy", CCS 2018,
Algorithms 1 to 4; the p-value is that of `pytest_dp.evidence.statdp`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pytest_dp.auditors.job import CLUMPED, Job
from pytest_dp.auditors.pool import TESTED, Pool
from pytest_dp.auditors.result import AuditResult, Counterexample, Verdict
from pytest_dp.auditors.search import Suspect, find_suspect, largest_loss
from pytest_dp.auditors.two_stage import search_then_test
from pytest_dp.counterexample import diagnose, is_constant
from pytest_dp.evidence import clopper_pearson, combined, homogeneity, statdp
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.table import tabulate
from pytest_dp.sampling.sampler import Draw

FEWEST_TESTED = 1_000


def audit(job: Job) -> AuditResult:
    """Audit one claim with StatDP.

    Parameters
    ----------
    job : Job

    Returns
    -------
    AuditResult
        ``violated`` exactly if the p-value is at most alpha; ``inconclusive`` if the outputs never
        vary, if there were not enough samples for every pair, or if there were too few
        samples to catch anything.

    Raises
    ------
    MechanismError
        If every run of the mechanism raises, or if it hangs.
    """
    return search_then_test(job, find_suspect, _test, _conclude)


@dataclass(frozen=True, slots=True)
class _Tested:
    counts: tuple[int, int]
    runs: int
    constant: tuple[bool, bool]
    clumps: tuple[float, ...] = ()
    """Shares of the event in stretches of runs on one input, if they differ beyond chance."""


def _test(job: Job, pool: Pool, best: Suspect) -> _Tested | None:
    """Count the event in fresh samples, as many as the search says are needed."""
    assert best.found is not None
    runs = _runs_of_test(job, best)
    if runs < 1:
        return None
    draws = [
        Draw(pool.inputs[i], runs, (TESTED, i, side))
        for side, i in enumerate((best.first, best.second))
    ]
    tables = [tabulate(outputs) for outputs in job.sampler.draw(draws, job.deadline)]
    hits = [best.found.event.mask(table) for table in tables]
    sizes = np.array([chunk.count for chunk in job.sampler.chunks(draws[0])])
    starts = np.cumsum(sizes) - sizes
    by_chunk = [np.add.reduceat(h.astype(np.int64), starts) for h in hits]
    alike = [homogeneity.p_value(h, sizes) for h in by_chunk]
    clumped = [shares for p, shares in alike if p < CLUMPED]
    return _Tested(
        (int(hits[0].sum()), int(hits[1].sum())),
        runs,
        (is_constant(tables[0]), is_constant(tables[1])),
        tuple(clumped[0]) if clumped else (),
    )


def _runs_of_test(job: Job, best: Suspect) -> int:
    assert best.found is not None
    eps, alpha = job.promise.eps, job.alpha
    most = int(min(job.to_test, job.affordable())) // 2
    if not best.decided:
        return most
    high, low = max(best.found.c1, best.found.c2), min(best.found.c1, best.found.c2)
    p1 = clopper_pearson.lower(high, best.runs, 0.01)
    p2 = clopper_pearson.upper(low, best.runs, 0.01)
    enough = statdp.runs_for_power(p1, p2, eps, alpha / 2, power=0.999, most=max(most, 1))
    return most if enough is None else min(most, max(2 * enough, FEWEST_TESTED))


def _conclude(
    job: Job, pool: Pool, best: Suspect, tested: _Tested, tried: tuple[int, int]
) -> AuditResult:
    assert best.found is not None
    event, (c1, c2), runs = best.found.event, tested.counts, tested.runs
    pair, constant = best.pair, tested.constant
    if best.found.c2 > best.found.c1:  # which way to look is for the search to say
        c1, c2, pair, constant = c2, c1, pair.reversed(), constant[::-1]
    eps, alpha = job.promise.eps, job.alpha
    p_value = combined.p_value(c1, c2, runs, eps)
    eps_lower = combined.eps_lower(c1, c2, runs, alpha)
    if c2 > c1:  # StatDP's test looks the other way as well
        c1, c2, pair, constant = c2, c1, pair.reversed(), constant[::-1]
    violated = p_value <= alpha
    if violated and tested.clumps:
        raise job.clumped(str(event), tested.clumps)
    resolution = _resolution(c1, c2, runs, eps, alpha, largest_loss(best, pool))
    counterexample = None
    if violated:
        counterexample = Counterexample(
            d1=pair.d1,
            d2=pair.d2,
            event=event,
            counts=(c1, c2),
            runs=(runs, runs),
            intervals=(
                clopper_pearson.interval(c1, runs, alpha / 2),
                clopper_pearson.interval(c2, runs, alpha / 2),
            ),
            p_value=statdp.p_value_both(c1, c2, runs, eps),
            eps_lower=eps_lower,
            eps_clopper_pearson=clopper_pearson.eps_lower(c1, runs, c2, runs, alpha / 2),
            difference=pair.difference,
            diagnosis=diagnose(event, (c1, c2), (runs, runs), eps, constant),
        )
    verdict: Verdict = "violated" if violated else "no violation"
    if not violated and math.isinf(resolution):
        verdict = "inconclusive"
    return job.result(
        verdict,
        eps_lower=eps_lower,
        p_value=p_value,
        resolution=resolution,
        counterexample=counterexample,
        strongest=_describe(event, c1, c2, runs),
        pairs=tried,
    )


def _resolution(c1: int, c2: int, runs: int, eps: float, alpha: float, largest: float) -> float:
    """The smallest true ε that this audit would have caught with 95 % power (approximate).

    The test gets 99 %, which leaves a share for the search to fail. Of an event that has nearly
    the mechanism's full loss, the likelier side is seldom above one half. Where there is little to
    find, the event that was tested may have less than the `largest` loss that was seen; a larger ε
    is then needed in the same proportion.
    """
    caught = statdp.smallest_eps(min(c1 / runs, 0.5), runs, eps, alpha / 2, power=0.99)
    loss = math.log((c1 + 0.5) / (c2 + 0.5))
    return caught * max(1.0, largest / max(loss, 1e-3))


def _describe(event: Event, c1: int, c2: int, runs: int) -> str:
    return f"{event}: {c1:,} against {c2:,} of {runs:,}"
