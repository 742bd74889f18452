"""Parts of the output that are there on one input only, more often than delta allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pytest_dp.blame.finding import Finding
from pytest_dp.blame.origins import condition_of, deciding
from pytest_dp.blame.reach import Reach
from pytest_dp.blame.runs import SIDES
from pytest_dp.blame.values import lines_with
from pytest_dp.privacy.guarantees import Guarantee

RUNS = 600
"""On either input."""
LEAST, TIMES = 3, 3.0
"""Runs in which it has to be there, and how many times delta that has to be."""


def appearing(reach: Reach, claim: Guarantee, lower: float) -> Iterator[Finding]:
    """What is put out on D sometimes, and never on D', or the other way round."""
    if (
        claim.parameter != "eps"
        or len({len(r.leaves) for n in range(8) for r in reach.both(n)}) < 2
    ):
        return
    found = [
        Counter(place for noise in range(RUNS) for place in reach.runs.usual(side, noise).leaves)
        for side in (0, 1)
    ]
    for side in (0, 1):
        for place, often in found[side].most_common():
            if found[1 - side][place] or often < max(LEAST, TIMES * claim.delta * RUNS):
                continue
            runs = (reach.runs.usual(side, noise).leaves for noise in range(RUNS))
            noise, value = next((n, run[place]) for n, run in enumerate(runs) if place in run)
            given = lines_with(reach, side, place, value, noise)
            if not given:
                return
            at = condition_of(given[-1])
            text = (
                f"{place} is there in {often} of {RUNS} runs on {SIDES[side]}, and in none of "
                f"{RUNS} on {SIDES[1 - side]}, for delta = {claim.delta:g} claimed"
            )
            yield Finding("too far apart", at, text, loss=lower)
            for line, name in deciding(at):
                text = f"`{name}`, by which line {at.line} decides, is set here"
                yield Finding("scale", line, text, loss=lower)
            return
