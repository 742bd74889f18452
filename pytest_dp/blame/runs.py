"""Runs of a mechanism on both inputs of a pair, with random numbers that are known or replaced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pytest_dp.limits import THOUSAND
from pytest_dp.outputs.columns import NUMBER
from pytest_dp.outputs.table import tabulate
from pytest_dp.randomness.requests import Site
from pytest_dp.randomness.tape import Draw, Replaced, Replacement, Seeded, Tape
from pytest_dp.sampling.calling import Call
from pytest_dp.sampling.deadline import Deadline, OutOfTime
from pytest_dp.sampling.instrumented import run_instrumented
from pytest_dp.whose_code import is_project_file

Leaf = float | tuple[Any, ...]
"""Part of an output: a number, or what tells a category from others."""
Key = tuple[tuple[Site, ...], int]
"""Identifies a draw across runs: the lines that lead to it, and its number among those there."""
Element = tuple[Key, int | None]
"""One random number: a draw, and the index in it if it is an array."""
SIDES = ("D", "D'")
ABSENT: Leaf = ("absent",)
"""The value of a leaf in a run whose output does not have it."""
LENGTH = "len(output)"
"""The place of the leaf that holds an output's length."""


class TooLong(Exception):  # noqa: N818  a way out, not an error
    """An output has too many leaves to look at them one by one."""


@dataclass(frozen=True)
class Run:
    """One run on one input."""

    output: Any
    draws: list[Draw]
    seeded: list[Seeded]

    @cached_property
    def leaves(self) -> dict[str, Leaf]:
        """The parts of the output by their places, and its length."""
        table = tabulate([self.output])
        if len(table.codes) > 2 * THOUSAND:
            raise TooLong
        names: dict[int, Any] = {code: level for level, code in table.levels.items()}
        structure = table.structures[0]
        leaves: dict[str, Leaf] = {
            place: float(number) if code == NUMBER else tuple(names[int(code)])
            for place, number, code in zip(
                structure.places, table.numbers, table.codes, strict=True
            )
        }
        if structure.length is not None:
            leaves[LENGTH] = ("length", structure.length)
        return leaves

    @cached_property
    def keyed(self) -> dict[Key, Draw]:
        """Its draws by where they were made."""
        counts: Counter[Hashable] = Counter()
        keyed = {}
        for draw in self.draws:
            keyed[draw.stack, counts[draw.stack]] = draw
            counts[draw.stack] += 1
        return keyed

    def draws_at(self, line: Site) -> list[Draw]:
        return [draw for draw in self.draws if place_of(draw.stack) == line]

    def value_of(self, element: Element) -> Any:
        """The value of a random number; None if it was not drawn."""
        key, index = element
        draw = self.keyed.get(key)
        if draw is None or index is None:
            return None if draw is None else draw.value
        return draw.value.flat[index] if index < np.size(draw.value) else None


class Runs:
    """Runs on both inputs of a pair, told by the side (0 for D) and the number of the noise."""

    def __init__(self, call: Call, pair: tuple[Any, Any], deadline: Deadline) -> None:
        self._call, self.pair, self._deadline = call, pair, deadline
        self._usual: dict[tuple[int, int], Run] = {}

    def usual(self, side: int, noise: int) -> Run:
        """The run on an input (0 or 1) with the noise of this number."""
        key = side, noise
        if key not in self._usual:
            self._usual[key] = self.run(side, noise)
        return self._usual[key]

    def run(self, side: int, noise: int, replaced: Replaced | None = None) -> Run:
        """A run that is not cached, with some draws replaced.

        Raises OutOfTime if no time is left.
        """
        if self._deadline.remaining() < 0:
            raise OutOfTime
        tape = Tape(noise, replaced)
        output = run_instrumented(self._call, self.pair[side], tape, self._deadline)
        return Run(output, tape.draws, tape.seeded)


def place_of(stack: tuple[Site, ...]) -> Site:
    """The innermost line of the project on the way to a draw; else the line that draws."""
    return next((site for site in stack if is_project_file(site.file)), stack[0])


def indices(draw: Draw) -> Iterable[int | None]:
    """The index of each number of a draw; None for a draw that is one number."""
    return range(np.size(draw.value)) if np.ndim(draw.value) else (None,)


def by_key(replacement_of: Callable[[Key, Draw], Replacement | None]) -> Replaced:
    """Replacements that are chosen by the keys of draws; good for one run."""
    counts: Counter[Hashable] = Counter()

    def replaced(draw: Draw) -> Replacement | None:
        key = draw.stack, counts[draw.stack]
        counts[draw.stack] += 1
        return replacement_of(key, draw)

    return replaced


def redrawn(draw: Draw, other: Any) -> Any:
    """A replacement: another value, drawn in the same way from the streams `other`."""
    return other.of(draw.request, draw.stack)


def differ(one: Leaf | None, other: Leaf | None) -> bool:
    """Whether leaves are further apart than rounding can make them."""
    if isinstance(one, float) and isinstance(other, float):
        if one == other or (np.isnan(one) and np.isnan(other)):
            return False
        return not abs(one - other) <= 1e-9 * max(abs(one), abs(other))
    return one != other
