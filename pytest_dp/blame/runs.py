"""Runs of one mechanism on both inputs of a pair, on random numbers that are known and changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pytest_dp.outputs.columns import NUMBER
from pytest_dp.outputs.table import tabulate
from pytest_dp.randomness.requests import Site
from pytest_dp.randomness.tape import Draw, Replaced, Replacement, Seeded, Tape
from pytest_dp.sampling.calling import Call
from pytest_dp.sampling.deadline import Deadline, OutOfTime
from pytest_dp.sampling.instrumented import run_instrumented
from pytest_dp.search.reaching import is_project_file

Leaf = float | tuple[Any, ...]
"""A number, or what tells a category from others."""
Key = tuple[tuple[Site, ...], int]
"""A draw of any run: where, and which of those there."""
SIDES = ("D", "D'")
MAX_LEAVES = 2_000
"""In one output; of longer ones nothing is said."""
ABSENT: Leaf = ("absent",)
LENGTH = "len(output)"


class TooLong(Exception):  # noqa: N818  a way out, not an error
    """An output has too many leaves to look at them one by one."""


@dataclass(frozen=True)
class Run:
    """One run on one input.

    Attributes
    ----------
    output : object
    draws : list of Draw
    seeded : list of Seeded
    """

    output: Any
    draws: list[Draw]
    seeded: list[Seeded]

    @cached_property
    def leaves(self) -> dict[str, Leaf]:
        """The parts of the output by their places, and its length."""
        table = tabulate([self.output])
        if len(table.codes) > MAX_LEAVES:
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
        counted: Counter[Hashable] = Counter()
        keyed = {}
        for draw in self.draws:
            keyed[draw.stack, counted[draw.stack]] = draw
            counted[draw.stack] += 1
        return keyed


class Runs:
    """Runs on both inputs of a pair, each known again by its side and its noise.

    Parameters
    ----------
    call : Call
    pair : tuple of two objects
        D and D'.
    deadline : Deadline
    """

    def __init__(self, call: Call, pair: tuple[Any, Any], deadline: Deadline) -> None:
        self._call, self.pair, self._deadline = call, pair, deadline
        self._known: dict[tuple[int, int], Run] = {}

    def usual(self, side: int, noise: int) -> Run:
        """The run on an input (0 or 1) with the noise of this number."""
        key = side, noise
        if key not in self._known:
            self._known[key] = self.run(side, noise)
        return self._known[key]

    def run(self, side: int, noise: int, replaced: Replaced | None = None) -> Run:
        """The same with some draws replaced.

        Raises
        ------
        OutOfTime
        """
        if self._deadline.remaining() < 0:
            raise OutOfTime
        tape = Tape(noise, replaced)
        output = run_instrumented(self._call, self.pair[side], tape, self._deadline)
        return Run(output, tape.draws, tape.seeded)


def place_of(stack: tuple[Site, ...]) -> Site:
    """The innermost line of the project on the way to a draw; else the line that draws."""
    return next((site for site in stack if is_project_file(site.file)), stack[0])


def keyed(change: Callable[[Key, Draw], Replacement | None]) -> Replaced:
    """What tells replacements by the keys of draws; good for one run."""
    counted: Counter[Hashable] = Counter()

    def replaced(draw: Draw) -> Replacement | None:
        key = draw.stack, counted[draw.stack]
        counted[draw.stack] += 1
        return change(key, draw)

    return replaced


def anew(draw: Draw, other: Any) -> Any:
    """Another value, drawn in the same way."""
    return other.of(draw.request, draw.stack)


def differ(one: Leaf | None, other: Leaf | None) -> bool:
    """Whether leaves are more apart than by rounding."""
    if isinstance(one, float) and isinstance(other, float):
        if one == other or (np.isnan(one) and np.isnan(other)):
            return False
        return not abs(one - other) <= 1e-9 * max(abs(one), abs(other))
    return one != other
