"""Mutates what looks most promising: inputs on new ways, and pairs that bets have hopes for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pytest_dp.datasets.relations import Pair
from pytest_dp.inputs.sources import Tried
from pytest_dp.search.exploring import Explorer
from pytest_dp.search.screening import Screen

DRY, DRY_FOR_A_WAY, MOST_DRY = 40, 30, 400
"""Mutations in a row that showed nothing new, after which there are no more; further ones for each
way that was found, as there may be more behind it; and at most."""
MAX_COMBED, COMBED_CONSTANTS = 8, 12
"""Inputs on new ways in which constants are put, and how many of these: behind one condition, there
may be another."""
MOST_HOPED = 4
"""Pairs of the past that are mutated, those of which most is hoped."""
OF_THE_CODE = 5
"""How much more often a constant of the code is put in than an ordinary corner value."""
OF_THE_PAST = 0.25
"""Share of mutations that are of these."""
RECENCY = 0.2
"""How much more often what was found last is mutated."""


def patience(screen: Screen) -> int:
    """How many inputs in a row may show nothing new until a search ends."""
    return min(DRY + DRY_FOR_A_WAY * len(screen.found), MOST_DRY)


class Mutation:
    """Mutates inputs; those that go new ways are mutated further.

    Parameters
    ----------
    explorer : Explorer
    """

    name = "mutation"

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self._dry = self._combed = 0

    def propose(self, past: Sequence[Tried]) -> Iterator[Pair]:
        """Pairs around mutations that go new ways, or that are put farther apart than others."""
        explorer = self._explorer
        hoped = sorted(past, key=lambda tried: -tried.hope)[:MOST_HOPED]
        parents = [data for tried in hoped for data in (tried.pair.d1, tried.pair.d2)]
        constants = [*OF_THE_CODE * explorer.constants, *explorer.corners]
        while self._dry < patience(explorer.screen) and not explorer.screen.blind:
            yield from self._behind_new_ways()
            self._dry += 1
            found = explorer.space.mutated(self._parent(parents), constants, explorer.rng)
            for pair in explorer.visited(found):
                self._dry = 0
                parents.append(found.data)
                yield pair

    def _behind_new_ways(self) -> Iterator[Pair]:
        """Each input that went a new way, with each of the first constants of the code."""
        explorer = self._explorer
        while self._combed < min(len(explorer.screen.found), MAX_COMBED):
            data = explorer.screen.found[self._combed]
            self._combed += 1
            for constant in explorer.constants[:COMBED_CONSTANTS]:
                for found in explorer.space.combed(data, constant, explorer.rng):
                    if explorer.screen.blind:
                        return
                    yield from explorer.visited(found)

    def _parent(self, parents: list[Any]) -> Any:
        """One of the inputs that went new ways, the latest ones more often, or of other parents."""
        rng, found = self._explorer.rng, self._explorer.screen.found
        if not found or (parents and rng.random() < OF_THE_PAST):
            return parents[int(rng.integers(len(parents)))]
        back = int(rng.geometric(RECENCY))
        return found[-back if back <= len(found) else int(rng.integers(len(found)))]
