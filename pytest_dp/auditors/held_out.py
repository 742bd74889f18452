"""Counts of an event on held-out samples, and how they are presented: in words and pictures.

Every method ends here, with the one event that it has chosen: readable, or a learned attack. Only
the counting runs the mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from pytest_dp.auditors.budget import SHARE_OF_FEW, Budget
from pytest_dp.auditors.pair_state import Pool
from pytest_dp.auditors.session import Session
from pytest_dp.auditors.witness import Witness
from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.basics.errors import DependentRuns
from pytest_dp.betting.scores import Attack, Bars, Tally, bars_of
from pytest_dp.counterexample import diagnose
from pytest_dp.outputs.paired_outputs import first_pairs
from pytest_dp.pairs.sources import Screened
from pytest_dp.privacy import Guarantee
from pytest_dp.results.outcome import (
    Histogram,
    Interval,
    Pictures,
    Points,
    curve_points,
    round_for_drawing,
)
from pytest_dp.results.result import Counterexample
from pytest_dp.running.deadline import OutOfTime
from pytest_dp.running.generators import Purpose, stream
from pytest_dp.running.sampler import SampleRequest
from pytest_dp.statistics import count_tests
from pytest_dp.statistics.count_tests import NOT_IID
from pytest_dp.statistics.event_test import Bound, Counts, EventTest

SHOWN_OUTPUTS = 8_000
"""Outputs by which a violation is shown. Fewer: bounds are wider."""
MIN_SHOWN_RUNS = 48
"""Held-out runs in any case. Fewer: counts say nothing; more: a red build waits."""
GROWTH = 4
"""Growth of held-out runs between times at which they may end. Larger: fewer are used."""
SECONDS_OF_FEW = 2.0
"""Seconds of counting after the time for reports. Fewer: busy machines count less."""
CUT_OFF = (
    "the time to describe a violation was over before all was counted: this machine is slow, or "
    "busy; run it again to see more"
)

MIN_TIMES = 3.0
"""Multiple of the claim from which a movement is reported: smaller ones follow from the blamed
line."""


@dataclass(frozen=True, slots=True)
class HeldOutCounts:
    """The counts of an event on held-out samples."""

    counts: Counts
    varying_shares: tuple[float, ...] = ()
    """Shares of the runs on one input that were in the event, stretch by stretch; empty unless they
    differ by more than chance."""
    share: float = 1.0
    """Share of alpha that bounds by the counts may spend."""
    bars: Histogram | None = None
    """The outputs that were counted, as bars."""


def count_witness(
    session: Session,
    pool: Pool,
    witness: Witness,
    total: int,
    *,
    refuted: bool = False,
) -> HeldOutCounts | None:
    """Draw `total` held-out samples, half of them on each input, and count the event of a witness.

    None if there is not one sample for each input. For a claim that is `refuted`, batches grow: if
    time is up, the finished batches count with a small share of alpha, and a note says so. Raises
    OutOfTime if there is no time for the first batch, or the mechanism hangs.
    """
    runs = total // 2
    if runs < 1:
        return None
    budget, tally = session.budget, _make_tally(session.budget, witness)
    ends = _batch_ends(runs) if refuted else [runs]
    groups: tuple[list[Ints], list[Ints]] = ([], [])
    share = 1 - SHARE_OF_FEW if len(ends) > 1 else 1.0
    deadline, further = budget.deadline, budget.counting_deadline(SECONDS_OF_FEW)
    for number, (start, end) in enumerate(pairwise([0, *ends])):
        try:
            if number and not budget.has_time(deadline, 2 * (end - start)):
                raise OutOfTime  # noqa: TRY301
            draws = _request_batch(pool, witness, end - start, number)
            counted = session.sampler.measure(draws, tally, deadline)
        except OutOfTime as out:
            if not number or out.stack:
                raise
            session.sampler.note(CUT_OFF)
            share = SHARE_OF_FEW / (len(ends) - 1)
            break
        deadline = further
        for group, part in zip(groups, counted, strict=True):
            group += part
    sums = [np.sum(group, axis=0) for group in groups]
    return HeldOutCounts(
        _count_hits(session.seed, witness, sums),
        _varying_shares([np.array(group) for group in groups]),
        share,
        tally.histogram(*sums),
    )


def _batch_ends(runs: int) -> list[int]:
    """Return the numbers of samples on each input at which batches end, up to `runs`."""
    few, ends = MIN_SHOWN_RUNS // 2, []
    while few < runs:
        ends.append(few)
        few *= GROWTH
    return [*ends, runs]


def _request_batch(pool: Pool, witness: Witness, size: int, number: int) -> list[SampleRequest]:
    """Return requests for a batch of `size` samples on each input, the likelier input first."""
    batch = (number,) * (number > 0)
    return [
        SampleRequest(pool.inputs[i], size, (Purpose.TEST, i, side, *batch))
        for side, i in enumerate(witness.sides)
    ]


def _make_tally(budget: Budget, witness: Witness) -> Tally:
    """Return a tally of the event of a witness, with bars if there is time to place them."""

    def designed() -> Bars:
        table = first_pairs(*witness.state.outputs.table(), SHOWN_OUTPUTS)[0]
        return bars_of(witness.event, table)

    bars: Bars | None = None
    with suppress(OutOfTime):
        bars = budget.conclude(designed)
    return Tally(witness.event, bars)


def _count_hits(seed: int, witness: Witness, sums: list[Ints]) -> Counts:
    """Return the counts of the event of a witness, given the sums of a `Tally` on each input.

    Outputs at the threshold of an attack count at random, with probability `Attack.tie` each.
    """
    coins = np.random.default_rng(stream(seed, Purpose.TEST, len(sums)))
    tie = witness.event.tie if isinstance(witness.event, Attack) else 0.0
    c1, c2 = (int(s[1]) + int(coins.binomial(int(s[2]), tie)) for s in sums)
    planned = witness.p1, witness.p2
    return Counts(c1, int(sums[0][0]), c2, int(sums[1][0]), planned)


def _varying_shares(groups: list[Ints]) -> tuple[float, ...]:
    """Return the shares of runs in the event by batch, if they differ by more than chance.

    () if they do not. `groups` are counts of chunks on each input, shape (chunks, counts); the
    first input on which shares differ is returned.
    """
    for group in groups:
        for hits in (group[:, 1], group[:, 2], group[:, 1] + group[:, 2]):
            p, shares = count_tests.p_value_of_equal_chunks(hits, group[:, 0])
            if p < NOT_IID:
                return tuple(shares)
    return ()


def check_independent(name: str, witness: Witness, tested: HeldOutCounts) -> None:
    """Raise DependentRuns if the event's share differs between stretches of the counted runs."""
    if tested.varying_shares:
        shown = ", ".join(f"{100 * share:.0f} %" for share in tested.varying_shares[:6])
        raise DependentRuns(
            f"{name}: its runs are not independent, so there is no verdict on "
            f"privacy. On one input, {witness.event} held in {shown}, ... of the runs, stretch by "
            "stretch: more than chance explains. A vectorised mechanism must draw all of its "
            "noise again for every output (shape (size, ...)); others may keep something from run "
            "to run, such as a cache, a quota or a running total."
        )


