"""How much more noise is enough: on every pair of a claim, or nothing is advised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from pytest_dp.basics.bisection import smallest
from pytest_dp.data import key
from pytest_dp.explain.findings import together_with
from pytest_dp.explain.runs import ENDS, PairRuns, place_of
from pytest_dp.oracles.alignment import Alignment, align
from pytest_dp.oracles.checking import Memory, NotAligned
from pytest_dp.oracles.shift_loss import LossBound
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.running.generator_stand_ins import CannotInstrument
from pytest_dp.running.requests import Site

ROUNDING = 1e-9
"""Relative error of a parameter. Smaller: rounding makes what is enough too little."""

MAX_PAIRS = 400
"""Pairs that are replayed. Claims of more pairs get no number; each takes some twenty runs."""
REPLAYS = 4
"""Replays of each pair, in both directions. With fewer, a move that only some runs show is missed
more often, so that the number is too small."""
MAX_TIMES = 1e9
"""How much more noise is advised. More is no advice: answers are noise alone by then."""


def advise_more_noise(
    runs: PairRuns, claim: Guarantee, found: Alignment, line: Site, pairs: Sequence[tuple[Any, Any]]
) -> str:
    """Return advice on too little noise at a line, by what draws have to hide on all of the pairs.

    It names no number where that is not known of a pair. `found` is the alignment of the
    counterexample's pair.
    """
    more = "more noise"
    with suppress(*ENDS, NotAligned):
        others = {(key(one), key(other)): (one, other) for one, other in pairs}
        others.pop((key(runs.pair[0]), key(runs.pair[1])), None)
        if len(others) <= MAX_PAIRS:
            memory, is_kept = Memory(), partial(_is_kept, claim)
            look = is_kept, REPLAYS, runs.deadline, memory
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


def _is_kept(claim: Guarantee, bound: LossBound, times: float = 1.0) -> bool:
    """Return whether a claim is kept where all noise is this many times as large."""
    try:
        less = replace(bound, pure=bound.pure / times, mu=bound.mu / times)
        return bool(less.parameter_of(claim) <= claim.claimed * (1 + ROUNDING))
    except CannotInstrument:
        return False


def rounded_up(times: float) -> str:
    """Return a number as text, of two digits or whole, that is not smaller."""
    step = 10.0 ** (math.floor(math.log10(times)) - 1)
    up = math.ceil(times / step * (1 - 1e-8)) * step
    return f"{up:,.0f}" if up >= 10 else f"{up:.2g}"
