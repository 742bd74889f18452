"""Values that are too likely on one input, lines where runs part, and noise that hides the leak."""

from __future__ import annotations

import linecache
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pytest_dp.explain.missing_noise import RAISES, traced_lines
from pytest_dp.explain.runs import (
    ABSENT,
    MANY_RUNS,
    RUNS,
    SIDES,
    UNIFORM,
    WHOLE,
    Finding,
    Leaf,
    PairRuns,
    SideRun,
    all_at,
    changed_leaves,
    find_caller,
    format_draw,
    format_leaf,
    format_places,
    together_with,
)
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.table import tabulate
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.running.generator_stand_ins import Site
from pytest_dp.running.instrumented import Draw
from pytest_dp.running.laws import GEOMETRIC, draw_kind_of
from pytest_dp.running.laws import UNIFORM as UNIFORM_FAMILY

TRACED_RUNS = 80
"""Runs that are traced, which is slow. Fewer miss lines where runs part seldom."""
MIN_PARTED = 5
"""Runs that part at a line, and that do not. Fewer may be chance."""
CLEAR_ERRORS = 3.0
"""Standard errors of a count that chance does not explain. More miss leaks."""
MAX_VALUES = 8
"""Values of a leaf that are counted. Of leaves with more, hardly any comes often enough."""
MAX_PLACES = 8
"""Leaves that are counted together. With more, hardly any combination comes often enough."""
A_NUMBER: Leaf = ("number", "there")
"""The value that stands for any number, in counts of a leaf with many different numbers."""
_TO_RAISE = (
    "use more noise where it decides whether this raises, and keep data out of the message; or "
    "never raise"
)

FIRST_NOISE = 10_000
"""Number of the first noise used here; lower ones chose the lines."""

_MIDDLES = {UNIFORM_FAMILY: 0.5, GEOMETRIC: 0.0}
"""Around which standard draws become larger, of families without a centre."""

Values = tuple[tuple[str, ...], tuple[Leaf, ...]]
"""Places, and the values there."""


def _count_outcomes(
    runs: PairRuns, outcomes: Callable[[SideRun], Iterator[Values]], many: int
) -> Iterator[tuple[int, Values, int, int]]:
    """Run both inputs `many` times; yield side, outcome, its count there and on the other side.

    The outcomes of D come first, common ones before rare ones.
    """
    counts = [
        Counter(o for noise in range(many) for o in outcomes(runs.cached_run(side, noise)))
        for side in (0, 1)
    ]
    for side in (0, 1):
        for outcome, count in counts[side].most_common():
            yield side, outcome, count, counts[1 - side][outcome]


