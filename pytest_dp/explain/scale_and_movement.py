"""Scale against movement: noise that is too small for the differences that it has to hide.

If draws on D' can be moved so that the output equals that on D, the moves bound the loss
(`pytest_dp.oracles.alignment`), and how much more noise is enough. Otherwise, the standard
deviation of a number is compared with the distance by which it always moves.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from pytest_dp.basics.bisection import smallest
from pytest_dp.data import key
from pytest_dp.explain.runs import (
    ENDS,
    LOOK_RUNS,
    MANY_RUNS,
    OTHER_NOISE,
    WHOLE,
    Finding,
    PairRuns,
    find_caller,
    format_draw,
    format_number,
    format_places,
    place_of,
    together_with,
)
from pytest_dp.oracles.alignment import Alignment, Move, align
from pytest_dp.oracles.checking import Memory, NotAligned
from pytest_dp.oracles.shifts import LossBound
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.running.generator_stand_ins import CannotInstrument, Site
from pytest_dp.running.laws import LAPLACE, NORMAL, Law

MIN_TOO_SMALL = 1.25
"""How many times too small noise has to be, to be named. With less, chance is."""
ROUNDING = 1e-9
"""Relative error of a parameter. Smaller: rounding makes what is enough too little."""

MAX_PAIRS = 400
"""Pairs that are replayed. Claims of more pairs get no number; each takes some twenty runs."""
ADVICE_REPLAYS = 4
"""Replays of each pair that advice covers. With fewer, rare moves are missed: the number is too
small."""
MAX_TIMES = 1e9
"""How much more noise is advised. More is no advice: answers are noise alone by then."""
LOSS_ERROR = 1e-6
"""Relative error of a loss or a probability. With less, rounding exceeds the claim."""

REPLAYS = 60
"""Replays of the counterexample's pair. With fewer, moves that fail on rare paths are told."""
THRESHOLDS = np.linspace(-12.0, 12.0, 241)
"""In scales, between which outputs are told apart under notions that have no formula."""


def compare_with_movement(
    runs: PairRuns, claim: Guarantee, lower: float, pairs: Sequence[tuple[Any, Any]]
) -> Iterator[Finding]:
    """Yield a finding on the line whose draws lose the most, if all moves lose more than claimed.

    Moves of the draws on D' undo the difference to D. Nothing without such moves, or if they lose
    less than the proven `lower`: then some noise is not seen. A second finding names the line that
    asks for the noise, if that is in another function.
    """
    try:
        found = align(runs.call, runs.pair, lambda _: False, REPLAYS, runs.deadline)
    except NotAligned:
        return
    excess = loss_above_claim(found.bound, claim, lower)
    by_line: dict[Site, list[Move]] = defaultdict(list)
    for move in found.moves:
        by_line[place_of(move.stack)].append(move)
    if excess is None or not by_line:
        return
    line = max(by_line, key=lambda line: _sum_losses(by_line[line]))
    loss, said = excess
    others = [other for other in by_line if other != line]
    if others and claim.parameter == "eps" and 0 < loss < math.inf and not found.bound.mu:
        alone = format_number(_sum_losses(by_line[line]))
        said = said.replace("up to", f"up to {alone} from this line, and up to", 1)
    together = together_with(others).removeprefix(",")
    text = f"{_describe_movement(runs, line, by_line[line])}. {said}{together}"
    more = OTHER_NOISE
    if not math.isinf(loss):
        more = advise_more_noise(runs, claim, found, line, pairs)
    text = f"{text}; the claim allows {_format_claim(claim)}"
    yield Finding("too little noise", line, text, loss=lower, advice=more)
    yield from find_caller(by_line[line][0].stack, lower)


def _sum_losses(moves: Sequence[Move]) -> float:
    """Return the loss of moves: the sum of their eps in nats; without any, their joint mu."""
    return sum(move.loss.pure for move in moves) or math.hypot(*(move.loss.mu for move in moves))


