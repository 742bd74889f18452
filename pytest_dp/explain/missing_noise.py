"""Noise that is missing, made of a seed, or shared by several numbers, so that it cancels out.

Missing noise is blamed on the line that gives a variable the output's value, by a trace of the run.
"""

from __future__ import annotations

import math
import sys
import types
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np

from pytest_dp.basics.whose_code import is_project_file
from pytest_dp.explain.runs import (
    ABSENT,
    LENGTH,
    LOOK_RUNS,
    ORDER,
    RUNS,
    SIDES,
    Finding,
    Leaf,
    PairRuns,
    SideRun,
    differ,
    format_draw,
    format_leaf,
    format_number,
    format_places,
    place_of,
)
from pytest_dp.outputs.leaves import NUMBER, as_float, is_number
from pytest_dp.outputs.table import tabulate
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.readers.noise_traces import find_noiseless_relation
from pytest_dp.running.generator_stand_ins import Site
from pytest_dp.running.instrumented import Seeded

CLEAR_ERRORS = 3.0
"""Standard errors that chance does not explain. More miss leaks."""

MAX_COMPARED = 32
"""Numbers of an output that are compared. Noise that only others share goes unnoticed."""

RAISES = "raises "
"""The beginning of the text of a leaf that is an exception."""
MAX_MEMBERS = 64
"""Members of a variable that are compared. With fewer, a draw in a list is missed."""
MAX_LINES = 20_000
"""Lines of a traced run. With fewer, long mechanisms are not followed to their end."""
_RETURNED = "what it returns"
"""The name under which an observer of lines sees what a function returns."""


def find_seeded_generators(runs: PairRuns) -> Iterator[Finding]:
    """Yield a finding on a generator that gets an equal seed in each run; nothing without any."""
    here, there = runs.run_both(0)
    for generator in here.seeded:
        twin = next((other for other in there.seeded if other.stack == generator.stack), None)
        if twin is None or not (
            _is_seeded_in_all_runs(runs, generator, 0) and _is_seeded_in_all_runs(runs, twin, 1)
        ):
            continue
        line, name = place_of(generator.stack), generator.source.name
        if any(place_of(s.stack) != line for s in here.seeded if s.source.name == name):
            continue  # of several generators with one name, which one draws is not known
        draws = [draw for draw in here.draws if draw.request.source.name == name]
        lines = {place_of(draw.stack) for draw in draws}
        places = [place for place in runs.differing_places if set() < runs.lines_of(place) <= lines]
        if not places:
            continue
        with_seed = f"with {_format_seed(generator)}"
        if generator.seed != twin.seed:
            with_seed += f" on D and {_format_seed(twin)} on D'"
        text = (
            f"the generator is seeded {with_seed} here, so all noise of {format_places(places)}, "
            f"such as {format_draw(draws[0].request)}, is the same in each run"
        )
        yield Finding("seeded", line, text, certain=True)
        return


def _is_seeded_in_all_runs(runs: PairRuns, generator: Seeded, side: int) -> bool:
    """Run an input, and return whether a generator gets the same seed in all runs."""
    if not generator.seed or not generator.stack:
        return False

    def has_seed(run: SideRun) -> bool:
        seeds = [other.seed for other in run.seeded if other.stack == generator.stack]
        return bool(seeds) and all(repr(seed) == repr(generator.seed) for seed in seeds)

    return all(has_seed(runs.cached_run(side, noise)) for noise in range(RUNS))


def _format_seed(generator: Seeded) -> str:
    text = ", ".join(map(repr, generator.seed))
    return text if len(text) <= 20 else "the same numbers"


def find_missing_noise(runs: PairRuns, claim: Guarantee) -> Iterator[Finding]:
    """Yield findings on lines that assign values of the output without noise on D, D' or both."""
    texts = {
        place: text
        for place in runs.differing_places
        if (text := _describe_constant(runs, place, claim))
    }
    if LENGTH in texts:
        texts = {LENGTH: texts[LENGTH]}  # which leaves there are follows
    elif len(texts) > 1:
        texts.pop(ORDER, None)  # it follows
    by_line: dict[Site, list[str]] = defaultdict(list)
    for place in texts:
        line = _find_assigning_line(runs, place)
        if line is not None:
            by_line[line].append(place)
    for line, places in by_line.items():
        others = f". This also holds for {format_places(places[1:])}" if len(places) > 1 else ""
        text = f"{places[0]} {texts[places[0]]}{others}"
        yield Finding("no noise", line, text, certain=True, advice=_advise(runs, places))


_ADVICE_ON_WHOLE = {
    "list": "release the keys in a fixed order",
    "len": "release the same keys, or as many entries, for all data",
}
"""Advice on the length and on the order of keys of an output, by the function that gives them."""


