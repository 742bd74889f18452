"""Outputs without noise, or with noise in coarse steps only, or from a generator with a seed."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pytest_dp.blame.findings import Finding
from pytest_dp.blame.flow import Flow
from pytest_dp.blame.runs import LENGTH, SIDES, Leaf, differ, place_of
from pytest_dp.blame.texts import format_draw, format_leaf, format_number, format_places
from pytest_dp.blame.variables import lines_with
from pytest_dp.limits import LOOK_RUNS, RUNS
from pytest_dp.randomness.requests import Site
from pytest_dp.randomness.tape import Seeded


def no_noise(flow: Flow) -> Iterator[Finding]:
    """Leaves that depend on no draw: on D and on D', or on one of them."""
    texts = {place: text for place in flow.differing if (text := _without_noise(flow, place))}
    if LENGTH in texts:
        texts = {LENGTH: texts[LENGTH]}  # which leaves there are follows
    by_line: dict[Site, list[str]] = {}
    for place in texts:
        line = _assigning_line(flow, place)
        if line is not None:
            by_line.setdefault(line, []).append(place)
    for line, places in by_line.items():
        others = f" (and so {format_places(places[1:])})" if len(places) > 1 else ""
        yield Finding("no noise", line, f"{places[0]} {texts[places[0]]}{others}", certain=True)


def _noisy_sides(flow: Flow, place: str) -> list[int]:
    return [side for side in (0, 1) if flow.lines_on(side, place)]


def _without_noise(flow: Flow, place: str) -> str:
    """Text: what a leaf always is on one input or both; empty if it depends on draws."""
    noisy = _noisy_sides(flow, place)
    if len(noisy) == 2:
        return _without_noise_when_present(flow, place)
    values = [flow.values(side, place, range(RUNS)) for side in (0, 1)]
    constants = [on_side[0] for on_side in values]
    if any(set(values[side]) != {constants[side]} for side in (0, 1) if side not in noisy):
        return ""
    here, there = map(format_leaf, constants)
    if not noisy:
        if not differ(*constants):
            return ""
        first, second = _verb(here), _verb(there)
        if first.startswith("is "):
            second = second.removeprefix("is ")
        both = f"it {first} on D and {second} on D', in all of {RUNS} runs each"
        return f"depends on no random draw: {both}"
    (side,) = noisy
    count = values[side].count(constants[1 - side])
    if len(set(values[side])) < RUNS // 4 or count > RUNS // 50:
        return ""
    said = _verb((here, there)[1 - side])
    again = "does" if said.startswith("raises ") else "is"
    return (
        f"depends on no random draw on {SIDES[1 - side]}, where it {said} in "
        f"all of {RUNS} runs; on {SIDES[side]} it has noise, and {again} that in {count} of {RUNS}"
    )


def _verb(leaf: str) -> str:
    """``is 4.0``, ``raises KeyError: 'age'``."""
    return leaf if leaf.startswith("raises ") else f"is {leaf}"


def _without_noise_when_present(flow: Flow, place: str) -> str:
    """The same for a leaf that is not always a number, and always one number if it is."""
    constants, counts = [], []
    for side in (0, 1):
        if len(_numbers(flow, side, place, LOOK_RUNS)) < LOOK_RUNS // 4:
            return ""
        numbers = _numbers(flow, side, place, RUNS)
        if len(set(numbers)) != 1:
            return ""
        constants.append(numbers[0])
        counts.append(len(numbers))
    if not differ(*constants):
        return ""
    here, there = map(format_leaf, constants)
    return (
        f"has no noise where it is a number: it is {here} then on D ({counts[0]} of {RUNS} runs), "
        f"and {there} on D' ({counts[1]} of {RUNS})"
    )


def _numbers(flow: Flow, side: int, place: str, runs: int) -> list[float]:
    return [value for value in flow.values(side, place, range(runs)) if isinstance(value, float)]


