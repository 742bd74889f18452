"""Parts of the output that are there on one input only, more often than delta allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pytest_dp.blame.findings import Finding
from pytest_dp.blame.flow import Flow
from pytest_dp.blame.origins import condition_of, deciding
from pytest_dp.blame.runs import SIDES
from pytest_dp.blame.variables import lines_with
from pytest_dp.privacy.guarantees import Guarantee

PILOT_RUNS = 8
"""Runs on either input in which the number of leaves has to vary, before RUNS are made. More would
find parts that are rarer, and cost time with every violation. Chosen by hand."""
RUNS = 600
"""Runs on either input. More would find parts that are rarer, and take longer. Chosen by hand, so
that blame ends within seconds."""
LEAST, TIMES_DELTA = 3, 3.0
"""A part has to be there in so many runs, and so many times more often than delta allows. Lower
values would show more, some of it by chance. Chosen by hand."""


def presence(flow: Flow, claim: Guarantee, lower: float) -> Iterator[Finding]:
    """What is put out on D sometimes, and never on D', or the other way round."""
    if len({len(run.leaves) for noise in range(PILOT_RUNS) for run in flow.both(noise)}) < 2:
        return
    counts = [
        Counter(place for noise in range(RUNS) for place in flow.runs.usual(side, noise).leaves)
        for side in (0, 1)
    ]
    eps = claim.parameter == "eps"  # which, but for delta, allows a multiple of nothing
    allowed = claim.delta if eps else claim.largest_probability(1 / RUNS)
    promised = f"delta = {claim.delta:g}" if eps else str(claim)
    for side in (0, 1):
        for place, count in counts[side].most_common():
            if counts[1 - side][place] or count < max(LEAST, TIMES_DELTA * allowed * RUNS):
                continue
            runs = (flow.runs.usual(side, noise).leaves for noise in range(RUNS))
            noise, value = next((n, run[place]) for n, run in enumerate(runs) if place in run)
            assigning = lines_with(flow, side, place, value, noise)
            if not assigning:
                return
            condition = condition_of(assigning[-1])
            text = (
                f"{place} is there in {count} of {RUNS} runs on {SIDES[side]}, and in none of "
                f"{RUNS} on {SIDES[1 - side]}, for {promised} claimed"
            )
            yield Finding("too far apart", condition, text, loss=lower)
            for line, name in deciding(condition):
                text = f"`{name}`, by which line {condition.line} decides, is set here"
                yield Finding("scale", line, text, loss=lower)
            return