def _advise(runs: PairRuns, places: list[str]) -> str:
    """Return advice on leaves without noise at `places`, by the kind of the first leaf's values."""
    whole = _ADVICE_ON_WHOLE.get(places[0].partition("(")[0])
    if whole:
        return whole
    values = [runs.values(side, places[0], 1)[0] for side in (0, 1)]
    constant = [value for side, value in enumerate(values) if not runs.lines_on(side, places[0])]
    if any(value in (ABSENT, math.nan, ("NoneType", None)) for value in constant):
        return "return a number with noise there for all data"
    if any(format_leaf(value).startswith(RAISES) for value in values):
        return "return a number with noise in place of the exception"
    is_number_there = any(isinstance(value, float) for value in values)
    them, shown = "it" if len(places) == 1 else "them", format_places(places)
    if is_number_there:
        return f"add noise to {shown}, or do not release {them}"
    return (
        f"let a noisy value decide {shown}, among candidates that do not come from the data, or do "
        f"not release {them}"
    )


def _noisy_sides(runs: PairRuns, place: str) -> list[int]:
    return [side for side in (0, 1) if runs.lines_on(side, place)]


def _describe_constant(runs: PairRuns, place: str, claim: Guarantee) -> str:
    """Describe the constant value at a place of the output, on one input or both; else return "".

    Also "" for equal constants on D and D'. A value with noise on one input only counts if it
    differs from the constant of the other input more often than the claim allows.
    """
    noisy = _noisy_sides(runs, place)
    if len(noisy) == 2:
        return _describe_constant_number(runs, place)
    values = [runs.values(side, place, RUNS) for side in (0, 1)]
    constants = [on_side[0] for on_side in values]
    if any(set(values[side]) != {constants[side]} for side in {0, 1} - set(noisy)):
        return ""
    said = [_with_verb(format_leaf(constant)) for constant in constants]
    if not noisy:
        if not differ(constants[0], constants[1]):
            return ""
        there = said[1].removeprefix("is ") if said[0].startswith("is ") else said[1]
        both = f"it {said[0]} on D and {there} on D', in all of {RUNS} runs each"
        return f"is released without noise: {both}"
    (side,) = noisy
    count = values[side].count(constants[1 - side])
    others = RUNS - count - CLEAR_ERRORS * math.sqrt(RUNS - count)
    if others <= RUNS * claim.largest_probability(0.0) or (count and constants[1 - side] == ABSENT):
        return ""
    often = f"in {count} of {RUNS} runs" if count else f"in none of {RUNS} runs"
    return (
        f"is released without noise on {SIDES[1 - side]}: it {said[1 - side]} in all of {RUNS} "
        f"runs. On {SIDES[side]} it has noise, and {said[1 - side]} {often}"
    )


def _with_verb(leaf: str) -> str:
    """Return a leaf with its verb, such as ``is 4.0`` or ``raises KeyError: 'age'``."""
    return leaf if leaf.startswith("raises ") else f"is {leaf}"


def _describe_constant_number(runs: PairRuns, place: str) -> str:
    """Describe a value that is a number in some runs only, but always the same; else return "".

    It is described if the numbers on D and D' differ.
    """
    constants, counts = [], []
    for side in (0, 1):
        if len(_numbers_at(runs, side, place, LOOK_RUNS)) < LOOK_RUNS // 4:
            return ""
        numbers = _numbers_at(runs, side, place, RUNS)
        if len(set(numbers)) != 1:
            return ""
        constants.append(numbers[0])
        counts.append(len(numbers))
    if not differ(*constants):
        return ""
    here, there = map(format_leaf, constants)
    return (
        f"has no noise when it is a number: it is {here} on D (in {counts[0]} of {RUNS} runs), "
        f"and {there} on D' (in {counts[1]} of {RUNS})"
    )


def _numbers_at(runs: PairRuns, side: int, place: str, count: int) -> list[float]:
    return [value for value in runs.values(side, place, count) if isinstance(value, float)]


def _find_assigning_line(runs: PairRuns, place: str) -> Site | None:
    """Run with traces; return the last line that gives the output its value at a place on D and D'.

    If no line does so on both, return the line on D. With noise on one input only, return the line
    that adds none. None if no line ran, or a debugger traces.
    """
    lines = []
    for side in (0, 1):
        values = runs.values(side, place, LOOK_RUNS)
        noise = next((n for n, value in enumerate(values) if isinstance(value, float)), 0)
        lines.append(find_lines_with(runs, side, values[noise], noise))
    if not all(lines):
        return None
    bare, other = lines
    noisy = _noisy_sides(runs, place)
    if len(noisy) == 1:
        run = runs.cached_run(1 - noisy[0], 0)
        drawing = [line for line in runs.lines_on(noisy[0], place) if run.draws_at(line)]
        if drawing:  # also without a number, as of no records
            return drawing[0]
        bare, other = lines[1 - noisy[0]], lines[noisy[0]]
        if bare[-1] not in other:
            return bare[-1]
        without = [line for line in other if line not in bare]
        if without:
            return without[-1]
    common = [line for line in bare if line in other]
    return common[-1] if common else bare[-1]


