"""Counts of an event on held-out samples: a readable one, or a learned attack.

Every auditor ends here, with the event that its search, or its bets, came up with.

Where both inputs are run with the same random numbers, pairs of outputs are counted. If a mechanism
then proves unfit for that, what was counted is dropped, and other samples are counted at the small
share of alpha that is left.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from pytest_dp.auditors.context import Context
from pytest_dp.auditors.moving import movement_sentence
from pytest_dp.auditors.pool import Pool
from pytest_dp.auditors.witness import Witness
from pytest_dp.basics.arrays import Ints
from pytest_dp.betting.bars import Bars, bars_of
from pytest_dp.betting.expected_bounds import first_share
from pytest_dp.betting.scores import Attack
from pytest_dp.betting.tally import Hits, Tally
from pytest_dp.counterexample import diagnose
from pytest_dp.outputs.paired_outputs import first_pairs
from pytest_dp.results.pictures import Histogram
from pytest_dp.results.result import Counterexample
from pytest_dp.running.deadline import OutOfTime, within
from pytest_dp.running.per_run import CannotCouple
from pytest_dp.running.sampler import Draw
from pytest_dp.running.streams import Purpose, stream
from pytest_dp.statistics import assumptions
from pytest_dp.statistics.assumptions import NOT_IID
from pytest_dp.statistics.counts import NO_COUNTS, Counts
from pytest_dp.statistics.proofs import SHARP, Bound, Proof

MAX_BATCH = 500_000
"""Pairs of outputs that are drawn at a time. More take memory; fewer take longer."""
PAIRED_SHARE = 0.98
"""Share of alpha for counts in pairs; what is left is for counting again without them."""
SHOWN_OUTPUTS = 8_000
"""Outputs by which a violation is shown. More would not change the picture; fewer: bounds are
wider."""
LEAST_EVENT_RUNS = 100
"""Runs of an event, or its complement, that have to be expected where shares are uneven. More:
fewer events are shown; fewer: bounds are chance."""

RESERVED_FOR_RERUNS = 0.06
"""Share of the runs in pairs that is set aside for those which are run again on a copy, to see that
random numbers are really shared: at most 5 %, and what is rounded up, from which it is derived."""


@dataclass(frozen=True, slots=True)
class Tested:
    """What was counted on held-out samples."""

    counts: Counts
    varying_shares: tuple[float, ...] = ()
    """Shares of runs on one input that were in it, stretch by stretch, if beyond chance."""
    share: float = 1.0
    """Of alpha, what they may spend."""
    bars: Histogram | None = None
    """The outputs that were counted, as bars."""

    def swapped(self) -> Tested:
        """The same, with the other input as the likelier one."""
        bars = None if self.bars is None else self.bars.swapped()
        return replace(self, counts=self.counts.swapped, bars=bars)


def count(
    context: Context,
    pool: Pool,
    witness: Witness,
    total: int,
    *,
    even: bool = False,
    drawn: bool = True,
    batch: int = 0,
) -> Tested | None:
    """Count in `total` held-out samples; None if there is not one for each input.

    More are drawn on the input that needs more, unless they are to be `even`. `drawn` is whether a
    picture may be drawn of them. Each `batch` of the same audit has samples of its own.
    """
    if not witness.coupled:
        return _count_apart(context, pool, witness, total, even=even, drawn=drawn, batch=batch)
    before = context.sampler.runs
    try:
        return _count_pairs(context, pool, witness, total // 2, drawn=drawn)
    except CannotCouple as reason:
        context.sampler.note(f"counted again without shared random numbers, as {reason}")
        left = total - (context.sampler.runs - before)
        tested = _count_apart(context, pool, witness, left, even=even, drawn=drawn)
        return None if tested is None else replace(tested, share=1 - PAIRED_SHARE)


def _count_pairs(
    context: Context, pool: Pool, witness: Witness, pairs: int, *, drawn: bool
) -> Tested | None:
    """Count in so many pairs of outputs, each drawn with the same random numbers."""
    sides = witness.sides
    draws_of = partial(_paired_draws, pool, sides)
    allowed, pairs = 2 * pairs, int((1 - RESERVED_FOR_RERUNS) * pairs)
    while pairs > 0:
        cost = sum(context.sampler.cost_of(draw) for draw, _ in draws_of(pairs))
        if cost <= allowed:
            break
        pairs = min(pairs - 1, int(pairs * allowed / cost))
    if pairs < 1:
        return None
    tally = _tally(context, witness, drawn=drawn)
    both = 0
    groups: tuple[list[Ints], list[Ints]] = ([], [])
    for draws in draws_of(pairs):
        parts = context.sampler.measure(draws, Hits(tally), context.deadline)
        hits1, hits2 = (np.concatenate([hits for _, hits in part], axis=1) for part in parts)
        both += int((hits1 & hits2)[0].sum())
        for group, part in zip(groups, parts, strict=True):
            group += [counts for counts, _ in part]
    sums = [np.sum(group, axis=0) for group in groups]
    return Tested(
        _counted(context, witness, sums, both),
        _varying_shares([np.array(group) for group in groups]),
        PAIRED_SHARE,
        tally.histogram(*sums),
    )


def _paired_draws(pool: Pool, sides: tuple[int, int], pairs: int) -> list[list[Draw]]:
    """Both inputs' draws of each batch of so many pairs in all."""
    batches = []
    for batch, start in enumerate(range(0, pairs, MAX_BATCH)):
        key, size = (Purpose.PAIRED_TEST, *sides, batch), min(MAX_BATCH, pairs - start)
        batches.append([Draw(pool.inputs[i], size, key, shared=True) for i in sides])
    return batches


