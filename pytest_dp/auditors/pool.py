"""The pairs that a search compares, and the samples it has drawn of their inputs.

Pairs that share an input share its samples, and so do both directions of a pair. Nothing that was
drawn here may be used in a test.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from pytest_dp.arrays import Bools, joined
from pytest_dp.auditors.context import Context
from pytest_dp.datasets import describe
from pytest_dp.errors import MechanismError
from pytest_dp.inputs import Pair
from pytest_dp.limits import MIN_COUNTED, THOUSAND
from pytest_dp.outputs.hashing import hashes
from pytest_dp.outputs.iterators import was_cut
from pytest_dp.outputs.leaves import opaque_types
from pytest_dp.outputs.outcome import Raised
from pytest_dp.outputs.table import Table, concatenated, tabulate
from pytest_dp.sampling.chunks import Input
from pytest_dp.sampling.deadline import Deadline
from pytest_dp.sampling.sampler import Draw
from pytest_dp.sampling.streams import Purpose

BLIND = (
    "nothing that was tried tells the two inputs of any pair apart, so a leak may have gone "
    "unseen: say with features= what outputs tell of inputs, name pairs that differ by more, or "
    "raise max_samples"
)


@dataclass(slots=True, eq=False)
class Contender:
    """A pair in a search, by the positions of its inputs in the pool."""

    number: int
    pair: Pair
    input1: int
    input2: int
    references: list[Any]


C = TypeVar("C", bound=Contender)


@dataclass(slots=True)
class Pool:
    """Inputs, and what was drawn on them."""

    inputs: list[Input] = field(default_factory=list)
    drawn: list[list[Table]] = field(default_factory=list)
    """Outputs on each input, batch by batch; of a game, whose arms keep what they draw, the first
    batch and the last."""
    position: dict[Any, int] = field(default_factory=dict)
    """Of each input, by its pickle."""
    coupled: bool = False
    """Whether all inputs are run with the same random numbers."""
    runs: int = 0
    """Outputs that were seen."""
    returned: bool = False
    """Whether any of them was returned, not raised."""
    varies: bool = False
    """Whether any two of them differed."""
    agree: bool = False
    """Whether both inputs of all pairs gave the same outputs, before it was started again."""
    alive: list[Any] = field(default_factory=list)
    """What was added, so that nothing else gets its id."""
    _mark: int | None = None

    def add(self, data: Any) -> int:
        """The position of an input, which is added if it is new."""
        item = Input(data)
        key = item.frozen if item.frozen is not None else id(data)
        if key not in self.position:
            self.position[key] = len(self.inputs)
            self.inputs.append(item)
            self.alive.append(data)
            self.drawn.append([])
        return self.position[key]

    def start_again(self) -> None:
        """Forget all samples, and draw without shared random numbers from here on."""
        self.drawn = [[] for _ in self.inputs]
        self.runs, self.coupled, self.returned, self.varies, self._mark = 0, *3 * (False,), None

    def see(self, which: int, table: Table) -> None:
        """Take note of outputs on an input that are kept elsewhere."""
        self.drawn[which][1:] = [table]
        self._note(table)

    def keep(self, which: int, table: Table) -> None:
        self.drawn[which].append(table)
        self._note(table)

    def _note(self, table: Table) -> None:
        self.runs += len(table)
        self.returned |= any(not isinstance(output, Raised) for output in table.raw)
        if not self.varies and len(table):
            marks = hashes(table)
            self._mark = int(marks[0]) if self._mark is None else self._mark
            self.varies = bool((marks != self._mark).any())

    def count(self, which: int) -> int:
        """How many samples of an input are kept."""
        return sum(map(len, self.drawn[which]))

    def table(
        self, contender: Contender, start: int = 0, stop: int | None = None
    ) -> tuple[Table, Bools]:
        """Samples of a pair, as many of either input, and which are of the first.

        `start` and `stop` pick a part of the samples, by their number on each input.
        """
        drawn = (self.drawn[i] for i in (contender.input1, contender.input2))
        tables = [concatenated(_leading_batches(stop, batches)) for batches in drawn]
        runs = min(map(len, tables))
        stop = runs if stop is None else min(stop, runs)
        parts = [table.between(start, stop) for table in tables]
        return concatenated(parts), np.arange(2 * (stop - start)) < stop - start

    def alike(self, contender: Contender) -> bool:
        """Whether, with the same random numbers, both inputs always gave the same outputs."""
        if not self.coupled or not all(map(self.count, (contender.input1, contender.input2))):
            return False
        table, on_d = self.table(contender)
        marks = hashes(table)
        return np.array_equal(marks[on_d], marks[~on_d])


def _leading_batches(stop: int | None, batches: list[Table]) -> list[Table]:
    """The batches that hold the first `stop` samples."""
    if stop is None:
        return batches
    return batches[: int(np.searchsorted(np.cumsum([*map(len, batches)]), stop)) + 1]


def line_up(context: Context, pool: Pool, budget: float, kind: type[C]) -> list[C]:
    """The pairs that take part: as many as can be given `MIN_COUNTED` samples of each input."""
    contenders: list[C] = []
    for number, pair in enumerate(context.pairs):
        if number and (len(pool.inputs) + 1) * MIN_COUNTED > budget / 2:
            break
        answers = [context.sampler.noiseless(d, context.privacy_param) for d in pair.inputs]
        references = [answer for answer in answers if answer is not None]
        input1, input2 = map(pool.add, pair.inputs)
        contenders.append(kind(number, pair, input1, input2, references))
    if len(contenders) < len(context.pairs):
        note_left_out(context, len(contenders))
    return contenders


def note_left_out(context: Context, tried: int) -> None:
    """Say that only some of the claim's pairs took part."""
    context.sampler.note(
        f"tried {tried} of {len(context.pairs):,} pairs: raise max_samples or max_seconds, or "
        "name the pairs that matter with pairs=",
        hinders=True,
    )


