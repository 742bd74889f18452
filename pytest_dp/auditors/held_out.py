"""Counts of an attack, and of a readable event beside it, on held-out samples.

Every auditor ends here, with the attack that its search, or its bets, came up with.

With an event beside it, the attack's bound spends nine tenths of alpha and the event's the rest,
which costs either next to nothing, so that both bounds hold at once.

Where both inputs are run with the same random numbers, pairs of outputs are counted. If a mechanism
then proves unfit for that, what was counted is dropped, and other samples are counted at the small
share of alpha that is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from pytest_dp.arrays import Ints
from pytest_dp.attacks.bars import Bars, bars_of
from pytest_dp.attacks.expected_bounds import first_share
from pytest_dp.attacks.tally import Hits, Tally
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.moving import movement_sentence
from pytest_dp.auditors.pool import Pool
from pytest_dp.auditors.witness import Witness
from pytest_dp.counterexample import diagnose
from pytest_dp.limits import ATTACK_SHARE, MAX_BATCH, NOT_IID, PAIRED_SHARE, RUNS, SHOWN_OUTPUTS
from pytest_dp.outputs.paired_outputs import first_pairs
from pytest_dp.results.pictures import Histogram
from pytest_dp.results.result import Counterexample
from pytest_dp.sampling.deadline import OutOfTime, within
from pytest_dp.sampling.per_run import CannotCouple
from pytest_dp.sampling.sampler import Draw
from pytest_dp.sampling.streams import Purpose, stream
from pytest_dp.statistics import assumptions
from pytest_dp.statistics.counts import NO_COUNTS, Counts
from pytest_dp.statistics.proofs import SHARP, Bound, Proof

RESERVED_FOR_RERUNS = 0.06
"""Share of the runs in pairs that is set aside for those which are run again on a copy, to see that
random numbers are really shared: at most 5 %, and what is rounded up, from which it is derived."""


@dataclass(frozen=True, slots=True)
class Tested:
    """What was counted on held-out samples."""

    counted: Mapping[str, Counts]
    """Of the "attack", of the readable "event", or of both."""
    varying_shares: tuple[float, ...] = ()
    """Shares of runs on one input that were in it, stretch by stretch, if beyond chance."""
    share: float = 1.0
    """Of alpha, what they may spend."""
    bars: Mapping[str, Histogram] = field(default_factory=dict)
    """The outputs that were counted, as bars for the attack, and for the event."""

    def swapped(self) -> Tested:
        """The same, with the other input as the likelier one."""
        counted = {kind: counts.swapped for kind, counts in self.counted.items()}
        bars = {kind: drawn.swapped() for kind, drawn in self.bars.items()}
        return replace(self, counted=counted, bars=bars)


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
    both = np.zeros(4, int)
    groups: tuple[list[Ints], list[Ints]] = ([], [])
    for draws in draws_of(pairs):
        parts = context.sampler.measure(draws, Hits(tally), context.deadline)
        hits1, hits2 = (np.concatenate([hits for _, hits in part], axis=1) for part in parts)
        both += (hits1 & hits2).sum(1)
        for group, part in zip(groups, parts, strict=True):
            group += [counts for counts, _ in part]
    sums = [np.sum(group, axis=0) for group in groups]
    return Tested(
        _counted(context, witness, sums, both),
        _varying_shares([np.array(group) for group in groups]),
        PAIRED_SHARE,
        tally.histograms(*sums),
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

    def designed() -> tuple[Bars, ...]:
        table = first_pairs(*witness.state.outputs.table(), SHOWN_OUTPUTS)[0]
        events = (witness.attack, witness.event)
        return tuple(bars_of(event, table) for event in events if event is not None)

    bars: tuple[Bars, ...] = ()
    with suppress(OutOfTime):
        bars = within(context.to_conclude(), designed) if drawn else ()
    return Tally(witness.attack, witness.event, witness.middle, bars)


def _counted(
    context: Context, witness: Witness, sums: list[Ints], both: Ints | None = None
) -> dict[str, Counts]:
    """Counts of what there is of a witness, by those of a `Tally` on either input.

    Each output at the threshold of an attack is included with a probability.
    """
    coins = np.random.default_rng(stream(context.seed, Purpose.TEST, len(sums)))
    (n1, n2), counted = (int(s[0]) for s in sums), {}
    if witness.attack is not None:
        tie = witness.attack.tie
        c1, c2 = (int(s[1]) + int(coins.binomial(int(s[2]), tie)) for s in sums)
        counted["attack"] = Counts(c1, n1, c2, n2, None if both is None else int(both[0]))
    if witness.event is not None:
        c1, c2 = (int(s[3]) for s in sums)
        counted["event"] = Counts(c1, n1, c2, n2, None if both is None else int(both[2]))
    return counted


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
    uneven = abs(share - 0.5) > 0.1 and min(share, 1 - share) * total > RUNS // 2
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
    return Tested(counted, _varying_shares(groups), bars=tally.histograms(*sums))


def _varying_shares(groups: list[Ints]) -> tuple[float, ...]:
    """Shares of runs that were in one of the events, if they vary beyond chance; else empty."""
    for group in groups:
        attacked = group[:, 1], group[:, 2], group[:, 1] + group[:, 2]
        for hits in (*attacked, group[:, 3], group[:, 4]):
            p, shares = assumptions.same_in_all_chunks(hits, group[:, 0])
            if p < NOT_IID:
                return tuple(shares)
    return ()


def check_independent(context: Context, witness: Witness, tested: Tested) -> None:
    """Refuse to call a claim violated if runs that were counted were not independent."""
    if tested.varying_shares:
        raise context.not_iid(str(witness.event or witness.attack), tested.varying_shares)


def bounds(context: Context, tested: Tested, proof: Proof = SHARP) -> list[Bound]:
    """Bounds by the counts, the strongest first; all hold at once with confidence 1 - alpha."""
    alpha, both = tested.share * context.alpha, len(tested.counted) > 1
    shares = {"attack": ATTACK_SHARE if both else 1.0, "event": 1 - ATTACK_SHARE if both else 1.0}
    proved = [
        proof.bound(kind, counts, context.guarantee, shares[kind] * alpha)
        for kind, counts in tested.counted.items()
    ]
    return sorted(proved, key=lambda bound: -bound.lower)


def described(bound: Bound, witness: Witness) -> str:
    """The event or attack with its counts."""
    c1, n1, c2, n2 = bound.counts.four
    loss = bound.guarantee.spanning(*(f"{end:.3g}" for end in bound.loss))
    what = getattr(witness, bound.kind)
    return f"{what}: {c1:,} of {n1:,} against {c2:,} of {n2:,}, {loss}"


def shown(proved: list[Bound], claimed: float) -> Bound:
    """The bound to show: that of the readable event where it breaks the claim by itself."""
    events = (bound for bound in proved if bound.kind == "event" and bound.lower > claimed)
    return next(events, proved[0])


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
        kind = "attack" if witness.event is None else "event"
        bound = Bound(kind, NO_COUNTS, context.guarantee, context.alpha)
    kind, counts = bound.kind, bound.counts
    event: Any = getattr(witness, kind)
    before = None if seen is None else seen(event)
    searched = [pool.last[i] for i in witness.sides]
    readable = witness.event if kind == "event" else None
    known = counts
    if before is not None and before.c2 and not counts.c2:
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
        attack=witness.attack,
        examples=witness.examples if kind != "event" else ((), ()),
        both=counts.both,
        bet_counts=None if before is None else before.hits,
        bet_runs=None if before is None else before.runs,
    )
