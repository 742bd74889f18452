"""What an attack, and a readable event beside it, count on samples that nobody has looked at.

With an event beside it, the attack's bound spends nine tenths of alpha and the event's the rest,
which costs either next to nothing, so that both bounds hold at once. A bold attack, where there is
one, gets its share before them.

Where both inputs are run with the same random numbers, pairs of outputs are counted. If a mechanism
then proves unfit for that, what was counted is dropped, and other samples are counted at the small
share of alpha that is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pytest_dp.arrays import Ints
from pytest_dp.attacks.counting import Hits, Tally
from pytest_dp.attacks.expected_bounds import first_share
from pytest_dp.auditors.job import CLUMPED, Job
from pytest_dp.auditors.pool import PAIRED, TESTED, Pool
from pytest_dp.auditors.result import Counterexample
from pytest_dp.auditors.witness import BOLD_SHARE, Witness
from pytest_dp.counterexample import diagnose, is_constant, stands_out
from pytest_dp.evidence import clopper_pearson, homogeneity, paired, ratio, statdp
from pytest_dp.evidence._search import smallest_loss
from pytest_dp.outputs.table import tabulate
from pytest_dp.sampling.per_run import CannotCouple
from pytest_dp.sampling.sampler import Draw
from pytest_dp.sampling.streams import stream

FEWEST = 100
"""Samples of either input below which both get as many."""
ATTACK_SHARE = 0.9
"""Of alpha, what the attack's bound gets where a readable event is counted as well."""
PAIRED_SHARE = 0.98
"""Of alpha, for pairs; what is left is for counting again without shared random numbers."""
LOOKED_AT_AGAIN = 0.06
"""Share of the runs in pairs that are run again on a copy, at most; they count as samples."""
A_BATCH = 500_000
"""Pairs of outputs that are counted at a time."""
ATTAINED = 0.95
"""Of a mechanism's loss, what an attack on pairs is taken to have. Pairs tell so much in the test
that what a search misses is no longer small against what the test cannot know.
"""
SHOWN_AT = 1e-9
"""Level around which the p-value that is shown for pairs is sharpest."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Fresh outputs in an event: on the likelier input and on the other.

    `equal` are those among the first `common` runs of either. `both` counts pairs with both outputs
    in the event; None if outputs did not come in pairs.
    """

    c1: int
    n1: int
    c2: int
    n2: int
    equal: tuple[int, int]
    common: int
    both: int | None = None

    @property
    def in_pairs(self) -> tuple[int, int, int]:
        """Pairs with both outputs in the event, only the likelier, only the other."""
        both = self.both or 0
        return both, self.c1 - both, self.c2 - both


NO_COUNTS = Counts(0, 0, 0, 0, (0, 0), 0)


@dataclass(frozen=True, slots=True)
class Seen:
    """How often an event came among outputs that are not fresh, and among how many of them."""

    counts: tuple[int, int]
    runs: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Tested:
    """What the attack, the readable event and a bold attack counted; None where there is none."""

    attack: Counts | None
    event: Counts | None
    bold: Counts | None = None
    clumps: tuple[float, ...] = ()
    """Shares of runs on one input that were in it, stretch by stretch, if beyond chance."""
    share: float = 1.0
    """Of alpha, what they may spend."""