def bound_by_counts(
    guarantee: Guarantee, alpha: float, tested: HeldOutCounts, proof: type[EventTest] = EventTest
) -> Bound:
    """Return the bounds on the loss, by `proof`, with confidence ``1 - alpha * tested.share``."""
    return proof(guarantee).bound(tested.counts, tested.share * alpha)


def movement_sentence(screened: Screened, guarantee: Guarantee) -> str:
    """Return a sentence on how far one record moves the answer, and how far the noise covers.

    "" if that is not known, below `MIN_TIMES` the claim, or of several numbers; and for claims of
    other parameters than eps and mu, whose noise covers its scale times the claim.
    """
    finite = [moved.movement for moved in screened.largest if moved.movement.loss < math.inf]
    if guarantee.parameter not in ("eps", "mu") or not finite:
        return ""
    largest = finite[0]
    if not largest.scale or largest.loss < MIN_TIMES * guarantee.claimed:
        return ""
    covered = largest.scale * guarantee.claimed
    if largest.answer <= covered:  # several numbers move, and their losses add up
        return ""
    return (
        f"One record changes the answer by up to {largest.answer:.3g} "
        f"(of {screened.screened:,} pairs tried); the noise is enough for {covered:.3g}."
    )


def describe_attack(bound: Bound, witness: Witness) -> str:
    """Return as text the event, its counts, and the interval of the loss that the counts show."""
    loss = bound.guarantee.text_of_range(*(f"{end:.3g}" for end in bound.loss))
    return f"{describe_counts(bound.counts, witness)}; {loss}"


