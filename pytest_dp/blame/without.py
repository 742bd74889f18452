"""Parts of the output that no draw decides, or only in coarse steps; and draws that are none."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pytest_dp.blame.families import number, written
from pytest_dp.blame.finding import Finding, listed, told
from pytest_dp.blame.reach import NOISES, Reach
from pytest_dp.blame.runs import LENGTH, SIDES, Leaf, differ, place_of
from pytest_dp.blame.values import lines_with
from pytest_dp.randomness.requests import Site
from pytest_dp.randomness.tape import Seeded

RUNS = 200
"""On either input, in which something was always the same."""
STEPS = (1.0, 0.5, 0.1, 0.01, 0.001)
"""To which noise may be rounded."""


def no_noise(reach: Reach) -> Iterator[Finding]:
    """Leaves that no draw decides: on D and on D', or on one of them."""
    found = {place: said for place in reach.differing if (said := _without(reach, place))}
    if LENGTH in found:
        found = {LENGTH: found[LENGTH]}  # which leaves there are follows
    by_line: dict[Site, list[str]] = {}
    for place in found:
        line = _line(reach, place)
        if line is not None:
            by_line.setdefault(line, []).append(place)
    for line, places in by_line.items():
        others = f" (and so {listed(places[1:])})" if len(places) > 1 else ""
        yield Finding("no noise", line, f"{places[0]} {found[places[0]]}{others}", certain=True)


def _without(reach: Reach, place: str) -> str:
    """What no draw decides of a leaf; empty if draws decide it."""
    noisy = [side for side in (0, 1) if reach.lines_on(side, place)]
    if len(noisy) == 2:
        return _where_there(reach, place)
    values = [reach.values(side, place, range(RUNS)) for side in (0, 1)]
    fixed = [each[0] for each in values]
    if any(set(each) != {each[0]} for side, each in enumerate(values) if side not in noisy):
        return ""
    if not noisy:
        if not differ(*fixed):
            return ""
        both = f"{told(fixed[0])} on D and {told(fixed[1])} on D', in all of {RUNS} runs each"
        return f"depends on no random draw: it is {both}"
    (side,) = noisy
    again = values[side].count(fixed[1 - side])
    if len(set(values[side])) < RUNS // 4 or again > RUNS // 50:
        return ""
    return (
        f"depends on no random draw on {SIDES[1 - side]}, where it is {told(fixed[1 - side])} in "
        f"all of {RUNS} runs; on {SIDES[side]} it has noise, and is that in {again} of {RUNS}"
    )


def _where_there(reach: Reach, place: str) -> str:
    """The same for a number that is not always there, and always one number if it is."""
    found = []
    for side in (0, 1):
        values = reach.values(side, place, range(NOISES))
        numbers = [value for value in values if isinstance(value, float)]
        if len(numbers) < NOISES // 4 or len(set(numbers)) != 1:
            return ""
        values = reach.values(side, place, range(RUNS))
        numbers = [value for value in values if isinstance(value, float)]
        if len(set(numbers)) != 1:
            return ""
        found.append((numbers[0], len(numbers)))
    (one, often), (other, times) = found
    if not differ(one, other):
        return ""
    return (
        f"has no noise where it is a number: it is {told(one)} then on D ({often} of {RUNS} runs), "
        f"and {told(other)} on D' ({times} of {RUNS})"
    )


def _line(reach: Reach, place: str) -> Site | None:
    """The last line that gives the leaf its value, where D and D' go different ways one of these.

    Of a leaf that has noise on one of them only, it is on the way that has none.
    """
    found = []
    for side in (0, 1):
        values = reach.values(side, place, range(NOISES))
        number = next((n for n, value in enumerate(values) if isinstance(value, float)), 0)
        found.append(lines_with(reach, side, place, values[number], number))
    if not all(found):
        return None
    noisy = [side for side in (0, 1) if reach.lines_on(side, place)]
    noisy = noisy if len(noisy) == 1 else []
    bare, other = (found[1 - noisy[0]], found[noisy[0]]) if noisy else found
    if noisy:
        own = bare[-1:] if bare[-1] not in other else [line for line in other if line not in bare]
        if own:
            return own[-1]
    common = [line for line in bare if line in other]
    return common[-1] if common else bare[-1]


