"""A comparison of a mechanism's answers with those after a new import of its module.

Noise that a secret decides which was drawn at the import is the same in all copies and forks,
whatever is added to it in each run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pytest_dp.auditors.budget import Budget
from pytest_dp.auditors.independence import examples_of, told_apart
from pytest_dp.auditors.starting_afresh import LEAST_RUNS, by_chance, coins_enough, keep_answers
from pytest_dp.basics.arrays import Outputs, join_outputs
from pytest_dp.outputs.raised import all_equal, same
from pytest_dp.outputs.table import tabulate
from pytest_dp.running.chunks import Input
from pytest_dp.running.copies import CannotCopy
from pytest_dp.running.deadline import OutOfTime
from pytest_dp.running.forked import Start
from pytest_dp.running.sampler import Sampler

IMPORTS = 4
"""Processes that import a mechanism anew. Fewer tell less of what an import draws; more take
longer."""
RUNS = 128
"""Runs on either input after each import. Fewer miss noise of the import beneath larger noise of
each run, more take longer."""
FEW_RUNS = 16
"""The same after further imports of a mechanism that always answers alike. With fewer, one other
answer in five imports may be chance; more take longer."""


def drawn_at_the_import(
    sampler: Sampler, budget: Budget, items: Sequence[Input], event: Any
) -> str:
    """Return why outputs seem to depend on something drawn at the import, or nothing if not.

    Where the same random numbers give the same outputs after another import, nothing was drawn
    then; unless outputs never change, as coins of two imports often fall alike: these are imported
    so often that fair coins fall alike with chance alpha at most. Where outputs are not the same,
    they may not tell which import they come from. Code that reads no values, and code of no module,
    has nothing from an import.
    """
    if not sampler.reads_data or sampler.imports:
        return ""  # each start was an import
    drawn: list[list[Outputs]] = []
    here, replayed = list[Outputs](), True
    try:
        for outputs in _imported_anew(sampler, budget, items):
            if replayed:
                here = _outputs_here(sampler, budget, items, len(drawn), len(outputs[0]))
                replayed = all(all(map(same, *both)) for both in zip(here, outputs, strict=True))
            if replayed and not any(map(all_equal, outputs)):
                return ""
            drawn.append(outputs)
            if not replayed and len(drawn) >= IMPORTS:
                break
    except CannotCopy:
        if sampler.origin is not None and (reason := sampler.origin.reason):
            sampler.note(f"noise that is drawn at an import would not be noticed, as {reason}")
    return "" if replayed else _what_tells_imports(here, drawn, event)


def _what_tells_imports(here: list[Outputs], drawn: list[list[Outputs]], event: Any) -> str:
    """Return how outputs on one of the inputs tell which import they come from, or nothing."""
    for first, *others in zip(here, *drawn, strict=True):
        fewest = min(map(len, (first, *others)))
        apart = [outputs[:fewest] for outputs in others]
        if len(apart) < 2:
            continue
        every = [first[:fewest], *apart]
        kept = keep_answers(every) and not by_chance(every)
        if kept or told_apart(apart, tabulate(join_outputs(apart)), event):
            return (
                "its answers change with each import of its module, as with noise that follows "
                f"from a secret key ({examples_of(every)})"
            )
    return ""


def _imported_anew(
    sampler: Sampler, budget: Budget, items: Sequence[Input]
) -> Iterator[list[Outputs]]:
    """Yield outputs on all inputs of each of some processes that import the mechanism anew."""
    deadline = budget.confirming_deadline(LEAST_RUNS, at_most_end=True)
    for number in range(max(IMPORTS, coins_enough(budget.alpha))):
        keyed = list(zip(items, _keys(number, len(items)), strict=True))
        runs = RUNS if number < IMPORTS else FEW_RUNS
        try:
            outputs = sampler.forked(keyed, runs, deadline, Start.IMPORTED)
        except OutOfTime:
            sampler.note("time was up during a new import of the module to confirm the violation")
            return
        yield outputs


def _keys(number: int, inputs: int) -> list[tuple[int, ...]]:
    """Return the keys of the random numbers after an import, one for each input."""
    return [(number, side, 2) for side in range(inputs)]


def _outputs_here(
    sampler: Sampler, budget: Budget, items: Sequence[Input], number: int, runs: int
) -> list[Outputs]:
    """Return outputs without a new import, on the random numbers of one, on each input."""
    deadline = budget.confirming_deadline(LEAST_RUNS)
    keyed = zip(items, _keys(number, len(items)), strict=True)
    return [sampler.afresh(item, runs, key, deadline) for item, key in keyed]