def draw_up_to(
    context: Context, pool: Pool, contenders: list[C], runs: int, deadline: Deadline
) -> None:
    """Draw until every input of these pairs has so many samples; they had as many of each before.

    Raises MechanismError if no run of the mechanism has returned so far.
    """
    wanted = sorted({i for c in contenders for i in (c.input1, c.input2)})
    draws, who = [], []
    for i in wanted:
        missing = runs - pool.count(i)
        if missing > 0:
            stream = () if pool.coupled else (i,)
            key = Purpose.SEARCH, *stream, len(pool.drawn[i])
            draws.append(Draw(pool.inputs[i], missing, key, pool.coupled))
            who.append(i)
    for i, outputs in zip(who, context.sampler.draw(draws, deadline), strict=True):
        pool.keep(i, tabulate(outputs))
    always_raises(context, pool)


def always_raises(context: Context, pool: Pool) -> None:
    """Raise MechanismError if no run of the mechanism has returned."""
    if pool.returned:
        return
    raised, *others = [tables[0].raw[0] for tables in pool.drawn if tables]
    other = next((outcome for outcome in others if outcome.kind != raised.kind), None)
    raise MechanismError(
        f"{context.short_name} raised in all {pool.runs:,} runs, so there is nothing to audit. The "
        f"first time, on {describe(context.pairs[0].d1)}:\n{raised.trace}"
        + (f"\nOn other inputs it {other!r}." if other else "")
    )


def never_varies(context: Context, pool: Pool) -> bool:
    """Whether outputs never varied, as far as they can be read; notes say what is wrong."""
    unreadable = cannot_be_read(pool)
    if any(map(was_cut, _first_outputs(pool).raw)):
        context.sampler.note(
            f"only the first {THOUSAND:,} elements of an iterator were read, and nothing is known "
            "of the others: return a list, or use features="
        )
    if unreadable:
        if context.settings.features is not None:
            return False
        said = f"{unreadable}: return plain values, or use features="
        context.sampler.note(said, hinders=True)
    if pool.varies or pool.runs < 2:
        return False
    if not unreadable:
        hint = (
            "is a return missing?"
            if _first_outputs(pool).raw[0] is None
            else "missing noise, a fixed seed or a cache?"
        )
        context.sampler.note(
            f"returned the same value in all {pool.runs:,} runs: {hint}", hinders=True
        )
    return True


def cannot_be_read(pool: Pool) -> str:
    """A sentence about outputs that cannot be read; empty if all can."""
    outputs = _first_outputs(pool)
    hidden = opaque_types(outputs.levels)
    if not hidden:
        return ""
    types = {type(output).__name__ for output in outputs.raw}
    of_outputs = [kind for kind in hidden if kind in types]
    what = (
        f"outputs of type {' and '.join(of_outputs)}"
        if of_outputs
        else f"{' and '.join(hidden)} in outputs"
    )
    return f"{what} cannot be read"


def _first_outputs(pool: Pool) -> Table:
    return tabulate(joined([tables[0].raw[:32] for tables in pool.drawn if tables]))
