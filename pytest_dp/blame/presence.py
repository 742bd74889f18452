"""Parts of the output that are there on one input only, more often than delta allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pytest_dp.blame.findings import Finding
from pytest_dp.blame.flow import Flow
from pytest_dp.blame.origins import condition_of, deciding
from pytest_dp.blame.runs import SIDES
from pytest_dp.blame.variables import lines_with
from pytest_dp.limits import FEW, MANY_RUNS, SEVERAL
from pytest_dp.privacy.guarantees import Guarantee


def presence(flow: Flow, claim: Guarantee, lower: float) -> Iterator[Finding]:
    """What is put out on D sometimes, and never on D', or the other way round."""
    if len({len(run.leaves) for noise in range(SEVERAL) for run in flow.both(noise)}) < 2:
        return
    counts = [
        Counter(
            place for noise in range(MANY_RUNS) for place in flow.runs.usual(side, noise).leaves
        )
        for side in (0, 1)
    ]
    eps = claim.parameter == "eps"  # which, but for delta, allows a multiple of nothing
    allowed = claim.delta if eps else claim.largest_probability(1 / MANY_RUNS)
    promised = f"delta = {claim.delta:g}" if eps else str(claim)
    for side in (0, 1):
        for place, count in counts[side].most_common():
            if counts[1 - side][place] or count < max(FEW, FEW * allowed * MANY_RUNS):
                continue
            runs = (flow.runs.usual(side, noise).leaves for noise in range(MANY_RUNS))
            noise, value = next((n, run[place]) for n, run in enumerate(runs) if place in run)
            assigning = lines_with(flow, side, place, value, noise)
            if not assigning:
                return
            condition = condition_of(assigning[-1])
            text = (
                f"{place} is there in {count} of {MANY_RUNS} runs on {SIDES[side]}, and in none of "
                f"{MANY_RUNS} on {SIDES[1 - side]}, for {promised} claimed"
            )
            yield Finding("too far apart", condition, text, loss=lower)
            for line, name in deciding(condition):
                text = f"`{name}`, by which line {condition.line} decides, is set here"
                yield Finding("scale", line, text, loss=lower)
            return