def describe_counts(counts: Counts, witness: Witness) -> str:
    """Return as text the event and its counts."""
    c1, n1, c2, n2 = counts.four
    return f"{witness.event}: in {c1:,} of {n1:,} runs on D, {c2:,} of {n2:,} on D'"


def counterexample(
    pool: Pool,
    witness: Witness,
    bound: Bound,
    screened: Screened,
    before: Counts | None = None,
) -> Counterexample:
    """Return the counterexample of a witness, with diagnoses by its counts.

    `bound` has no counts if no effort was left for held-out runs. `before` are counts of the event
    among outputs that were bet on; diagnoses use them if too few held-out runs would seem to say
    "never".
    """
    guarantee, counts = bound.guarantee, bound.counts
    event: Any = witness.event
    searched = [pool.last[i] for i in witness.sides]
    readable = None if isinstance(event, Attack) else event
    known = counts
    if before is not None and not counts.c2 and (before.c2 or not counts.c1):
        known = before  # a few held-out runs are no reason to say "never"
    about: tuple[str, ...] = ()
    if all(known.runs):
        about = tuple(diagnose(readable, known.hits, known.runs, searched))
    moves = "" if witness.pair.beyond else movement_sentence(screened, guarantee)
    return Counterexample(
        d1=witness.pair.d1,
        d2=witness.pair.d2,
        event=event,
        **bound.counterexample_fields(),
        difference=witness.pair.difference,
        params=witness.pair.params,
        diagnosis=(*about, *([moves] if moves else [])),
        examples=witness.examples,
        bet_counts=None if before is None else before.hits,
        bet_runs=None if before is None else before.runs,
    )


def error_rates_of(joint: Floats, sign: int) -> Points:
    """Return the rates of false positives and false negatives at every threshold of a score.

    `joint` are counts of pairs of bins of the score, D first, shape (width, width). A positive
    `sign` is of an attack that points to D, a negative one to D'.
    """
    above1, above2 = (
        np.concatenate([[0.0], np.cumsum(joint.sum(axis)[::-1])]) / joint.sum() for axis in (1, 0)
    )
    # Turned around, the attack points to D': what was missed is then a false alarm.
    rates = (above2, 1 - above1) if sign > 0 else (1 - above1, above2)
    return curve_points(*rates)


def add_error_rates(pictures: Pictures, witness: Witness) -> Pictures:
    """Return the pictures with the error rates of the learned score, if one was learned."""
    joint = witness.state.record.joint
    return replace(pictures, attack=error_rates_of(joint[0], witness.sign)) if joint else pictures


def make_pictures(bound: Bound, tested: HeldOutCounts, *, violated: bool) -> Pictures:
    """Return pictures of the event's error rates and, if `violated`, of the counted outputs."""
    drawn = tested.bars if violated else None
    if not bound.counts.n1:
        return Pictures(outputs=drawn)
    c1, n1, c2, n2 = bound.counts.four
    (low1, high1), (low2, high2) = bound.intervals
    positives, negatives = (low2, c2 / n2, high2), (1 - high1, 1 - c1 / n1, 1 - low1)
    return Pictures(event=(_round_interval(positives), _round_interval(negatives)), outputs=drawn)


def _round_interval(ends: Iterable[float]) -> Interval:
    """Return the ends of an interval and its middle, rounded for drawing."""
    low, middle, high = map(round_for_drawing, ends)
    return low, middle, high