def find_unequal_values(runs: PairRuns, claim: Guarantee, lower: float) -> Iterator[Finding]:
    """Yield a finding on the line that decides a value more likely on one input than allowed.

    The value is at one place of the output, or at several together. A second finding names the line
    that asks for the noise, if that is in another function. Nothing if no value clearly is.
    """
    leaves = dict.fromkeys(place for run in runs.all_runs() for place in run.leaves)
    reached = [place for place in leaves if place not in WHOLE and runs.lines_of(place)]
    few = {place for place in reached if _has_few(runs, place)}
    differing = [place for place in runs.differing_places if place in reached]
    alone = sorted(differing, key=lambda place: place not in few)[:MAX_PLACES]
    some = [place for place in alone if place in few]
    drawn = frozenset().union(*map(runs.lines_of, some))
    beside = [p for p in reached if p in few and p not in some and runs.lines_of(p) & drawn]
    groups = [tuple(p for p in leaves if p in group) for group in (some, [*some, *beside])]
    counted = dict.fromkeys(
        [*((place,) for place in alone), *(g[:MAX_PLACES] for g in groups if g)]
    )

    def value(run: SideRun, place: str) -> Leaf:
        leaf = run.leaves.get(place, ABSENT)
        return A_NUMBER if isinstance(leaf, float) and place not in few else leaf

    def outcomes(run: SideRun) -> Iterator[Values]:
        return ((places, tuple(value(run, place) for place in places)) for places in counted)

    for many in (RUNS, MANY_RUNS):  # fewer are enough for what is clear, of slow mechanisms too
        clear = [
            (len(chosen), allowed - least, (side, chosen, values, count, seldom))
            for side, (chosen, values), count, seldom in _count_outcomes(runs, outcomes, many)
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
    if not {ABSENT, A_NUMBER} & {*values} and with_more_noise(draw) is not None:
        kind = "shared noise" if len(chosen) > 1 and common and not seldom else "too little noise"
    shown = ", ".join(map(format_leaf, values[:2])) + ", ..." * (len(values) > 2)
    is_raised = shown.startswith(RAISES)
    what = shown if is_raised else f"is {shown}" if len(chosen) == 1 else f"are {shown}"
    subject = "it" if len(chosen) == 1 else "they"
    draws = f"{format_draw(draw.request)} here{together_with(lines[1:])}{',' * (len(lines) > 1)}"
    text = (
        f"{draws} decides {format_places(chosen)}: {subject} {what} in {count} of {many} runs on "
        f"{SIDES[side]}, and in {seldom or 'none'} of {many} on {SIDES[1 - side]}"
    )
    advice = _TO_RAISE if is_raised else ""
    certain = kind == "shared noise"
    yield Finding(kind, lines[0], text, certain=certain, loss=lower, advice=advice)
    yield from find_caller(draw.stack, lower)


def _has_few(runs: PairRuns, place: str) -> bool:
    """Return whether an output has few values at a place, and its numbers come twice on average.

    The limit is `MAX_VALUES` different values, in `LOOK_RUNS` runs on either input.
    """
    values = [run.leaves.get(place, ABSENT) for run in runs.all_runs()]
    numbers = [value for value in values if isinstance(value, float)]
    return len({*values}) <= MAX_VALUES and 2 * len({*numbers}) <= len(numbers)


def _allowed_share(claim: Guarantee, seldom: int, many: int) -> float:
    """Return the share of `many` runs that a claim allows, if the other input had `seldom`.

    That count is raised by `CLEAR_ERRORS` for chance.
    """
    most = seldom + CLEAR_ERRORS * math.sqrt(seldom + 1) + CLEAR_ERRORS
    return float(claim.largest_probability(min(most / many, 1.0)))


def find_helpful_noise(
    runs: PairRuns, event: Callable[[Any], Any] | None, claim: Guarantee, lower: float
) -> Iterator[Finding]:
    """Yield a finding on the line where four times the noise lowers an event's excess the most.

    The event is too likely on D; the excess is its probability there, less the largest one that the
    claim allows. `lower` is the proven loss. Nothing if more noise does not clearly help, or
    without an event.
    """
    lines = [line for line in runs.lines if event is not None and _is_noise(runs, line)]
    if event is None or not lines:
        return

    def excess(shares: tuple[float, float]) -> float:
        return shares[0] - claim.largest_probability(shares[1])

    counting = FIRST_NOISE + RUNS
    noises = range(FIRST_NOISE, counting)
    line = min(lines, key=lambda line: excess(_measure_shares(runs, event, line, noises)))
    noises = range(counting, counting + MANY_RUNS)
    before, after = (_measure_shares(runs, event, more, noises) for more in (None, line))
    if not after[1] and excess(after) > CLEAR_ERRORS * _excess_error(claim, *after):
        return  # what comes on D alone with any noise is no matter of noise
    error = math.hypot(_excess_error(claim, *before), _excess_error(claim, *after))
    if excess(before) - excess(after) < max(excess(before) / 4, CLEAR_ERRORS * error):
        return
    text = (
        f"with four times the noise of {format_draw(runs.draw_at(line).request)} here, S comes in "
        f"{after[0]:.2g} of the runs on D and {after[1]:.2g} on D'. With the present noise these "
        f"shares are {before[0]:.2g} and {before[1]:.2g} ({MANY_RUNS} runs each)"
    )
    yield Finding("too little noise", line, text, loss=lower)


def _excess_error(claim: Guarantee, here: float, there: float) -> float:
    """Return the standard error of an excess, given the event's shares on D and D'."""
    least, allowed = 1 / MANY_RUNS, claim.largest_probability
    deviation = math.sqrt((there + least) / MANY_RUNS)
    around = allowed(min(there + deviation, 1.0)) - allowed(there)
    return math.hypot(math.sqrt((here + least) / MANY_RUNS), around)


def _is_noise(runs: PairRuns, line: Site) -> bool:
    """Return whether all draws of a line are noise that can be made larger."""
    draws = (draw for run in runs.all_runs() for draw in run.draws_at(line))
    return all(with_more_noise(draw) is not None for draw in draws)


def with_more_noise(draw: Draw, _: Any = None) -> Any:
    """Return the value of a draw with four times its noise, of its type.

    None if the distribution is unknown, uniform as for decisions, or has no positive scale.
    """
    standard_of = draw_kind_of(draw.request).standard
    if standard_of is None or draw.request.method in UNIFORM:
        return None
    try:
        law, scale, location = standard_of(draw.request.arguments)
        middle = _MIDDLES.get(law.family)
        if middle is None and law.family.centre is not None:
            middle = law.family.centre(law.parameter)
        if middle is None or not 0 < np.min(scale) <= np.max(scale) < math.inf:
            return None
        centre = location + np.multiply(scale, middle)
        value = np.asarray(centre + 4.0 * (draw.value - centre))
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    value = value.astype(np.asarray(draw.value).dtype)
    return value if np.ndim(draw.value) else type(draw.value)(value.item())


def _measure_shares(
    runs: PairRuns, event: Callable[[Any], Any], line: Site | None, noises: range
) -> tuple[float, float]:
    """Run both inputs on each of `noises`; return the share of runs with the event on D and on D'.

    All draws of `line`, if one is given, have four times the noise.
    """
    replaced = None if line is None else all_at(line, with_more_noise)
    shares = []
    for side in (0, 1):
        outputs = [runs.run(side, noise, replaced).output for noise in noises]
        if isinstance(event, Event):
            shares.append(float(event.mask(tabulate(outputs)).mean()))
        else:
            shares.append(sum(float(event(output)) for output in outputs) / len(noises))
    return shares[0], shares[1]


def find_parting(runs: PairRuns) -> Iterator[Finding]:
    """Trace runs; yield a finding on the line that runs reach exactly if D and D' differ in output.

    Nothing without such a line, if runs hardly ever or nearly always differ, or if a debugger
    traces.
    """
    reached: list[dict[Site, None]] = []  # in order
    differ: list[bool] = []
    for noise in range(TRACED_RUNS):
        with traced_lines() as lines:
            outputs = [runs.run(side, noise) for side in (0, 1)]
        if not lines:
            return
        reached.append(dict.fromkeys(lines))
        differ.append(bool(changed_leaves(*outputs)))
    count = sum(differ)
    if count < MIN_PARTED or TRACED_RUNS - count < MIN_PARTED:
        return
    for line in dict.fromkeys(line for lines in reached for line in lines):
        # How often the lines of comprehensions run says nothing of the path.
        if not line.function.startswith("<") and [line in lines for lines in reached] == differ:
            text = (
                f"with the same random numbers, {count} of {TRACED_RUNS} runs on D or D' reach "
                f"this line, `{linecache.getline(line.file, line.line).strip()}`. The outputs "
                "differ in these runs, and in no others"
            )
            yield Finding("passing", line, text)
            return