def _assigning_line(flow: Flow, place: str) -> Site | None:
    """The last line that gives the leaf its value on D and D', or else on D.

    Of a leaf that has noise on one of them only, it is on the path that adds none.
    """
    lines = []
    for side in (0, 1):
        values = flow.values(side, place, range(LOOK_RUNS))
        noise = next((n for n, value in enumerate(values) if isinstance(value, float)), 0)
        lines.append(lines_with(flow, side, place, values[noise], noise))
    if not all(lines):
        return None
    bare, other = lines
    noisy = _noisy_sides(flow, place)
    if len(noisy) == 1:
        run = flow.runs.usual(1 - noisy[0], 0)
        drawing = [line for line in flow.lines_on(noisy[0], place) if run.draws_at(line)]
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


def coarse(flow: Flow) -> Iterator[Finding]:
    """Numbers whose noise is rounded, and whose answer is not."""
    for place in flow.differing:
        lines = flow.lines_of(place)
        if len(lines) != 1:
            continue
        (line,) = lines
        for step in (1.0, 0.5, 0.1, 0.01, 0.001):
            rests = _remainders(flow, place, step, LOOK_RUNS)
            rests = rests and _remainders(flow, place, step, RUNS)
            if rests is None:
                continue
            steps = "whole numbers" if step == 1 else f"multiples of {step:g}"
            text = (
                f"the noise drawn here moves {place} by {steps} only: it is always one of these "
                f"plus {format_number(rests[0])} on D, and plus {format_number(rests[1])} on D'"
            )
            yield Finding("coarse noise", line, text, certain=True)
            return


def _remainders(flow: Flow, place: str, step: float, runs: int) -> tuple[float, float] | None:
    """What a leaf is above multiples of a step on D and on D', if that is not the same."""
    values = [flow.values(side, place, range(runs)) for side in (0, 1)]
    here, there = (_remainder(on_side, step) for on_side in values)
    if here is None or there is None or any(len(set(on_side)) < 3 for on_side in values):
        return None
    apart = abs(here - there) / step
    return None if min(apart, 1 - apart) < 1e-4 else (here, there)


def _remainder(values: list[Leaf], step: float) -> float | None:
    """What all numbers are above multiples of a step; None if that is not one number."""
    remainders = []
    for value in values:
        if not isinstance(value, float) or not math.isfinite(value) or abs(value) > 1e9 * step:
            return None
        remainders.append(value / step % 1)
    differences = [(remainder - remainders[0] + 0.5) % 1 - 0.5 for remainder in remainders]
    return remainders[0] * step if max(map(abs, differences)) < 1e-6 else None


def seeded(flow: Flow) -> Iterator[Finding]:
    """Generators that a mechanism seeds in the same way in each run."""
    here, there = flow.both(0)
    for generator in here.seeded:
        if not generator.seed or not generator.stack or not _always(flow, generator, 0):
            continue
        line, name = place_of(generator.stack), generator.source.name
        twin = next((other for other in there.seeded if other.stack == generator.stack), None)
        if twin is None or not _always(flow, twin, 1):
            continue
        if any(place_of(s.stack) != line for s in here.seeded if s.source.name == name):
            continue  # of several generators with one name, which one draws is not known
        draws = {
            place_of(draw.stack): draw for draw in here.draws if draw.request.source.name == name
        }
        places = [
            place
            for place in flow.differing
            if (lines := flow.lines_of(place)) and lines <= draws.keys()
        ]
        if not places:
            continue
        draw = next(iter(draws.values()))
        with_seed = f"with {_format_seed(generator)}"
        if generator.seed != twin.seed:
            with_seed += f" on D and {_format_seed(twin)} on D'"
        text = (
            f"the generator is seeded {with_seed} here, so all noise of {format_places(places)}, "
            f"such as {format_draw(draw.request)}, is the same in each run"
        )
        yield Finding("seeded", line, text, certain=True)
        return


def _always(flow: Flow, seeded: Seeded, side: int) -> bool:
    """Whether a generator gets the same seed in all runs."""
    for noise in range(RUNS):
        run = flow.runs.usual(side, noise)
        seeds = [other.seed for other in run.seeded if other.stack == seeded.stack]
        if not seeds or any(repr(seed) != repr(seeded.seed) for seed in seeds):
            return False
    return True


def _format_seed(seeded: Seeded) -> str:
    text = ", ".join(repr(value) for value in seeded.seed)
    return text if len(text) <= 20 else "the same numbers"
