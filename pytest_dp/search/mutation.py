"""Mutations of what looks most promising: inputs with new behaviour, and pairs that bets favour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pytest_dp.datasets.relations import Pair
from pytest_dp.inputs.sources import Tried
from pytest_dp.search.exploring import Explorer
from pytest_dp.search.screening import Screen

PATIENCE, PATIENCE_PER_NEW, MAX_PATIENCE = 40, 30, 400
"""Mutations in a row that may show nothing new: the first number, and the second for each input
with new behaviour, as there may be more behind it; but no more than the third. More patience finds
more, and takes longer in vain. These and the numbers below were chosen by hand."""
MAX_INSERTED_INTO, MAX_INSERTED = 8, 12
"""Inputs with new behaviour into which constants are put, and how many: behind one condition, there
may be another. Each combination is a look at an input."""
MAX_PARENTS = 4
"""Pairs of the past that are mutated, those that a bet may gain most on; more of them spread the
mutations thinner."""
PAST_SHARE = 0.25
"""Share of mutations that are of pairs of the past; the others are of inputs with new behaviour."""


def patience(screen: Screen) -> int:
    """How many inputs in a row may show nothing new until a search ends."""
    return min(PATIENCE + PATIENCE_PER_NEW * len(screen.new_inputs), MAX_PATIENCE)


def hopeful(past: Sequence[Tried]) -> list[Pair]:
    """The pairs that a bet may gain most on."""
    ordered = sorted(past, key=lambda tried: -tried.hope)
    return [tried.pair for tried in ordered[:MAX_PARENTS]]


class Mutation:
    """Mutates inputs; those with new behaviour are mutated further.

    Parameters
    ----------
    explorer : Explorer
    """

    name = "mutation"

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self._dry = self._inserted_into = 0

    def propose(self, past: Sequence[Tried]) -> Iterator[Pair]:
        """Pairs around mutations with new behaviour, or with outputs farther apart than others'."""
        explorer = self._explorer
        parents = [data for pair in hopeful(past) for data in (pair.d1, pair.d2)]
        constants = [*explorer.constants, *explorer.corners]
        while self._dry < patience(explorer.screen) and not explorer.screen.blind:
            yield from self._with_constants()
            self._dry += 1
            candidate = explorer.space.mutated(self._parent(parents), constants, explorer.rng)
            for pair in explorer.pairs(candidate):
                self._dry = 0
                parents.append(candidate.data)
                yield pair

    def _with_constants(self) -> Iterator[Pair]:
        """Pairs around each input with new behaviour, with constants of the code put into it."""
        explorer = self._explorer
        while self._inserted_into < min(len(explorer.screen.new_inputs), MAX_INSERTED_INTO):
            data = explorer.screen.new_inputs[self._inserted_into]
            self._inserted_into += 1
            for constant in explorer.constants[:MAX_INSERTED]:
                for candidate in explorer.space.inserted(data, constant, explorer.rng):
                    if explorer.screen.blind:
                        return
                    yield from explorer.pairs(candidate)

    def _parent(self, parents: list[Any]) -> Any:
        """An input with new behaviour, or one of the other parents."""
        rng, new_inputs = self._explorer.rng, self._explorer.screen.new_inputs
        from_past = not new_inputs or (parents and rng.random() < PAST_SHARE)
        candidates = parents if from_past else new_inputs
        return candidates[int(rng.integers(len(candidates)))]
