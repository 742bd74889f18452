"""Numbers that move by the same amount whatever the noise is, and noise of a kind not known."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pytest_dp.arrays import Floats
from pytest_dp.blame.families import number
from pytest_dp.blame.finding import Finding, together
from pytest_dp.blame.origins import origins
from pytest_dp.blame.reach import NOISES, Reach
from pytest_dp.blame.runs import LENGTH
from pytest_dp.privacy.guarantees import Guarantee

RUNS = 400
"""On either input, by which the noise is measured."""
MUCH = 1.25
"""Times the claim, so that what was measured cannot be chance."""


def moved(reach: Reach, claim: Guarantee, lower: float) -> Iterator[Finding]:
    """A number whose noise spreads too little for how far it moves."""
    if claim.parameter != "eps" or claim.delta:
        return
    for place in reach.differing:
        lines = reach.lines_of(place)
        if place == LENGTH or not lines:
            continue
        both = _moved(reach, place, NOISES)
        if both is None or abs(both[1][0]) < claim.claimed * both[0].std() / 2:
            continue  # far from too much: not worth more runs
        both = _moved(reach, place, RUNS)
        if both is None:
            continue
        one, moves = both
        move, spread = float(abs(moves[0])), float(one.std())
        if not spread or move * math.sqrt(2) / spread <= MUCH * claim.claimed:
            continue
        needed = math.sqrt(2) * move / claim.claimed
        line = max(lines, key=lambda line: (line.file, line.line))
        others = together([each for each in lines if each != line])
        text = (
            f"{place} always moves by {number(move)} between D and D', and its noise, drawn here"
            f"{others}, has a standard deviation of {spread:.2g}; Laplace noise for "
            f"{number(claim.claimed)} claimed would have {needed:.2g}"
        )
        yield Finding("too little noise", line, text, loss=lower)
        for found in origins(reach, reach.draw_at(line), None, None, place):
            yield Finding(found.kind, found.line, found.text, loss=lower)
        return


def _moved(reach: Reach, place: str, runs: int) -> tuple[Floats, Floats] | None:
    """A number on D and how far it is from that on D', if that is the same in all runs."""
    values = [reach.values(side, place, range(runs)) for side in (0, 1)]
    if not all(isinstance(value, float) for each in values for value in each):
        return None
    one, other = (np.array(each, dtype=float) for each in values)
    size = float(np.abs(np.concatenate([one, other])).max())
    if not np.isfinite(size) or np.ptp(one - other) > 1e-9 * size:
        return None
    return one, one - other