def find_shared_noise(runs: PairRuns) -> Iterator[Finding]:
    """Run the mechanism; yield at most one finding, on numbers of the output that share noise.

    A relation among these numbers, such as a difference, has no noise, and separates D from D'.
    """
    places = [
        place
        for place, value in runs.cached_run(0, 0).leaves.items()
        if isinstance(value, float) and runs.lines_of(place)
    ][:MAX_COMPARED]
    if len(places) < 2:
        return
    sides = [
        np.array([[_number_or_nan(run.leaves.get(place)) for place in places] for run in on_side])
        for on_side in ([runs.cached_run(side, n) for n in range(2 * LOOK_RUNS)] for side in (0, 1))
    ]
    shared = find_noiseless_relation(places, *sides)
    if shared is None:
        return
    lines = frozenset.intersection(*map(runs.lines_of, shared.relation.places))
    line = next((line for line in runs.lines if line in lines), None)
    if line is None:
        return
    draw = format_draw(runs.draw_at(line).request)
    here, there = format_number(shared.on_d), format_number(shared.on_d2)
    text = f"{shared}, such as {draw}; it is {here} on D and {there} on D'"
    yield Finding("shared noise", line, text, certain=True)


def _number_or_nan(value: object) -> float:
    return value if isinstance(value, float) else np.nan


def find_lines_with(runs: PairRuns, side: int, value: Leaf | None, noise: int = 0) -> list[Site]:
    """Run the mechanism once on an input, and return the lines that give a variable the value.

    Lines are in the order of the run; the last line that ran if none does. For the output's length,
    lengths of containers are compared. Empty while a debugger traces.
    """
    settings: list[tuple[Site, str]] = []
    before: dict[tuple[str, str], bool] = {}

    def compare(line: Site, variables: Mapping[str, Any]) -> None:
        for name, variable in variables.items():
            key = line.function, name
            now = _holds_value(variable, value)
            if now and not before.get(key):
                settings.append((line, name))
            before[key] = now

    with traced_lines(compare) as lines:
        runs.run(side, noise)
    found = [line for line, name in settings if name != _RETURNED or len(settings) == 1]
    return found or lines[-1:]


def _holds_value(variable: Any, value: Leaf | None) -> bool:
    """Return whether a variable has a value, contains it, or has its length or order of keys."""
    kind, expected = value if isinstance(value, tuple) and len(value) == 2 else ("", None)
    if kind == "length":
        sized = isinstance(variable, list | tuple | dict | set | np.ndarray)
        return sized and getattr(variable, "ndim", 1) > 0 and len(variable) == expected
    if kind == "order":
        return isinstance(variable, dict) and ", ".join(map(repr, variable)) == expected
    if isinstance(variable, np.ndarray):
        variable = (
            variable.reshape(-1)[:MAX_MEMBERS].tolist() if variable.dtype.kind in "iuf" else ()
        )
    members = variable.values() if isinstance(variable, dict) else variable
    if isinstance(variable, dict | list | tuple):
        return any(_equals_leaf(member, value) for member in islice(members, MAX_MEMBERS))
    return _equals_leaf(variable, value)


def _equals_leaf(variable: Any, value: Leaf | None) -> bool:
    """Return whether a variable is a number or a category that equals a leaf."""
    if is_number(type(variable)):
        return isinstance(value, float) and math.isclose(as_float(variable), value)
    if not isinstance(variable, str | bool | type(None) | bytes):
        return False
    table = tabulate([variable])
    is_category = len(table.codes) == 1 and table.codes[0] != NUMBER
    return is_category and tuple(next(iter(table.levels))) == value


@contextmanager
def traced_lines(
    observer: Callable[[Site, Mapping[str, Any]], None] = lambda *_: None,
) -> Iterator[list[Site]]:
    """Trace the block, and yield a list that gets the project's lines as they run.

    `observer` is called after each line, with the line and the variables. The list stays empty
    while a debugger traces.
    """
    lines: list[Site] = []
    if sys.gettrace() is not None:
        yield lines
        return
    before: dict[types.FrameType, Site] = {}

    def enter(frame: types.FrameType, event: str, argument: Any) -> Any:  # noqa: ARG001
        code = frame.f_code
        ours = is_project_file(code.co_filename) and code.co_filename != "<string>"
        return step if ours else None

    def step(frame: types.FrameType, event: str, argument: Any) -> Any:
        if len(lines) > MAX_LINES:
            return step
        if frame in before and event != "exception":
            variables = frame.f_locals
            if event == "return":
                variables = {**variables, _RETURNED: argument}
            observer(before[frame], variables)
        if event == "line":
            code = frame.f_code
            before[frame] = Site(code.co_filename, frame.f_lineno, code.co_name)
            lines.append(before[frame])
        elif event == "return":
            before.pop(frame, None)
        return step

    sys.settrace(enter)
    try:
        yield lines
    finally:
        sys.settrace(None)
