"""The pairs that a search compares, and the samples it has drawn of their inputs.

Pairs that share an input share its samples, and so do both directions of a pair. Nothing that was
drawn here may be used in a test.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from pytest_dp.arrays import Bools, Ints, Outputs
from pytest_dp.auditors.context import Context
from pytest_dp.counterexample import is_constant
from pytest_dp.errors import MechanismError
from pytest_dp.inputs import Pair
from pytest_dp.outputs.contents import MAX_READ, was_cut
from pytest_dp.outputs.hashing import hashes
from pytest_dp.outputs.leaves import unread
from pytest_dp.outputs.outcome import Raised
from pytest_dp.outputs.table import Table, tabulate
from pytest_dp.sampling.chunks import Input, joined
from pytest_dp.sampling.deadline import Deadline
from pytest_dp.sampling.sampler import Draw

SEARCH_KEY = 1
"""First part of the keys of all samples of a pool."""
TEST_KEY = 2
"""The same, of samples that are tested: none of them was ever searched."""
PAIRED_TEST_KEY = 7
"""The same, of those that are tested in pairs, with the same random numbers on both inputs."""
DIVERGENCE_KEY = 8
"""The same, of those by which divergences are bounded."""
TOTAL_ROOM, MIN_ROOM = 2_000_000, 50_000
"""Numbers that are kept on either input: of all pairs of inputs together, and of each at least."""
LONG_OUTPUT, ROOM_OF_AN_OBJECT = 1_000, 4
"""Leaves from which outputs are long, and what a number takes there that is a Python object."""
MIN_FIRST_LOOK = 20
"""Samples of each input below which a first look tells nothing."""


@dataclass(slots=True)
class Contender:
    """A pair in a search, by the positions of its inputs in the pool."""

    number: int
    pair: Pair
    input1: int
    input2: int
    references: list[Any]


C = TypeVar("C", bound=Contender)


def leaves_of(outputs: Outputs) -> float:
    """How many leaves an output has, by the first few."""
    return max(1.0, float(np.mean(tabulate(outputs[:8]).sizes)))


def room_of(outputs: Outputs) -> float:
    """What an output takes of the room, in numbers of an array, by the first few.

    In a long list or the like each number is an object, which takes four times as much.
    """
    leaves = leaves_of(outputs)
    in_arrays = isinstance(outputs[0], np.ndarray | np.generic)
    return leaves if in_arrays or leaves < LONG_OUTPUT else ROOM_OF_AN_OBJECT * leaves


def part_of(outputs: Outputs, most: int) -> Outputs:
    """The first outputs, without the memory of the others."""
    if len(outputs) <= most:
        return outputs
    some = outputs[:most]
    return some.copy() if isinstance(some, np.ndarray) else some


@dataclass(slots=True)
class Pool:
    """Inputs, and what was drawn on them, draw by draw."""

    inputs: list[Input] = field(default_factory=list)
    drawn: list[list[Outputs]] = field(default_factory=list)
    position: dict[Any, int] = field(default_factory=dict)
    coupled: bool = False
    """Whether all inputs are run with the same random numbers."""
    room: int = TOTAL_ROOM
    """Numbers that `keep` keeps of the outputs on an input."""
    marks: set[int] = field(default_factory=set)
    heeded: int = 0
    """Of outputs that were not kept, a few different hashes, and how many there were."""

    def add(self, data: Any) -> int:
        """The position of an input, which is added if it is new."""
        given = Input(data)
        key = given.frozen if given.frozen is not None else id(data)
        if key not in self.position:
            self.position[key] = len(self.inputs)
            self.inputs.append(given)
            self.drawn.append([])
        return self.position[key]

    def start_again(self) -> None:
        """Forget all samples, and draw without shared random numbers from here on."""
        self.drawn = [[] for _ in self.inputs]
        self.coupled = False

    def keep(self, which: int, outputs: Outputs) -> None:
        """Add outputs on an input, as far as there is room; heed whether others vary."""
        room = int(self.room / room_of(outputs)) - self.count(which)
        part = part_of(outputs, max(room, 0))
        if not self.drawn[which] or len(part):
            self.drawn[which].append(part if len(part) else part_of(outputs, MIN_FIRST_LOOK))
        if len(part) < len(outputs):
            self.heed(hashes(tabulate(outputs[len(part) :])))

    def heed(self, marks: Ints) -> None:
        """Remember of outputs that are not kept whether they vary, by their hashes."""
        self.heeded += len(marks)
        self.marks |= {int(marks.min()), int(marks.max())}

    def count(self, which: int) -> int:
        """How many samples of an input there are."""
        return sum(map(len, self.drawn[which]))

    def table(
        self, contender: Contender, start: int = 0, stop: int | None = None
    ) -> tuple[Table, Bools]:
        """Samples of a pair, as many of either input, and which are of the first.

        `start` and `stop` pick a part of the samples, by their number on each input.
        """
        outputs1, outputs2 = (joined(self.drawn[i]) for i in (contender.input1, contender.input2))
        runs = min(len(outputs1), len(outputs2))
        part = slice(start, runs if stop is None else min(stop, runs))
        runs = part.stop - part.start
        return tabulate(joined([outputs1[part], outputs2[part]])), np.arange(2 * runs) < runs


def line_up(context: Context, pool: Pool, budget: float, kind: type[C]) -> list[C]:
    """The pairs that take part: as many as can be given `MIN_FIRST_LOOK` samples of each input."""
    contenders: list[C] = []
    for number, pair in enumerate(context.pairs):
        if number and (len(pool.inputs) + 1) * MIN_FIRST_LOOK > budget / 2:
            break
        answers = [context.sampler.noiseless(d, context.privacy_param) for d in (pair.d1, pair.d2)]
        references = [answer for answer in answers if answer is not None]
        contenders.append(kind(number, pair, pool.add(pair.d1), pool.add(pair.d2), references))
    if len(contenders) < len(context.pairs):
        context.sampler.note(
            f"tried {len(contenders)} of {len(context.pairs):,} pairs: raise max_samples or "
            "max_seconds, or name the pairs that matter with pairs=",
            hinders=True,
        )
    return contenders


def draw_up_to(
    context: Context, pool: Pool, contenders: list[C], runs: int, deadline: Deadline
) -> None:
    """Draw until every input of these pairs has so many samples; they had as many of each before.

    Raises
    ------
    MechanismError
        If no run of the mechanism has returned so far.
    """
    wanted = sorted({i for c in contenders for i in (c.input1, c.input2)})
    draws, who = [], []
    for i in wanted:
        missing = runs - pool.count(i)
        if missing > 0:
            stream = () if pool.coupled else (i,)
            key = SEARCH_KEY, *stream, len(pool.drawn[i])
            draws.append(Draw(pool.inputs[i], missing, key, pool.coupled))
            who.append(i)
    for i, outputs in zip(who, context.sampler.draw(draws, deadline), strict=True):
        pool.drawn[i].append(outputs)
    always_raises(context, pool)


def always_raises(context: Context, pool: Pool) -> None:
    """Refuse a mechanism of which no run has returned.

    Raises
    ------
    MechanismError
        If that is so.
    """
    returned = any(
        not isinstance(output, Raised)
        for drawn in pool.drawn
        for outputs in drawn
        for output in (outputs if isinstance(outputs, list) else outputs[:1])
    )
    if returned:
        return
    raised = next(outputs for drawn in pool.drawn for outputs in drawn)[0]
    runs = sum(pool.count(i) for i in range(len(pool.inputs)))
    raise MechanismError(
        f"{context.short_name} raised in all {runs:,} runs, so there is nothing to audit. The "
        f"first time, on {context.describe(context.pairs[0].d1)}:\n{raised.trace}"
    )


def never_varies(context: Context, pool: Pool) -> bool:
    """Whether nothing ever varied that can be read. That is said, and so is what cannot be read."""
    unreadable = cannot_be_read(pool)
    if any(map(was_cut, _first_of_each(pool).raw)):
        context.sampler.note(
            f"only the first {MAX_READ:,} elements of an iterator were read, and nothing is known "
            "of the others: return a list, or use features="
        )
    if unreadable:
        if context.settings.features is not None:
            return False
        said = f"{unreadable}: return plain values, or use features="
        context.sampler.note(said, hinders=True)
    if not is_constant(_first_of_each(pool)):
        return False
    everything = joined([part for outputs in pool.drawn for part in outputs])
    table = tabulate(everything)
    if len(everything) < 2 or not is_constant(table):
        return False
    if pool.marks - {int(hashes(table)[0])}:
        return False
    if not unreadable:
        runs = len(everything) + pool.heeded
        hint = (
            "is a return missing?"
            if everything[0] is None
            else "missing noise, a fixed seed or a cache?"
        )
        context.sampler.note(f"returned the same value in all {runs:,} runs: {hint}", hinders=True)
    return True


def cannot_be_read(pool: Pool) -> str:
    """What there is in the outputs that does not show what it holds; empty if all does."""
    some = _first_of_each(pool)
    hidden = unread(some.levels)
    if not hidden:
        return ""
    types = {type(output).__name__ for output in some.raw}
    whole = [kind for kind in hidden if kind in types]
    what = (
        f"outputs of type {' and '.join(whole)}" if whole else f"{' and '.join(hidden)} in outputs"
    )
    return f"{what} cannot be read"


def _first_of_each(pool: Pool) -> Table:
    """The first outputs on each input."""
    return tabulate(joined([outputs[0][:32] for outputs in pool.drawn if outputs]))
