"""How much more noise is enough: on every pair of a claim, or nothing is advised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_dp.bisection import smallest
from pytest_dp.blame.findings import together_with
from pytest_dp.blame.runs import ENDS, Runs, place_of
from pytest_dp.datasets import key
from pytest_dp.limits import EQUAL
from pytest_dp.oracles.alignment import Alignment, align
from pytest_dp.oracles.checking import Memory, NotAligned
from pytest_dp.oracles.shift_loss import LossBound
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.randomness.requests import Site
from pytest_dp.randomness.stand_ins import CannotInstrument

MAX_PAIRS = 400
"""Pairs that are replayed. Claims of more pairs get no number; each takes some twenty runs."""
REPLAYS = 4
"""Replays of each pair, in both directions. With fewer, a move that only some runs show is missed
more often, so that the number is too small."""
MAX_TIMES = 1e9
"""How much more noise is advised. More is no advice: answers are noise alone by then."""


@dataclass(frozen=True, slots=True)
class MoreNoise:
    """How many times as much noise keeps a claim, by what draws have to hide."""

    runs: Runs
    claim: Guarantee
    found: Alignment
    line: Site
    """The line that is blamed."""

    def advice(self, pairs: Sequence[tuple[Any, Any]]) -> str:
        """Return what mends too little noise on all of the pairs; without a number if unknown."""
        found = self._of_all(pairs)
        much = ""
        if found is not None:
            bounds, lines = found
            times = smallest(
                lambda times: self._is_enough(bounds, times), 1.0, 2.0, MAX_TIMES, 1e-9
            )
            if times < MAX_TIMES:
                also = together_with([line for line in lines if line != self.line])
                also = also.replace("together with", "also in")
                much = f" (about {rounded_up(times)} times as much, or more{also})"
        return f"more noise{much}, or a smaller sensitivity, or claim the larger loss"

    def _of_all(self, pairs: Sequence[tuple[Any, Any]]) -> tuple[list[LossBound], set[Site]] | None:
        """Return the losses of all pairs, and the lines of those above the claim."""
        others = {(key(one), key(other)): (one, other) for one, other in pairs}
        others.pop((key(self.runs.pair[0]), key(self.runs.pair[1])), None)
        if len(others) > MAX_PAIRS:
            return None
        found, memory = [self.found], Memory()
        for pair in others.values():
            try:
                found.append(
                    align(
                        self.runs.call,
                        pair,
                        lambda bound: self._is_enough([bound], 1.0),
                        REPLAYS,
                        self.runs.deadline,
                        memory,
                    )
                )
            except (*ENDS, NotAligned):
                return None
        above = [one for one in found if not self._is_enough([one.bound], 1.0)]
        lines = {place_of(move.stack) for one in above for move in one.moves}
        return [one.bound for one in found], lines

    def _is_enough(self, bounds: Sequence[LossBound], times: float) -> bool:
        """Return whether the claim is kept where all noise is this many times as large."""
        try:
            return all(
                replace(bound, pure=bound.pure / times, mu=bound.mu / times).parameter_of(
                    self.claim
                )
                <= self.claim.claimed * (1 + EQUAL)
                for bound in bounds
            )
        except CannotInstrument:
            return False


def rounded_up(times: float) -> str:
    """Return a number as text, of two digits or whole, that is not smaller."""
    step = 10.0 ** (math.floor(math.log10(times)) - 1)
    up = math.ceil(times / step * (1 - 1e-8)) * step
    return f"{up:,.0f}" if up >= 10 else f"{up:.2g}"
