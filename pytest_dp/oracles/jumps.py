"""Draws on both sides of those at which outputs jump: where they are rounded, clipped or chosen.

A shift that is wrong by less than a step of rounding agrees with most draws, but not with these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.oracles.agreeing import agree
from pytest_dp.oracles.numbers import Numbers
from pytest_dp.running.laws import Law

MAX_JUMPS = 2
"""Jumps that are looked for. Each costs as many runs as the interval is halved."""
HALVINGS = 20
"""Halvings of the interval with a jump. With more, the solutions of linear programs are not exact
enough to stay on their side of it; with fewer, small errors of a shift are missed."""
FIRST_SEED = 1_000_000
"""Seeds of these replays begin here, beyond those of all others."""


class Between(Numbers):
    """The numbers between those of two replays: `share` of the way from one to the other."""

    def __init__(self, one: Numbers, other: Numbers, share: float, number: int) -> None:
        self._one, self._other, self._share = one, other, share
        self.is_of_tails = True
        self.seed = (one.seed[0], FIRST_SEED + number)

    def standard(self, order: int, law: Law, count: int) -> Floats:
        """Return the draws, whole numbers of laws on these."""
        one, other = (each.standard(order, law, count) for each in (self._one, self._other))
        between: Floats = one + self._share * (other - one)
        return np.round(between) if law.lattice else between


def beside_jumps(replays: Sequence[Numbers], output_of: Callable[[Numbers], Any]) -> list[Between]:
    """Return numbers on both sides of jumps between the first replay and others."""
    outputs = [output_of(numbers) for numbers in replays]
    others = [at for at, output in enumerate(outputs) if not agree(outputs[0], output)]
    found: list[Between] = []
    for at in dict.fromkeys([*others[:1], *others[-1:]][:MAX_JUMPS]):
        low, high = 0.0, 1.0
        for step in range(HALVINGS):
            share = 2.0**-HALVINGS if step == 0 else (low + high) / 2
            middle = Between(replays[0], replays[at], share, at * HALVINGS + step)
            if agree(outputs[0], output_of(middle)):
                low = share
            elif step == 0:  # it moves with each draw
                return found
            else:
                high = share
        sides = enumerate((low, high))
        found += [
            Between(replays[0], replays[at], share, FIRST_SEED * (1 + side) + at)
            for side, share in sides
        ]
    return found