def _format_claim(claim: Guarantee) -> str:
    """Return the number that a loss in words is compared with."""
    if claim.parameter == "eps" and claim.delta:
        return f"{claim.delta:g} at eps = {format_number(claim.claimed)}"
    return (
        "1.0 times the claimed curve"
        if claim.parameter == "scale"
        else format_number(claim.claimed)
    )


def _describe_movement(runs: PairRuns, line: Site, moves: Sequence[Move]) -> str:
    """Describe the differences that the draws of a line have to hide, and in which numbers."""
    distances = np.concatenate([np.abs(move.distances) for move in moves])
    count = int(np.count_nonzero(distances))
    kinds = {format_draw(move.request) for move in moves}
    draws = min(kinds) if len(kinds) == 1 else f"draws such as {min(kinds)}"
    has, moved = ("has", "a difference of") if count == 1 else ("have", "differences of up to")
    if count > 1:
        draws = f"{count} {'draws of ' * (len(kinds) == 1)}{draws}"
    places = [p for p in runs.differing_places if p not in WHOLE and line in runs.lines_of(p)]
    where = f" in {format_places(places)}" if places else ""
    return f"{draws} here {has} to hide {moved} {_format_distance(float(distances.max()))}{where}"


def _format_distance(value: float) -> str:
    """Return a distance as text, large ones with commas."""
    return f"{value:,.0f}" if 1e4 <= value < 1e12 else format_number(value)


def loss_above_claim(bound: LossBound, claim: Guarantee, lower: float) -> tuple[float, str] | None:
    """Return a bound on the loss as a number, in the claim's parameter, and a sentence on it.

    None if it is not above the claim, or below the proven `lower`. The number is infinite without a
    bound; notions without a formula get a lower bound.
    """
    try:
        value = bound.parameter_of(claim)
    except CannotInstrument:
        value, lower = _bound_by_tails(bound, claim), 0.0
    if value <= claim.claimed * (1 + LOSS_ERROR) or value < lower * (1 - LOSS_ERROR):
        return None
    if math.isinf(value):
        return value, _WHY_UNBOUNDED[claim.parameter == "eps" and bound.mu > 0]
    if claim.parameter == "eps" and bound.mu:
        return value, f"Delta is up to {bound.delta_at(claim.claimed):.2g}"
    name = "The loss" if claim.parameter in ("eps", "scale") else claim.parameter.capitalize()
    return value, f"{name} is up to {format_number(value)}"


_WHY_UNBOUNDED = {
    True: "Gaussian noise keeps no eps without a delta",
    False: "The loss has no bound",
}


def _bound_by_tails(bound: LossBound, claim: Guarantee) -> float:
    """Return a lower bound in the claim's parameter, by the tails of one draw with such a loss.

    0 if the loss has both a pure and a Gaussian part, infinite for an infinite loss.
    """
    if bound.pure and bound.mu:
        return 0.0
    law, shift = (Law(NORMAL), bound.mu) if bound.mu else (Law(LAPLACE), bound.pure)
    if math.isinf(shift):
        return math.inf
    shift *= 1 - LOSS_ERROR  # what is equal to the claim is not more
    p, q = (np.exp(law.log_above(THRESHOLDS - moved)) for moved in (shift, 0.0))
    exact = (q > LOSS_ERROR) & (p < 1 - LOSS_ERROR)  # else digits of claimed curves are lost
    return float(np.max(claim.shown_by(p, q), initial=0.0, where=exact))