def count(job: Job, pool: Pool, witness: Witness, total: int) -> Tested | None:
    """Count in `total` fresh samples; None if there is not one for each input."""
    if not witness.coupled:
        return _count_apart(job, pool, witness, total)
    before = job.sampler.runs
    try:
        return _count_pairs(job, pool, witness, total // 2)
    except CannotCouple as reason:
        job.sampler.note(f"counted again without shared random numbers, as {reason}")
        tested = _count_apart(job, pool, witness, total - (job.sampler.runs - before))
        return None if tested is None else replace(tested, share=1 - PAIRED_SHARE)


def _count_pairs(job: Job, pool: Pool, witness: Witness, pairs: int) -> Tested | None:
    """Count in so many pairs of outputs, each drawn with the same random numbers."""
    pairs = int((1 - LOOKED_AT_AGAIN) * pairs)
    if pairs < 1:
        return None
    sides = _sides(witness)
    hits = Hits(_tally(witness))
    joint = np.zeros((4, 3), int)  # on both inputs, on the likelier one, on the other
    groups: tuple[list[Ints], list[Ints]] = ([], [])
    for batch, start in enumerate(range(0, pairs, A_BATCH)):
        key, size = (PAIRED, *sides, batch), min(A_BATCH, pairs - start)
        draws = [Draw(pool.inputs[i], size, key, shared=True) for i in sides]
        parts = job.sampler.measure(draws, hits, job.deadline)
        one, two = (np.concatenate(part, axis=1) for part in parts)
        joint += np.stack([(one & two).sum(1), one.sum(1), two.sum(1)], axis=1)
        for group, part in zip(groups, parts, strict=True):
            group += [np.array([found.shape[1], *found.sum(1)]) for found in part]
    attack, event, bold = (
        Counts(int(c1), pairs, int(c2), pairs, (int(c1), int(c2)), pairs, int(both))
        if used is not None
        else None
        for used, (both, c1, c2) in (
            (witness.attack, joint[0]),
            (witness.event, joint[2]),
            (witness.bold, joint[3]),
        )
    )
    clumps = _clumps([np.array(group) for group in groups])
    return Tested(attack, event, bold, clumps, PAIRED_SHARE)


def _tally(witness: Witness) -> Tally:
    return Tally(witness.attack, witness.event, witness.bold or witness.middle)


def _sides(witness: Witness) -> tuple[int, int]:
    """The likelier input and the other, by their places in the pool."""
    first, second = witness.rival.first, witness.rival.second
    return (first, second) if witness.sign > 0 else (second, first)


def _count_apart(job: Job, pool: Pool, witness: Witness, total: int) -> Tested | None:
    """Count in independent samples, more of them on the input that needs more."""
    share = 0.5
    if job.fixed_c is None:
        share = float(first_share(np.array(witness.p1), np.array(witness.p2)))
    uneven = abs(share - 0.5) > 0.1 and min(share, 1 - share) * total > FEWEST
    n1 = int(total * share) if uneven else total // 2
    n2 = total - n1
    common = min(n1, n2)
    if common < 1:
        return None
    likelier, other = _sides(witness)
    draws = [
        Draw(pool.inputs[likelier], common, (TESTED, likelier, 0)),
        Draw(pool.inputs[other], common, (TESTED, other, 1)),
    ]
    more = 0 if n1 > n2 else 1
    if n1 - n2 not in (0, -1):
        which = (likelier, other)[more]
        draws.append(Draw(pool.inputs[which], abs(n1 - n2), (TESTED, which, 2)))
    groups = [np.array(g) for g in job.sampler.measure(draws, _tally(witness), job.deadline)]
    sums = [g.sum(axis=0) for g in groups]
    attack = _counts(job, sums, more, witness.attack.tie) if witness.attack is not None else None
    event, bold = (
        _counts(job, [s[[0, column, column]] for s in sums], more, 0.0) if used else None
        for used, column in ((witness.event, 3), (witness.bold, 4))
    )
    return Tested(attack, event, bold, _clumps(groups))


def _clumps(groups: list[Ints]) -> tuple[float, ...]:
    """Shares of runs that were in one of the events, if they vary beyond chance; else empty."""
    for group in groups:
        attacked = group[:, 1], group[:, 2], group[:, 1] + group[:, 2]
        for hits in (*attacked, group[:, 3], group[:, 4]):
            p, shares = homogeneity.p_value(hits, group[:, 0])
            if p < CLUMPED:
                return tuple(shares)
    return ()


def _counts(job: Job, sums: list[Ints], more: int, tie: float) -> Counts:
    """Hits on both sides; each output at the threshold is included with probability `tie`."""
    coins = np.random.default_rng(stream(job.seed, TESTED, len(sums)))
    hits = [int(s[1]) + (int(coins.binomial(int(s[2]), tie)) if tie else 0) for s in sums]
    counts, runs = hits[:2], [int(s[0]) for s in sums[:2]]
    if len(sums) > 2:
        counts[more] += hits[2]
        runs[more] += int(sums[2][0])
    return Counts(counts[0], runs[0], counts[1], runs[1], (hits[0], hits[1]), int(sums[0][0]))


class Bounded:
    """What one set of counts proves at its share of alpha."""

    def __init__(self, kind: str, counts: Counts, alpha: float, job: Job) -> None:
        self.kind, self.counts, self.alpha = kind, counts, alpha
        four = counts.c1, counts.n1, counts.c2, counts.n2
        self.eps_clopper_pearson = clopper_pearson.eps_lower(*four, alpha)
        if job.fixed_c is not None:  # as published
            self.eps_lower = self.eps_clopper_pearson
            self.p_value = clopper_pearson.p_value(*four, job.promise.eps)
        elif counts.both is not None:
            self.eps_lower = paired.eps_lower(*counts.in_pairs, alpha)
            self.p_value = paired.p_value(*counts.in_pairs, job.promise.eps, alpha)
        else:
            self.eps_lower = ratio.eps_lower(*four, alpha)
            self.p_value = ratio.p_value(*four, job.promise.eps, alpha)

    @property
    def loss(self) -> tuple[float, float]:
        """Two-sided interval of the loss on what was counted, in nats."""
        counts = self.counts
        if counts.both is not None:
            return paired.interval(*counts.in_pairs, self.alpha)
        return ratio.interval(counts.c1, counts.n1, counts.c2, counts.n2, self.alpha)

    def described(self, witness: Witness) -> str:
        """The event or attack with its counts."""
        counts, loss, what = self.counts, self.loss, getattr(witness, self.kind)
        return (
            f"{what}: {counts.c1:,} of {counts.n1:,} against {counts.c2:,} of {counts.n2:,}, a "
            f"loss of {loss[0]:.3g} to {loss[1]:.3g}"
        )


def bounds(job: Job, tested: Tested) -> list[Bounded]:
    """What was counted, the strongest first; all of it holds at once with confidence 1 - alpha."""
    left = tested.share * job.alpha * (1.0 if tested.bold is None else 1 - BOLD_SHARE)
    both = tested.attack is not None and tested.event is not None
    alphas = {
        "attack": left * (ATTACK_SHARE if both else 1.0),
        "event": left * (1 - ATTACK_SHARE if both else 1.0),
        "bold": BOLD_SHARE * tested.share * job.alpha,
    }
    counted = {"attack": tested.attack, "event": tested.event, "bold": tested.bold}
    found = [
        Bounded(kind, counts, alphas[kind], job)
        for kind, counts in counted.items()
        if counts is not None
    ]
    return sorted(found, key=lambda one: -one.eps_lower)


def shown(found: list[Bounded], eps: float) -> Bounded:
    """What a person should see: the readable event where it breaks the claim by itself."""
    return next((one for one in found if one.kind == "event" and one.eps_lower > eps), found[0])


def counterexample(
    job: Job,
    pool: Pool,
    witness: Witness,
    found: Bounded | None,
    seen: Callable[[Any], Seen] | None = None,
) -> Counterexample:
    """What was counted, as it is reported.

    Parameters
    ----------
    job : Job
    pool : Pool
    witness : Witness
    found : Bounded or None
        None where no effort was left for fresh runs.
    seen : callable, optional
        How often an event came among the outputs that were bet on.
    """
    if found is None:
        kind, counts, alpha = "attack" if witness.event is None else "event", NO_COUNTS, job.alpha
    else:
        kind, counts, alpha = found.kind, found.counts, found.alpha
    event: Any = getattr(witness, kind)
    before = None if seen is None else seen(event)
    runs, eps = (counts.n1, counts.n2), job.promise.eps
    sides = (witness.rival.first, witness.rival.second)[:: witness.sign]
    hits = (counts.c1, counts.n1), (counts.c2, counts.n2)
    one, two = (  # in the search, and as far as the test can tell
        c in (0, n) and is_constant(tabulate(pool.drawn[i][-1]))
        for i, (c, n) in zip(sides, hits, strict=True)
    )
    pair = witness.rival.pair if witness.sign > 0 else witness.rival.pair.reversed()
    if counts.both is None:
        p_value = statdp.p_value_both(*counts.equal, counts.common, eps) if all(runs) else 1.0
    else:
        p_value = paired.p_value(*counts.in_pairs, eps, SHOWN_AT)
    readable = witness.event if kind == "event" else None
    recurs = any(stands_out(readable, tabulate(pool.drawn[i][-1])) for i in sides)
    known = (counts.c1, counts.c2), runs
    if before is not None and not counts.c2 and before.counts[1]:
        known = before.counts, before.runs  # a few fresh runs are no reason to say "never"
    return Counterexample(
        d1=pair.d1,
        d2=pair.d2,
        event=event,
        counts=(counts.c1, counts.c2),
        runs=runs,
        intervals=(
            clopper_pearson.interval(counts.c1, counts.n1, alpha) if counts.n1 else (0.0, 1.0),
            clopper_pearson.interval(counts.c2, counts.n2, alpha) if counts.n2 else (0.0, 1.0),
        ),
        p_value=p_value,
        eps_lower=-math.inf if found is None else found.eps_lower,
        eps_clopper_pearson=-math.inf if found is None else found.eps_clopper_pearson,
        difference=pair.difference,
        diagnosis=(
            diagnose(readable, *known, eps, (one, two), stands_out=recurs) if all(known[1]) else ()
        ),
        attack=witness.bold if kind == "bold" else witness.attack,
        examples=witness.examples if kind != "event" else ((), ()),
        both=counts.both,
        bet_counts=None if before is None else before.counts,
        bet_runs=None if before is None else before.runs,
    )


def resolution(counts: Counts, eps: float, alpha: float, c: float | None = None) -> float:
    """The smallest loss that this attack would have shown with 95 % power (approximate).

    With a fixed `c` the rarer side has that probability, and nothing above ``-ln c`` can be shown;
    as that may not be where most of a loss shows, a tenth of it is taken to be missed.

    Of an attack that has nearly the mechanism's full loss, the likelier side is seldom above one
    half. The test gets 99 %, which leaves a share for the search to fail.
    """
    if c is not None:
        return smallest_loss(lambda loss: _expected_as_published(c, loss, counts, alpha) > eps, eps)
    p1 = min(counts.c1 / counts.n1, 0.5)
    expected, attained = (
        (_expected_apart, 1.0) if counts.both is None else (_expected_in_pairs, ATTAINED)
    )
    return smallest_loss(
        lambda loss: expected(p1, p1 * math.exp(-attained * loss), counts, alpha) > eps, eps
    )


_SPREAD = 2.326 / math.sqrt(2)
"""Standard errors that either of two frequencies is off: by chance, less than 1 % of all bounds are
lower than what is then expected."""


def _expected_apart(p1: float, p2: float, counts: Counts, alpha: float) -> float:
    low = p1 - _SPREAD * math.sqrt(p1 * (1 - p1) / counts.n1)
    high = p2 + _SPREAD * math.sqrt(p2 * (1 - p2) / counts.n2)
    if low <= 0 or high >= 1:
        return -math.inf
    return float(ratio.predicted(low, counts.n1, high, counts.n2, alpha))


def _expected_as_published(c: float, loss: float, counts: Counts, alpha: float) -> float:
    p1 = min(c * math.exp(0.9 * loss), 1.0)
    low = p1 - _SPREAD * math.sqrt(p1 * (1 - p1) / counts.n1)
    high = c + _SPREAD * math.sqrt(c * (1 - c) / counts.n2)
    hits = max(int(low * counts.n1), 0), min(math.ceil(high * counts.n2), counts.n2)
    return clopper_pearson.eps_lower(hits[0], counts.n1, hits[1], counts.n2, alpha)


def _expected_in_pairs(p1: float, p2: float, counts: Counts, alpha: float) -> float:
    """For outputs that are in the event together as far as those that were counted."""
    one, two, common = (c / counts.n1 for c in (counts.c1, counts.c2, counts.both or 0))
    together = (common - one * two) / max(min(one, two) - one * two, 1e-12)
    both = min(max(p1 * p2 + together * (p2 - p1 * p2), 0.0), p2)
    either = p1 + p2 - both
    if p1 <= 0:
        return -math.inf
    q, b = (p1 - both) / p1, (p2 - both) / either  # as in `evidence.paired`
    q = max(q - _SPREAD * math.sqrt(q * (1 - q) / (counts.n1 * p1)), 0.0)
    b = min(b + _SPREAD * math.sqrt(b * (1 - b) / (counts.n1 * either)), 1.0)
    p1 = either * (1 - b)
    both = (1 - q) * p1
    return float(paired.predicted(p1, both + either * b, both, counts.n1, alpha))
