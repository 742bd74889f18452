"""The inputs of a search, and what is to be said of all outputs on them.

Pairs that share an input share its position. Nothing that was drawn here may be used in a test.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

from pytest_dp.basics.arrays import join_outputs
from pytest_dp.basics.errors import MechanismError
from pytest_dp.basics.reprs import on_one_line
from pytest_dp.data import describe, left_out
from pytest_dp.outputs.hashing import hashes
from pytest_dp.outputs.iterators import MAX_ELEMENTS, was_cut
from pytest_dp.outputs.leaves import opaque_types
from pytest_dp.outputs.raised import Raised
from pytest_dp.outputs.table import Table, tabulate
from pytest_dp.running.chunks import Input
from pytest_dp.running.sampler import Sampler, used_up

NEARLY_ALL = 0.9
"""Share of the outputs that are empty, where nothing tells inputs apart. Larger and smaller:
another advice alone."""

BLIND = (
    "no event that was tried distinguishes the two inputs of any pair, so a leak may have gone "
    "unseen: compute the quantity that leaks with features=, name pairs that differ by more, or "
    "raise max_samples"
)
LARGER_GROUPS = (
    "no group was large enough to be released, so nothing was seen. Give inputs= in which groups "
    "are larger than the threshold"
)


class Pool:
    """Inputs, and a few of the outputs that were drawn on them."""

    def __init__(self) -> None:
        self.inputs: list[Input] = []
        self.first: dict[int, Table] = {}
        """The first batch of outputs on each input."""
        self.last: dict[int, Table] = {}
        """The last one."""
        self.runs = 0
        """Outputs that were seen."""
        self.returned = False
        """Whether any of them was returned, not raised."""
        self.varies = False
        """Whether any two of them differed."""
        self._mark: int | None = None
        self._position: dict[Any, int] = {}
        self._alive: list[Any] = []  # so that nothing else gets the id of what was added

    def add(self, data: Any) -> int:
        """Return the position of an input, which is added if it is new."""
        item = Input(data)
        key = item.frozen if item.frozen is not None else id(data)
        if key not in self._position:
            self._position[key] = len(self.inputs)
            self.inputs.append(item)
            self._alive.append(data)
        return self._position[key]

    def see(self, which: int, table: Table) -> None:
        """Take note of outputs on an input."""
        self.first.setdefault(which, table)
        self.last[which] = table
        self.runs += len(table)
        self.returned |= any(not isinstance(output, Raised) for output in table.raw)
        if not self.varies and len(table):
            marks = hashes(table)
            self._mark = int(marks[0]) if self._mark is None else self._mark
            self.varies = bool((marks != self._mark).any())


def note_left_out(sampler: Sampler, tried: int, total: int) -> None:
    """Say that only some of the claim's pairs took part."""
    sampler.note(
        f"tried {tried} of {total:,} pairs: raise max_samples or max_seconds, or "
        "name the pairs that matter with pairs=",
        hinders=True,
    )


def check_raised(sampler: Sampler, pool: Pool, first: Any, examples: Any) -> None:
    """Raise MechanismError if no run of the mechanism has returned, with the `first` input."""
    if pool.returned:
        return
    raised, *others = [table.raw[0] for table in pool.first.values()]
    if sampler.worked:
        raise used_up(sampler.name, "when it was tried out", raised)
    examples = examples if isinstance(examples, list | tuple) else ()
    advice = next(filter(None, map(left_out, examples)), "")
    other = next((outcome for outcome in others if outcome.kind != raised.kind), None)
    raise MechanismError(
        f"{sampler.name} raised in all {pool.runs:,} runs, so there is nothing to audit. "
        f"The first time, on {describe(first)}:\n{raised.trace}"
        + (f"\nOn other inputs it {other!r}." if other else "")
        + (f"\n{advice}" if advice else "")
    )


def never_varies(sampler: Sampler, pool: Pool, *, by_features: bool) -> bool:
    """Return whether outputs never varied, as far as they can be read; notes say what is wrong.

    `by_features` is whether a function of the user's reads them.
    """
    unreadable = cannot_be_read(pool)
    if any(map(was_cut, _first_outputs(pool).raw)):
        sampler.note(
            f"only the first {MAX_ELEMENTS:,} elements of an iterator were read: return a list, "
            "or use features="
        )
    if unreadable:
        if by_features:
            return False
        said = f"{unreadable}: return plain values, or use features="
        sampler.note(said, hinders=True)
    if pool.varies or pool.runs < 2:
        return False
    if not unreadable:
        sampler.note(_constant(pool), hinders=True)
    return True


def _constant(pool: Pool) -> str:
    """Return what outputs that never vary may mean, and what to do."""
    value = _first_outputs(pool).raw[0]
    if empty := _empty_output(pool):
        return f"{empty} in all {pool.runs:,} runs: {LARGER_GROUPS}"
    hint = "is a return missing?" if value is None else "missing noise, a fixed seed or a cache?"
    return f"returned the same value in all {pool.runs:,} runs: {hint}"


def blind(pool: Pool) -> str:
    """Return what it may mean that nothing tells inputs apart, and what to do."""
    return nearly_empty(pool) or BLIND


def nearly_empty(pool: Pool) -> str:
    """Return a warning that nearly all outputs were empty; an empty text if they were not."""
    empty = _empty_output(pool)
    return f"{empty} in nearly all runs: {LARGER_GROUPS}" if empty else ""


def _empty_output(pool: Pool) -> str:
    """Describe an empty output if nearly all on each input are empty; else return an empty text."""
    found = ""
    for which, last in pool.last.items():
        table = pool.first[which] if last.is_extract else last
        empty = [output for output in table.raw if _is_empty(output)]
        if len(empty) < NEARLY_ALL * max(len(table), 1):
            return ""
        found = f"returned an empty answer ({on_one_line(empty[0])})"
    return found


def _is_empty(output: Any) -> bool:
    """Return whether an output is a container, a table or a text with nothing in it."""
    if isinstance(output, dict) and output:
        return all(map(_is_empty, output.values()))
    return isinstance(output, Sized) and not len(output)


def cannot_be_read(pool: Pool) -> str:
    """Return a sentence about outputs that cannot be read; empty if all can."""
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
    return tabulate(join_outputs([table.raw[:32] for table in pool.first.values()]))
