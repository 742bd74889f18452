"""Information flow: parts of the output that differ between D and D', and the draws in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from pytest_dp.blame.runs import (
    ABSENT,
    Element,
    Leaf,
    Run,
    Runs,
    by_key,
    differ,
    place_of,
    redrawn,
)
from pytest_dp.limits import LOOK_RUNS
from pytest_dp.randomness.requests import Site
from pytest_dp.randomness.tape import Draw, Replaced, Replacement

UNIFORM = {"random", "random_sample", "rand", "ranf", "sample"}
"""Methods that draw uniformly from [0, 1)."""


@dataclass(frozen=True)
class Flow:
    """How draws and inputs show in the outputs on a pair of inputs."""

    runs: Runs
    _lines: dict[tuple[int, str], frozenset[Site]] = field(default_factory=dict)

    def both(self, noise: int) -> tuple[Run, Run]:
        """The runs on D and D' with the same noise."""
        return self.runs.usual(0, noise), self.runs.usual(1, noise)

    @cached_property
    def repeats(self) -> bool:
        """Whether runs on the same noise give the same output: else not all noise is captured."""
        for side in (0, 1):
            for noise in (0, 1):
                again = self.runs.run(side, noise)
                if changed(self.runs.usual(side, noise), again):
                    return False
        return True

    @cached_property
    def differing(self) -> tuple[str, ...]:
        """Places of leaves that differ between D and D' on the same noise."""
        places: dict[str, None] = {}  # in order
        for noise in range(LOOK_RUNS):
            here, there = (run.leaves for run in self.both(noise))
            places |= dict.fromkeys(
                place
                for place in (*here, *(there.keys() - here.keys()))
                if differ(here.get(place), there.get(place))
            )
        return tuple(places)

    @cached_property
    def lines(self) -> tuple[Site, ...]:
        """The lines that draw."""
        lines = dict.fromkeys(place_of(draw.stack) for run in self.all_runs() for draw in run.draws)
        return tuple(lines)[: LOOK_RUNS // 2]

    def all_runs(self) -> Iterator[Run]:
        """Runs on D and on D', in turn."""
        return chain.from_iterable(map(self.both, range(LOOK_RUNS)))

    def draw_at(self, line: Site) -> Draw:
        return next(draw for run in self.all_runs() for draw in run.draws_at(line))

    @cached_property
    def lines_of_differing(self) -> frozenset[Site]:
        """The lines of which draws reach a leaf that differs."""
        return frozenset().union(*map(self.lines_of, self.differing))

    def lines_of(self, place: str) -> frozenset[Site]:
        """The lines of which draws reach the leaf at a place, on either input."""
        return self.lines_on(0, place) | self.lines_on(1, place)

    def lines_on(self, side: int, place: str) -> frozenset[Site]:
        """The same on one input."""
        if not self._lines:
            for input_side in (0, 1):
                for line in self.lines:
                    for reached in self._reached(input_side, line):
                        key = input_side, reached
                        self._lines[key] = self._lines.get(key, frozenset()) | {line}
        return self._lines.get((side, place), frozenset())

    def _reached(self, side: int, line: Site) -> set[str]:
        """Places of leaves that change with the draws of a line."""
        reached: set[str] = set()
        for noise in range(LOOK_RUNS // 2):
            reached |= self._changed(side, noise, line, redrawn)
        for noise in range(2):
            for sign in (-1, 1):
                reached |= self._changed(side, noise, line, extreme(sign))
        return reached

    def _changed(self, side: int, noise: int, line: Site, replacement: Replacement) -> set[str]:
        run = self.runs.run(side, noise, first_at_line(line, replacement))
        return changed(self.runs.usual(side, noise), run)

    def values(self, side: int, place: str, noises: Iterable[int]) -> list[Leaf]:
        return [self.runs.usual(side, noise).leaves.get(place, ABSENT) for noise in noises]


def first_at_line(line: Site, replacement: Replacement) -> Replaced:
    """Replaces the first MAX_REPLACED draws of a line; good for one run."""
    left = LOOK_RUNS

    def replaced(draw: Draw) -> Replacement | None:
        nonlocal left
        if place_of(draw.stack) != line or not left:
            return None
        left -= 1
        return replacement

    return replaced


def at_line(line: Site, replacement: Replacement) -> Replaced:
    """Replaces all draws of a line."""
    return lambda draw: replacement if place_of(draw.stack) == line else None


def extreme(sign: int) -> Replacement:
    """A replacement: a value far out, or another draw where values have no such end."""

    def far(draw: Draw, other: Any) -> Any:
        value = draw.value
        if draw.request.method in UNIFORM:
            edge = 0.0 if sign < 0 else 1 - 2.0**-53
            return np.full_like(value, edge) if isinstance(value, np.ndarray) else edge
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            return value + sign * 1e6 * (1 + np.abs(value))
        if isinstance(value, float):
            return type(value)(value + sign * 1e6 * (1 + abs(value)))
        return redrawn(draw, other)

    return far


def changed(one: Run, other: Run) -> set[str]:
    """Places of leaves that are not exactly the same."""
    places = one.leaves.keys() | other.leaves.keys()
    return {place for place in places if _unlike(one.leaves.get(place), other.leaves.get(place))}


def _unlike(one: Leaf | None, other: Leaf | None) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one != other and not (np.isnan(one) and np.isnan(other))
    return one != other


def with_element(element: Element, value_of: Callable[[Any], Any]) -> Replaced:
    """Replaces one random number by a function of its value; good for one run."""
    wanted, index = element

    def replacement(draw: Draw, _: Any) -> Any:
        if index is None:
            return value_of(draw.value)
        array = draw.value.copy()
        array.flat[index] = value_of(array.flat[index])
        return array

    return by_key(lambda key, _: replacement if key == wanted else None)


def halved(
    low: float, high: float, is_low: Callable[[float], bool], halvings: int
) -> tuple[float, float]:
    """The interval around a value up to which `is_low` holds, after so many halvings."""
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (middle, high) if is_low(middle) else (low, middle)
    return low, high
