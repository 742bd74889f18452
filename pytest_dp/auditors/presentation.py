"""Presentation of an attack: a counterexample, a sentence, and pictures.

All of it comes of what was counted and kept anyway: nothing is run for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from pytest_dp.auditors.held_out import Tested
from pytest_dp.auditors.pool import Pool
from pytest_dp.auditors.witness import Witness
from pytest_dp.basics.arrays import Floats
from pytest_dp.betting.scores import Attack
from pytest_dp.counterexample import diagnose
from pytest_dp.privacy import Guarantee
from pytest_dp.results.pictures import Interval, Pictures, Points, points, round_for_drawing
from pytest_dp.results.result import Counterexample
from pytest_dp.results.screened import Screened
from pytest_dp.statistics.event_test import Bound, Counts

MIN_TIMES = 3.0
"""How many times the claim the movement has to be, to be told. Smaller ones are told already by the
line that is blamed, as noise that is a little too small."""


def movement_sentence(screened: Screened, guarantee: Guarantee) -> str:
    """Return how far one record moves the answer, and what the noise covers; empty if unknown.

    It is told of claims of eps and mu, whose noise covers its scale times the claim.
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
    """Return the event with its counts."""
    c1, n1, c2, n2 = bound.counts.four
    loss = bound.guarantee.spanning(*(f"{end:.3g}" for end in bound.loss))
    return f"{witness.event}: in {c1:,} of {n1:,} runs on D, {c2:,} of {n2:,} on D'; {loss}"


def describe_seen_attack(counts: Counts, witness: Witness) -> str:
    """Return the event with its counts among the outputs that were bet on."""
    c1, n1, c2, n2 = counts.four
    return f"{witness.event}: in {c1:,} of {n1:,} runs on D, {c2:,} of {n2:,} on D', as bet on"


def counterexample(
    pool: Pool,
    witness: Witness,
    bound: Bound,
    screened: Screened,
    seen: Callable[[Any], Counts] | None = None,
) -> Counterexample:
    """Return the counterexample that the counts give.

    `bound` is of no counts where no effort was left for held-out runs. `seen` tells how often an
    event came among the outputs that were bet on.
    """
    guarantee = bound.guarantee
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
        about = diagnose(readable, known.hits, known.runs, guarantee, searched)
    moves = "" if witness.pair.beyond else movement_sentence(screened, guarantee)
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
        bet_counts=None if before is None else before.hits,
        bet_runs=None if before is None else before.runs,
    )


def attack_of(joint: Floats, sign: int) -> Points:
    """Return the error rates of every threshold of a score, from the joint counts of a record."""
    above1, above2 = (
        np.concatenate([[0.0], np.cumsum(joint.sum(axis)[::-1])]) / joint.sum() for axis in (1, 0)
    )
    # Turned around, the attack points to D': what was missed is then a false alarm.
    rates = (above2, 1 - above1) if sign > 0 else (1 - above1, above2)
    return points(*rates)


def pictures_of(bound: Bound | None, tested: Tested | None, *, violated: bool) -> Pictures:
    """Return the event's error rates and, if it breaks the claim, the counted outputs as bars.

    Both are None if no effort was left for held-out runs.
    """
    if bound is None or tested is None:
        return Pictures()
    drawn = tested.bars if violated else None
    return Pictures(event=event_of(bound), outputs=drawn)


def event_of(bound: Bound) -> tuple[Interval, Interval] | None:
    """Return the error rates of what was counted on held-out samples; None if nothing was."""
    counts = bound.counts
    if not counts.n1:
        return None
    hits, alarms = counts.c1 / counts.n1, counts.c2 / counts.n2
    (low1, high1), (low2, high2) = bound.intervals
    positives, negatives = (low2, alarms, high2), (1 - high1, 1 - hits, 1 - low1)
    return _interval(positives), _interval(negatives)


def _interval(ends: Iterable[float]) -> Interval:
    low, middle, high = map(round_for_drawing, ends)
    return low, middle, high
