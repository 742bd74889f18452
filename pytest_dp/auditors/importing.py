"""Whether a mechanism answers otherwise after its module was imported anew.

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
from pytest_dp.outputs.outcome import all_equal, same
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
FEW_RUNS = 4
"""The same after further imports of a mechanism that always answers alike."""


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
    replayed = True
    try:
        for outputs in _imported_anew(sampler, budget, items):
            keys = _keys(len(drawn), len(items))
            replayed = replayed and _is_replayed(sampler, budget, items, keys, outputs)
            if replayed and not any(map(all_equal, outputs)):
                return ""
            drawn.append(outputs)
            if not replayed and len(drawn) >= IMPORTS:
                break
    except CannotCopy:
        if sampler.origin is not None and (reason := sampler.origin.reason):
            sampler.note(f"noise that is drawn at an import would not be noticed, as {reason}")
    for outputs_on_one in zip(*drawn, strict=True):
        fewest = min(map(len, outputs_on_one))
        apart = [outputs[:fewest] for outputs in outputs_on_one]
        if replayed or len(apart) < 2:
            continue
        kept = keep_answers(apart) and not by_chance(apart)
        if kept or told_apart(apart, tabulate(join_outputs(apart)), event):
            return (
                "its answers change with each import of its module, as with noise that follows "
                f"from a secret key ({examples_of(apart)})"
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
    """Return the key of the random numbers after an import, on each input."""
    return [(number, side, 2) for side in range(inputs)]


def _is_replayed(
    sampler: Sampler,
    budget: Budget,
    items: Sequence[Input],
    keys: Sequence[tuple[int, ...]],
    both: list[Outputs],
) -> bool:
    """Return whether the mechanism gave the same outputs here, with the same random numbers."""
    deadline = budget.confirming_deadline(LEAST_RUNS)
    for item, key, outputs in zip(items, keys, both, strict=True):
        here = sampler.afresh(item, len(outputs), key, deadline)
        if not all(map(same, here, outputs)):
            return False
    return True
