"""Which parts of the output differ between D and D', and which lines draw what they depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pytest_dp.blame.runs import ABSENT, Key, Leaf, Run, Runs, anew, differ, keyed, place_of
from pytest_dp.randomness.requests import Site
from pytest_dp.randomness.tape import Draw, Replaced, Replacement

NOISES = 24
"""Runs on either input, on the same noise, that tell which leaves differ."""
FURTHER = 12
"""Of these, runs in which the draws of a line are made anew."""
EXTREMES = 2
"""And runs in which they are as far out as they can be, in each direction."""
MOST_EXTREME = 32
"""Draws in a run that are so."""
MAX_LINES = 12


@dataclass(frozen=True)
class Reach:
    """What is known of the outputs on a pair of inputs.

    Attributes
    ----------
    runs : Runs
    """

    runs: Runs
    _lines: dict[tuple[int, str], frozenset[Site]] = field(default_factory=dict)

    def both(self, noise: int) -> tuple[Run, Run]:
        """The runs on D and D' with the same noise."""
        return self.runs.usual(0, noise), self.runs.usual(1, noise)

    @cached_property
    def repeats(self) -> bool:
        """Whether a run repeats on the same noise: else some of its noise is not seen."""
        for side in (0, 1):
            for noise in (0, 1):
                again = self.runs.run(side, noise)
                if changed(self.runs.usual(side, noise), again):
                    return False
        return True

    @cached_property
    def differing(self) -> tuple[str, ...]:
        """Places of leaves that differ between D and D' on the same noise."""
        found: dict[str, None] = {}
        for noise in range(NOISES):
            one, other = (run.leaves for run in self.both(noise))
            found |= dict.fromkeys(
                place
                for place in (*one, *(other.keys() - one.keys()))
                if differ(one.get(place), other.get(place))
            )
        return tuple(found)

    @cached_property
    def lines(self) -> tuple[Site, ...]:
        """The lines that draw."""
        found = {
            place_of(draw.stack): None
            for noise in range(NOISES)
            for run in self.both(noise)
            for draw in run.draws
        }
        return tuple(found)[:MAX_LINES]

    def draw_at(self, line: Site) -> Draw:
        """A draw of one of the lines."""
        return next(
            draw
            for noise in range(NOISES)
            for run in self.both(noise)
            for draw in run.draws
            if place_of(draw.stack) == line
        )

    def lines_of(self, place: str) -> frozenset[Site]:
        """The lines of which draws reach the leaf at a place, on either input."""
        return self.lines_on(0, place) | self.lines_on(1, place)

    def lines_on(self, side: int, place: str) -> frozenset[Site]:
        """The same on one input."""
        if not self._lines:
            for each in (0, 1):
                for line in self.lines:
                    for reached in self._reached(each, line):
                        known = self._lines.get((each, reached), frozenset())
                        self._lines[each, reached] = known | {line}
        return self._lines.get((side, place), frozenset())

    def _reached(self, side: int, line: Site) -> set[str]:
        """Places of leaves that change with the draws of a line."""
        reached: set[str] = set()
        for noise in range(FURTHER):
            reached |= self._changed(side, noise, line, anew)
        for noise in range(EXTREMES):
            for sign in (-1, 1):
                reached |= self._changed(side, noise, line, extreme(sign))
        return reached

    def _changed(self, side: int, noise: int, line: Site, how: Replacement) -> set[str]:
        other = self.runs.run(side, noise, first_at_line(line, how))
        return changed(self.runs.usual(side, noise), other)

    def values(self, side: int, place: str, noises: Iterable[int]) -> list[Leaf]:
        """What a leaf is in several runs."""
        return [self.runs.usual(side, noise).leaves.get(place, ABSENT) for noise in noises]

    def constant(self, side: int, place: str, noises: int) -> Leaf | None:
        """What a leaf is in all of so many runs, if it is always the same."""
        values = self.values(side, place, range(noises))
        return values[0] if all(value == values[0] for value in values) else None


def first_at_line(line: Site, how: Replacement) -> Replaced:
    """What replaces the first draws of a line, so that loops that wait for one end; for one run."""
    made = iter(range(MOST_EXTREME))

    def replaced(draw: Draw) -> Replacement | None:
        return how if place_of(draw.stack) == line and next(made, None) is not None else None

    return replaced


def at_line(line: Site, how: Replacement) -> Callable[[Draw], Replacement | None]:
    """What replaces all draws of a line."""
    return lambda draw: how if place_of(draw.stack) == line else None


def extreme(sign: int) -> Replacement:
    """A value far out; another one where there is nothing of the kind."""

    def far(draw: Draw, other: Any) -> Any:
        value = draw.value
        if draw.request.method in ("random", "random_sample", "rand", "sample", "ranf"):
            edge = 0.0 if sign < 0 else 1 - 2.0**-53
            return np.full_like(value, edge) if isinstance(value, np.ndarray) else edge
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            return value + sign * 1e6 * (1 + np.abs(value))
        if isinstance(value, float):
            return type(value)(value + sign * 1e6 * (1 + abs(value)))
        return anew(draw, other)

    return far


def changed(one: Run, other: Run) -> set[str]:
    """Places of leaves that are not exactly the same."""
    places = one.leaves.keys() | other.leaves.keys()
    return {place for place in places if _unlike(one.leaves.get(place), other.leaves.get(place))}


def _unlike(one: Leaf | None, other: Leaf | None) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one != other and not (np.isnan(one) and np.isnan(other))
    return one != other


def shifted(amounts: dict[tuple[Key, int | None], float]) -> Callable[[Draw], Replacement | None]:
    """What adds amounts to draws, or to elements of arrays that were drawn; good for one run."""
    by_key: dict[Key, dict[int | None, float]] = {}
    for (key, index), amount in amounts.items():
        by_key.setdefault(key, {})[index] = amount

    def change(key: Key, draw: Draw) -> Replacement | None:  # noqa: ARG001
        own = by_key.get(key)
        return None if own is None else lambda draw, _: _moved(draw.value, own)

    return keyed(change)


def _moved(value: Any, amounts: dict[int | None, float]) -> Any:
    if not isinstance(value, np.ndarray):
        return type(value)(value + amounts[None])
    moved = value.copy()
    for index, amount in amounts.items():
        if index is not None:
            moved.flat[index] += moved.dtype.type(amount)
    return moved
