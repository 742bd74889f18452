"""Mutations of what looks most promising: inputs with new behaviour, and pairs that bets favour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pytest_dp.datasets.relations import Pair
from pytest_dp.inputs.sources import Tried
from pytest_dp.limits import DOZENS, PATIENCE, SEVERAL
from pytest_dp.search.exploring import Explorer
from pytest_dp.search.screening import Screen

MAX_INSERTED_INTO = 8
"""Inputs with new behaviour into which constants are put: behind one condition, there may be
another. Measured."""
PAST_SHARE = 0.25
"""Share of mutations that are of pairs of the past; the others are of inputs with new behaviour.
Measured."""


def patience(screen: Screen) -> int:
    """How many inputs in a row may show nothing new until a search ends.

    Behind each input with new behaviour, there may be more.
    """
    return min(PATIENCE + 30 * len(screen.new_inputs), 10 * PATIENCE)


def hopeful(past: Sequence[Tried]) -> list[Pair]:
    """The pairs that a bet may gain most on."""
    ordered = sorted(past, key=lambda tried: -tried.hope)
    return [tried.pair for tried in ordered[: SEVERAL // 2]]


class Mutation:
    """Mutates inputs; those with new behaviour are mutated further."""

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
            for constant in explorer.constants[: DOZENS // 2]:
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
