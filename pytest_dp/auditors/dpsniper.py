"""DP-Sniper: learn to tell two inputs apart, and count on fresh samples how well that works.

The search (`dd_search`) ends with one attack, one direction and one pair, sometimes with a readable
event beside the attack. Both are counted once, on samples that nobody has looked at. With an event
beside it, the attack's bound spends nine tenths of alpha and the event's the rest, which costs
either next to nothing, so that everything shown holds at once.

Source: Bichsel, Steffen, Bogunovic, Vechev, "DP-Sniper", IEEE S&P 2021. Bounds are those of
`pytest_dp.evidence.ratio`; the paper's (two Clopper-Pearson bounds) with a fixed `c`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.attacks.threshold import Tally, first_share
from pytest_dp.auditors.dd_search import Witness, find_witness
from pytest_dp.auditors.job import CLUMPED, Job
from pytest_dp.auditors.pool import TESTED, Pool
from pytest_dp.auditors.result import AuditResult, Counterexample, Verdict
from pytest_dp.auditors.two_stage import search_then_test
from pytest_dp.counterexample import diagnose, is_constant
from pytest_dp.evidence import clopper_pearson, homogeneity, ratio, statdp
from pytest_dp.outputs.table import Ints, tabulate
from pytest_dp.sampling.sampler import Draw
from pytest_dp.sampling.streams import stream

ATTACK_SHARE = 0.9
"""Of alpha, what the attack's bound gets where a readable event is counted as well."""
FAR_ABOVE = 0.6
"""Share of the claim below which all that was found is called far below it."""


def audit(job: Job) -> AuditResult:
    """Audit one claim with DP-Sniper.

    Parameters
    ----------
    job : Job

    Returns
    -------
    AuditResult
        ``violated`` exactly if the lower bound exceeds the claim; ``inconclusive`` as for StatDP.

    Raises
    ------
    ClaimError
        If the user's classifier or features cannot be used on the mechanism's outputs.
    MechanismError
        If every run of the mechanism raises, or if it hangs.
    """
    return search_then_test(job, find_witness, _test, _conclude)


@dataclass(frozen=True, slots=True)
class Counts:
    """Fresh outputs in an event: on the likelier input and on the other.

    `equal` are those among the first `common` runs of either.
    """

    c1: int
    n1: int
    c2: int
    n2: int
    equal: tuple[int, int]
    common: int


@dataclass(frozen=True, slots=True)
class Tested:
    """What the attack, and the readable event, counted; None for the one that is not tested."""

    attack: Counts | None
    event: Counts | None
    clumps: tuple[float, ...] = ()
    """Shares of runs on one input that were in it, stretch by stretch, if beyond chance."""


def _test(job: Job, pool: Pool, witness: Witness) -> Tested | None:
    """Count in fresh samples, more of them on the input that needs more."""
    total = int(min(job.max_samples - job.sampler.runs, job.affordable()))
    share = 0.5
    if job.claim.c is None:
        share = float(first_share(np.array(witness.p1), np.array(witness.p2)))
    n1 = int(total * share) if abs(share - 0.5) > 0.1 else total // 2
    n2 = total - n1
    common = min(n1, n2)
    if common < 1:
        return None
    likelier, other = witness.rival.first, witness.rival.second
    if witness.sign < 0:
        likelier, other = other, likelier
    draws = [
        Draw(pool.inputs[likelier], common, (TESTED, likelier, 0)),
        Draw(pool.inputs[other], common, (TESTED, other, 1)),
    ]
    more = 0 if n1 > n2 else 1
    if n1 - n2 not in (0, -1):
        which = (likelier, other)[more]
        draws.append(Draw(pool.inputs[which], abs(n1 - n2), (TESTED, which, 2)))
    tally = Tally(witness.attack, witness.event)
    groups = [np.array(g) for g in job.sampler.measure(draws, tally, job.deadline)]
    sums = [g.sum(axis=0) for g in groups]
    attack = _counts(job, sums, more, witness.attack.tie) if witness.attack is not None else None
    event = _counts(job, [s[[0, 3, 3, 3]] for s in sums], more, 0.0) if witness.event else None
    clumps: tuple[float, ...] = ()
    for group in groups:
        for hits in (group[:, 1], group[:, 2], group[:, 1] + group[:, 2], group[:, 3]):
            p, shares = homogeneity.p_value(hits, group[:, 0])
            if p < CLUMPED:
                clumps = clumps or tuple(shares)
    return Tested(attack, event, clumps)


def _counts(job: Job, sums: list[Ints], more: int, tie: float) -> Counts:
    """Hits on both sides; each output at the threshold is included with probability `tie`."""
    coins = np.random.default_rng(stream(job.seed, TESTED, len(sums)))
    hits = [int(s[1]) + (int(coins.binomial(int(s[2]), tie)) if tie else 0) for s in sums]
    counts, runs = hits[:2], [int(s[0]) for s in sums[:2]]
    if len(sums) > 2:
        counts[more] += hits[2]
        runs[more] += int(sums[2][0])
    return Counts(counts[0], runs[0], counts[1], runs[1], (hits[0], hits[1]), int(sums[0][0]))