def measure_noise(runs: PairRuns, claim: Guarantee, lower: float) -> Iterator[Finding]:
    """Yield a finding on a number whose standard deviation is too small for how far it moves.

    Nothing if there is none, and for other claims than eps without delta.
    """
    for place in runs.differing_places if claim.parameter == "eps" and not claim.delta else ():
        lines = runs.lines_of(place)
        if place in WHOLE or not lines:
            continue
        move, deviation = _move_and_deviation(runs, place, LOOK_RUNS)
        if move < claim.claimed * deviation / 2:
            continue  # far from too much: not worth more runs
        move, deviation = _move_and_deviation(runs, place, MANY_RUNS)
        needed = math.sqrt(2) * move / claim.claimed
        if not deviation or needed <= MIN_TOO_SMALL * deviation:
            continue
        line = max(lines, key=lambda line: (line.file, line.line))
        others = together_with([other for other in lines if other != line])
        text = (
            f"{place} differs by {format_number(move)} between D and D' in all runs on the same "
            f"random numbers. Its noise, drawn here{others}, has a standard deviation of "
            f"{deviation:.2g}; Laplace noise for eps = {format_number(claim.claimed)} would have "
            f"{needed:.2g}"
        )
        yield Finding("too little noise", line, text, loss=lower)
        yield from find_caller(runs.draw_at(line).stack, lower)
        return


def _move_and_deviation(runs: PairRuns, place: str, count: int) -> tuple[float, float]:
    """Return the distance of a number between D and D', and its standard deviation.

    0 and infinity if the leaf is no number, or if the distance is not the same in all runs.
    """
    values = [runs.values(side, place, count) for side in (0, 1)]
    if all(isinstance(value, float) for of_side in values for value in of_side):
        here, there = np.array(values, dtype=float)
        size = float(np.abs([here, there]).max())
        if np.isfinite(size) and np.ptp(here - there) <= 1e-9 * size:
            return float(abs(here[0] - there[0])), float(here.std())
    return 0.0, math.inf


def advise_more_noise(
    runs: PairRuns, claim: Guarantee, found: Alignment, line: Site, pairs: Sequence[tuple[Any, Any]]
) -> str:
    """Run the mechanism on all pairs, and return advice on too little noise at a line.

    The advice names how much more noise is enough, unless a pair has no alignment, there are too
    many pairs, or time is up. `found` is the alignment of the counterexample's pair.
    """
    more = "more noise"
    with suppress(*ENDS, NotAligned):
        others = {(key(one), key(other)): (one, other) for one, other in pairs}
        others.pop((key(runs.pair[0]), key(runs.pair[1])), None)
        if len(others) <= MAX_PAIRS:
            memory, is_kept = Memory(), partial(_is_claim_kept, claim)
            look = is_kept, ADVICE_REPLAYS, runs.deadline, memory
            aligned = [found, *(align(runs.call, pair, *look) for pair in others.values())]
            above = [one for one in aligned if not is_kept(one.bound)]
            times = smallest(
                lambda times: all(is_kept(one.bound, times) for one in aligned),
                *(1.0, 2.0, MAX_TIMES, 1e-9),
            )
            if times < MAX_TIMES:
                lines = {place_of(move.stack) for one in above for move in one.moves} - {line}
                also = together_with([*lines]).replace("together with", "also in")
                much = f"about {rounded_up(times)} times as much noise{also}"
                more = f"{much}, enough for the pairs tried"
    less = "let one record move the answer less, such as by a clip"
    return f"{less}; or use {more}; or claim the larger loss"


def _is_claim_kept(claim: Guarantee, bound: LossBound, times: float = 1.0) -> bool:
    """Return whether a claim is kept if all noise is `times` as large; False if that is unknown."""
    try:
        less = replace(bound, pure=bound.pure / times, mu=bound.mu / times)
        return bool(less.parameter_of(claim) <= claim.claimed * (1 + ROUNDING))
    except CannotInstrument:
        return False


def rounded_up(times: float) -> str:
    """Return a number as text, rounded up to two digits, or to a whole number from 10."""
    step = 10.0 ** (math.floor(math.log10(times)) - 1)
    up = math.ceil(times / step * (1 - 1e-8)) * step
    return f"{up:,.0f}" if up >= 10 else f"{up:.2g}"
