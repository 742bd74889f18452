"""Outputs, exceptions and values that come on one input more often than the claim allows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

from pytest_dp.explain.findings import (
    Finding,
    find_caller,
    format_draw,
    format_leaf,
    format_places,
    together_with,
)
from pytest_dp.explain.missing_noise import RAISES
from pytest_dp.explain.more_noise import with_more_noise
from pytest_dp.explain.runs import ABSENT, MANY_RUNS, RUNS, SIDES, WHOLE, Leaf, PairRuns, SideRun
from pytest_dp.explain.source import condition_of
from pytest_dp.explain.tracing import lines_with
from pytest_dp.outputs.raised import Raised
from pytest_dp.privacy.guarantees import Guarantee

FIRST_NOISES = 8
"""Runs on either input that show whether anything differs. More take longer; fewer miss what is
rare."""
CLEAR_TIMES = 3
"""Multiple of what a claim allows from which what never comes elsewhere is more than chance.
Larger: leaks are not named; smaller: chance is."""
CLEAR_ERRORS = 3.0
"""Standard errors of one count that chance does not explain. More: leaks are not named; fewer:
chance is."""

T = TypeVar("T", bound=Hashable)
MAX_VALUES = 8
"""Values of a leaf that are counted. With more, hardly any of them comes often enough."""
MAX_PLACES = 8
"""Leaves that are counted together. With more, hardly any combination comes often enough."""
_TO_RAISE = (
    "let only a noisy value decide whether it raises, and keep data out of the message; or never "
    "raise"
)
_TO_RAISE_WITH_NOISE = (
    "use more noise where it decides whether this raises, and keep data out of the message; or "
    "never raise"
)


def _count(
    runs: PairRuns, outcomes: Callable[[SideRun], Iterable[T]], many: int = MANY_RUNS
) -> Iterator[tuple[int, T, int, int]]:
    """Yield side, outcome, and counts there and on the other side; common outcomes first."""
    counts = [
        Counter(o for noise in range(many) for o in outcomes(runs.usual(side, noise)))
        for side in (0, 1)
    ]
    for side in (0, 1):
        for outcome, count in counts[side].most_common():
            yield side, outcome, count, counts[1 - side][outcome]


def _compare(what: str, side: int, count: int, seldom: int, many: int) -> str:
    return (
        f"{what} in {count} of {many} runs on {SIDES[side]}, and in {seldom or 'none'} of {many} "
        f"on {SIDES[1 - side]}"
    )


def _present(run: SideRun) -> tuple[str, ...]:
    """Return the places of an output, or what was raised instead."""
    raised = isinstance(run.output, Raised)
    return (f"{RAISES}{run.output.kind}",) if raised else tuple(run.leaves)


def find_one_sided_outputs(runs: PairRuns, claim: Guarantee, lower: float) -> Iterator[Finding]:
    """Find places of outputs and exceptions that come on one input more often than is allowed.

    More often than a delta, or than a multiple of never or of seldom.
    """
    looked = (_present(run) for noise in range(FIRST_NOISES) for run in runs.both(noise))
    if len(set(map(frozenset, looked))) < 2:
        return
    never = claim.delta if claim.parameter == "eps" else claim.largest_probability(1 / MANY_RUNS)
    found = list(_count(runs, _present))
    found.sort(key=lambda one: not one[1].startswith(RAISES))
    for side, place, count, seldom in found:
        least, allowed = count / CLEAR_TIMES, never
        if seldom:
            least = count - CLEAR_ERRORS * math.sqrt(count)
            most = (seldom + CLEAR_ERRORS * math.sqrt(seldom)) / MANY_RUNS
            allowed = claim.largest_probability(min(most, 1.0))
        if least < max(1, allowed * MANY_RUNS):
            continue
        noise = next(n for n in range(MANY_RUNS) if place in _present(runs.usual(side, n)))
        assigning = lines_with(runs, side, runs.usual(side, noise).leaves.get(place), noise)
        if assigning:
            is_raised = place.startswith(RAISES)
            is_delta = claim.parameter == "eps" and claim.delta and not seldom
            allowed_text = f"; the claim allows delta = {claim.delta:g}" if is_delta else ""
            what = f"the mechanism {place}" if is_raised else f"{place} is there"
            text = _compare(what, side, count, seldom, MANY_RUNS) + allowed_text
            line, advice = condition_of(assigning[-1]), _TO_RAISE if is_raised else ""
            yield Finding("too far apart", line, text, loss=lower, advice=advice)
        return


def find_unequal_values(runs: PairRuns, claim: Guarantee, lower: float) -> Iterator[Finding]:
    """Find values of one leaf, or of several together, that are more likely than is allowed."""
    places = [place for place in runs.differing if _has_few(runs, place)][:MAX_PLACES]
    if not places:
        return
    drawn = frozenset().union(*map(runs.lines_of, places))
    leaves = dict.fromkeys(place for run in runs.both(0) for place in run.leaves)
    others = [p for p in leaves if p not in places and runs.lines_of(p) & drawn]
    together = [*places, *(place for place in others if _has_few(runs, place))][:MAX_PLACES]
    all_named = [tuple(p for p in leaves if p in named) for named in (places, together)]

    def outcomes(run: SideRun) -> Iterator[tuple[tuple[str, ...], tuple[Leaf, ...]]]:
        for chosen in dict.fromkeys([*((place,) for place in places), *all_named]):
            yield chosen, tuple(run.leaves.get(place, ABSENT) for place in chosen)

    for many in (RUNS, MANY_RUNS):  # fewer are enough for what is clear, of slow mechanisms too
        clear = [
            (len(chosen), allowed - least, (side, chosen, values, count, seldom))
            for side, (chosen, values), count, seldom in _count(runs, outcomes, many)
            if (least := (count - CLEAR_ERRORS * math.sqrt(count)) / many)
            > (allowed := _allowed_share(claim, seldom, many))
        ]
        if clear:
            break
    else:
        return
    side, chosen, values, count, seldom = min(clear, key=lambda found: found[:2])[2]
    common = frozenset.intersection(*map(runs.lines_of, chosen))
    lines = [line for line in runs.lines if line in (common or runs.lines_of(chosen[0]))]
    if not lines:
        return
    draw, kind = runs.draw_at(lines[0]), "too far apart"
    if with_more_noise(draw) is not None:
        kind = "shared noise" if len(chosen) > 1 and common and not seldom else "too little noise"
    shown = ", ".join(map(format_leaf, values[:2])) + ", ..." * (len(values) > 2)
    is_raised = shown.startswith(RAISES)
    what = shown if is_raised else f"is {shown}" if len(chosen) == 1 else f"are {shown}"
    subject = "it" if len(chosen) == 1 else "they"
    draws = f"{format_draw(draw.request)} here{together_with(lines[1:])}{',' * (len(lines) > 1)}"
    compared = _compare(f"{subject} {what}", side, count, seldom, many)
    text = f"{draws} decides {format_places(chosen)}: {compared}"
    advice = _TO_RAISE_WITH_NOISE if is_raised else ""
    certain = kind == "shared noise"
    yield Finding(kind, lines[0], text, certain=certain, loss=lower, advice=advice)
    yield from find_caller(draw.stack, lower)


def _has_few(runs: PairRuns, place: str) -> bool:
    """Return whether draws reach a leaf, and give it few values."""
    values = {run.leaves.get(place, ABSENT) for run in runs.all_runs()}
    return place not in WHOLE and len(values) <= MAX_VALUES and bool(runs.lines_of(place))


def _allowed_share(claim: Guarantee, seldom: int, many: int) -> float:
    """Return the share of runs that a claim allows beside a count of the other input."""
    most = seldom + CLEAR_ERRORS * math.sqrt(seldom + 1) + CLEAR_ERRORS
    return float(claim.largest_probability(min(most / many, 1.0)))