def _tally(context: Context, witness: Witness, *, drawn: bool) -> Tally:
    """What is counted of a witness, with bars for its events if these may be drawn."""

    def designed() -> Bars:
        table = first_pairs(*witness.state.outputs.table(), SHOWN_OUTPUTS)[0]
        return bars_of(witness.event, table)

    bars: Bars | None = None
    with suppress(OutOfTime):
        bars = within(context.to_conclude(), designed) if drawn else None
    return Tally(witness.event, witness.middle, bars)


def _counted(
    context: Context, witness: Witness, sums: list[Ints], both: int | None = None
) -> Counts:
    """Counts of a witness, by those of a `Tally` on either input.

    Each output at the threshold of an attack is included with a probability.
    """
    coins = np.random.default_rng(stream(context.seed, Purpose.TEST, len(sums)))
    tie = witness.event.tie if isinstance(witness.event, Attack) else 0.0
    c1, c2 = (int(s[1]) + int(coins.binomial(int(s[2]), tie)) for s in sums)
    return Counts(c1, int(sums[0][0]), c2, int(sums[1][0]), both)


def _count_apart(
    context: Context,
    pool: Pool,
    witness: Witness,
    total: int,
    *,
    even: bool,
    drawn: bool,
    batch: int = 0,
) -> Tested | None:
    """Count in independent samples, more of them on the input that needs more."""
    share, chances = 0.5, (np.array(witness.p1), np.array(witness.p2))
    if not even:
        share = float(first_share(*chances, context.guarantee))
    uneven = abs(share - 0.5) > 0.1 and min(share, 1 - share) * total > LEAST_EVENT_RUNS
    n1 = int(total * share) if uneven else total // 2
    runs = n1, total - n1 if uneven else n1
    if n1 < 1:
        return None
    draws = [
        Draw(pool.inputs[i], size, (Purpose.TEST, i, side, *((batch,) if batch else ())))
        for side, (i, size) in enumerate(zip(witness.sides, runs, strict=True))
    ]
    tally = _tally(context, witness, drawn=drawn)
    groups = [np.array(g) for g in context.sampler.measure(draws, tally, context.deadline)]
    sums = [group.sum(axis=0) for group in groups]
    counted = _counted(context, witness, sums)
    return Tested(counted, _varying_shares(groups), bars=tally.histogram(*sums))


def _varying_shares(groups: list[Ints]) -> tuple[float, ...]:
    """Shares of runs that were in one of the events, if they vary beyond chance; else empty."""
    for group in groups:
        for hits in (group[:, 1], group[:, 2], group[:, 1] + group[:, 2], group[:, 3]):
            p, shares = assumptions.same_in_all_chunks(hits, group[:, 0])
            if p < NOT_IID:
                return tuple(shares)
    return ()


def check_independent(context: Context, witness: Witness, tested: Tested) -> None:
    """Refuse to call a claim violated if runs that were counted were not independent."""
    if tested.varying_shares:
        raise context.not_iid(str(witness.event), tested.varying_shares)


def bound_of(context: Context, tested: Tested, proof: Proof = SHARP) -> Bound:
    """Return the bound by the counts, with confidence 1 - alpha."""
    return proof.bound(tested.counts, context.guarantee, tested.share * context.alpha)


def described(bound: Bound, witness: Witness) -> str:
    """The event with its counts."""
    c1, n1, c2, n2 = bound.counts.four
    loss = bound.guarantee.spanning(*(f"{end:.3g}" for end in bound.loss))
    return f"{witness.event}: {c1:,} of {n1:,} against {c2:,} of {n2:,}, {loss}"


def counterexample(
    context: Context,
    pool: Pool,
    witness: Witness,
    bound: Bound | None,
    seen: Callable[[Any], Counts] | None = None,
) -> Counterexample:
    """The counterexample that the counts give.

    `bound` is None where no effort was left for held-out runs. `seen` tells how often an event came
    among the outputs that were bet on.
    """
    if bound is None:
        bound = Bound(NO_COUNTS, context.guarantee, context.alpha)
    event: Any = witness.event
    counts, is_learned = bound.counts, isinstance(event, Attack)
    before = None if seen is None else seen(event)
    searched = [pool.last[i] for i in witness.sides]
    readable = None if is_learned else event
    known = counts
    if before is not None and not counts.c2 and (before.c2 or not counts.c1):
        known = before  # a few held-out runs are no reason to say "never"
    about: tuple[str, ...] = ()
    if all(known.runs):
        about = diagnose(readable, known.hits, known.runs, context.guarantee, searched)
    moves = "" if witness.pair.beyond else movement_sentence(context.screened, context.guarantee)
    return Counterexample(
        d1=witness.pair.d1,
        d2=witness.pair.d2,
        event=event,
        **bound.counterexample_fields(),
        difference=witness.pair.difference,
        params=witness.pair.params,
        diagnosis=(*about, *([moves] if moves else [])),
        attack=event if is_learned else None,
        examples=witness.examples,
        both=counts.both,
        bet_counts=None if before is None else before.hits,
        bet_runs=None if before is None else before.runs,
    )