def coarse(reach: Reach) -> Iterator[Finding]:
    """Numbers of which the noise is rounded, and what it is added to is not."""
    for place in reach.differing:
        lines = reach.lines_of(place)
        if len(lines) != 1:
            continue
        (line,) = lines
        for step in STEPS:
            rests = _rests(reach, place, step, NOISES)
            rests = rests and _rests(reach, place, step, RUNS)
            if rests is None:
                continue
            steps = "whole numbers" if step == 1 else f"multiples of {step:g}"
            text = (
                f"the noise drawn here moves {place} by {steps} only: it is always one of these "
                f"plus {number(rests[0])} on D, and plus {number(rests[1])} on D'"
            )
            yield Finding("coarse noise", line, text, certain=True)
            return


def _rests(reach: Reach, place: str, step: float, runs: int) -> tuple[float, float] | None:
    """What a leaf is above multiples of a step on D and on D', if that is not the same."""
    values = [reach.values(side, place, range(runs)) for side in (0, 1)]
    one, other = (_rest(each, step) for each in values)
    if one is None or other is None or any(len(set(each)) < 3 for each in values):
        return None
    apart = abs(one - other) / step
    return None if min(apart, 1 - apart) < 1e-4 else (one, other)


def _rest(values: list[Leaf], step: float) -> float | None:
    """What all numbers are above multiples of a step; None if that is not one number."""
    rests = []
    for value in values:
        if not isinstance(value, float) or not math.isfinite(value) or abs(value) > 1e9 * step:
            return None
        rests.append(value / step % 1)
    first = rests[0]
    near = [(rest - first + 0.5) % 1 - 0.5 for rest in rests]
    return first * step if max(map(abs, near)) < 1e-6 else None


def seeded(reach: Reach) -> Iterator[Finding]:
    """Generators that a mechanism seeds in the same way in each run."""
    one, other = reach.both(0)
    for first in one.seeded:
        if not first.seed or not first.stack or not _always(reach, first, 0):
            continue
        line = place_of(first.stack)
        twin = next((s for s in other.seeded if s.stack == first.stack), None)
        if twin is None or not _always(reach, twin, 1):
            continue
        kinds = [s for s in one.seeded if s.source.name == first.source.name]
        if any(place_of(s.stack) != line for s in kinds):
            continue  # which of them a draw is of is not known
        drawn = {
            place_of(draw.stack): draw
            for draw in one.draws
            if draw.request.source.name == first.source.name
        }
        own = [
            place
            for place in reach.differing
            if (lines := reach.lines_of(place)) and lines <= drawn.keys()
        ]
        if not own:
            continue
        draw = next(iter(drawn.values()))
        with_seed = f"with {_seed(first)}"
        if first.seed != twin.seed:
            with_seed += f" on D and {_seed(twin)} on D'"
        text = (
            f"the generator is seeded {with_seed} here, so all noise of {listed(own)}, such as "
            f"{written(draw.request)}, is the same in each run"
        )
        yield Finding("seeded", line, text, certain=True)
        return


def _always(reach: Reach, seeded: Seeded, side: int) -> bool:
    """Whether a generator gets the same seed in all of so many runs that others would show."""
    for noise in range(RUNS):
        run = reach.runs.usual(side, noise)
        seeds = [each.seed for each in run.seeded if each.stack == seeded.stack]
        if not seeds or any(repr(seed) != repr(seeded.seed) for seed in seeds):
            return False
    return True


def _seed(seeded: Seeded) -> str:
    text = ", ".join(repr(value) for value in seeded.seed)
    return text if len(text) <= 20 else "the same numbers"