def _conclude(
    job: Job, pool: Pool, witness: Witness, tested: Tested, tried: tuple[int, int]
) -> AuditResult:
    eps, alpha = job.claim.eps, job.alpha
    both = tested.attack is not None and tested.event is not None
    level = {"attack": ATTACK_SHARE * alpha, "event": (1 - ATTACK_SHARE) * alpha} if both else {}
    found = [
        _Bounded(kind, counts, level.get(kind, alpha), job)
        for kind, counts in (("attack", tested.attack), ("event", tested.event))
        if counts is not None
    ]
    best = max(found, key=lambda one: one.eps_lower)
    eps_lower = max(best.eps_lower, 0.0)
    p_value = min(min(one.p_value * alpha / one.alpha, 1.0) for one in found)
    violated = eps_lower > eps
    # Both come from one test; rounding must not make them disagree about the verdict.
    p_value = min(p_value, alpha) if violated else max(p_value, math.nextafter(alpha, 1))
    shown = next((o for o in found if o.kind == "event" and o.eps_lower > eps), best)
    if violated and tested.clumps:
        raise job.clumped(str(witness.event or witness.attack), tested.clumps)
    main = best.counts
    resolution = _resolution(main, eps, best.alpha)
    loss = ratio.interval(main.c1, main.n1, main.c2, main.n2, best.alpha)
    verdict: Verdict = "violated" if violated else "no violation"
    if not violated and math.isinf(resolution):
        verdict = "inconclusive"
    if not violated and loss[1] < FAR_ABOVE * eps:
        job.sampler.note(
            f"strongest attack reached {max(loss[0], 0):.2g} to {max(loss[1], 0):.2g} of eps = "
            f"{eps:g}: more noise than needed, or a weak search"
        )
    return job.result(
        verdict,
        eps_lower=eps_lower,
        p_value=p_value,
        resolution=resolution,
        counterexample=_counterexample(job, pool, witness, shown) if violated else None,
        strongest=_describe(witness, best, loss),
        loss=loss,
        pairs=tried,
    )


class _Bounded:
    """What one set of counts proves at its share of alpha."""

    def __init__(self, kind: str, counts: Counts, alpha: float, job: Job) -> None:
        self.kind, self.counts, self.alpha = kind, counts, alpha
        four = counts.c1, counts.n1, counts.c2, counts.n2
        self.eps_clopper_pearson = clopper_pearson.eps_lower(*four, alpha)
        if job.claim.c is not None:  # as published
            self.eps_lower = self.eps_clopper_pearson
            self.p_value = clopper_pearson.p_value(*four, job.claim.eps)
        else:
            self.eps_lower = ratio.eps_lower(*four, alpha)
            self.p_value = ratio.p_value(*four, job.claim.eps, alpha)


def _counterexample(job: Job, pool: Pool, witness: Witness, shown: _Bounded) -> Counterexample:
    counts, eps = shown.counts, job.claim.eps
    sides = (witness.rival.first, witness.rival.second)[:: witness.sign]
    hits = (counts.c1, counts.n1), (counts.c2, counts.n2)
    one, two = (  # in the search, and as far as the test can tell
        c in (0, n) and is_constant(tabulate(pool.drawn[i][-1]))
        for i, (c, n) in zip(sides, hits, strict=True)
    )
    pair = witness.rival.pair if witness.sign > 0 else witness.rival.pair.reversed()
    event: Any = witness.event if shown.kind == "event" else witness.attack
    readable = witness.event if shown.kind == "event" else None
    return Counterexample(
        d1=pair.d1,
        d2=pair.d2,
        event=event,
        counts=(counts.c1, counts.c2),
        runs=(counts.n1, counts.n2),
        intervals=(
            clopper_pearson.interval(counts.c1, counts.n1, shown.alpha),
            clopper_pearson.interval(counts.c2, counts.n2, shown.alpha),
        ),
        p_value=statdp.p_value_both(*counts.equal, counts.common, eps),
        eps_lower=shown.eps_lower,
        eps_clopper_pearson=shown.eps_clopper_pearson,
        difference=pair.difference,
        diagnosis=diagnose(
            readable,
            (counts.c1, counts.c2),
            (counts.n1, counts.n2),
            eps,
            (one, two),
        ),
        attack=witness.attack,
        examples=witness.examples if shown.kind == "attack" else ((), ()),
    )


def _resolution(counts: Counts, eps: float, alpha: float) -> float:
    """The smallest loss that this attack would have shown with 95 % power (approximate).

    Of an attack that has nearly the mechanism's full loss, the likelier side is seldom above one
    half. The test gets 99 %, which leaves a share for the search to fail.
    """
    p1 = min(counts.c1 / counts.n1, 0.5)
    spread = 2.326 / math.sqrt(2)

    def caught(loss: float) -> bool:
        p2 = p1 * math.exp(-loss)
        low = p1 - spread * math.sqrt(p1 * (1 - p1) / counts.n1)
        high = p2 + spread * math.sqrt(p2 * (1 - p2) / counts.n2)
        if low <= 0 or high >= 1:
            return False
        return float(ratio.predicted(low, counts.n1, high, counts.n2, alpha)) > eps

    smallest, largest = eps, eps + 60.0
    if not caught(largest):
        return math.inf
    while largest - smallest > 1e-4 * largest:
        middle = (smallest + largest) / 2
        smallest, largest = (smallest, middle) if caught(middle) else (middle, largest)
    return largest


def _describe(witness: Witness, best: _Bounded, loss: tuple[float, float]) -> str:
    counts = best.counts
    what = witness.event if best.kind == "event" else witness.attack
    return (
        f"{what}: {counts.c1:,} of {counts.n1:,} against {counts.c2:,} of {counts.n2:,}, a loss of "
        f"{loss[0]:.3g} to {loss[1]:.3g}"
    )
