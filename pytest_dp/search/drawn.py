"""Pairs that strategies draw: those on new ways are chosen, and mutated inside the strategy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from pytest_dp.datasets.relations import Pair
from pytest_dp.inputs.sources import Drawer, Proposer, Tried
from pytest_dp.search.mutation import MOST_HOPED, OF_THE_PAST, patience
from pytest_dp.search.screening import Screened

ALIKE = 4
"""Pairs that go known ways only, and are proposed in any case: one of every so many that are seen,
or all of them where nothing can ever be seen."""
SEEN_OF_ALIKE = 25


class Sifted:
    """Another proposer's pairs, without most of those that go known ways.

    Parameters
    ----------
    proposer : Proposer
    screened : Screened
    """

    def __init__(self, proposer: Proposer, screened: Screened) -> None:
        self._proposer, self._screened = proposer, screened
        self.name: str = getattr(proposer, "name", type(proposer).__name__)
        self._dry = self._alike = 0

    def propose(self, past: Sequence[Tried]) -> Iterator[Pair]:
        """Its pairs, until for long nothing was new."""
        screen = self._screened.screen
        for pair in self._proposer.propose(past):
            rank = 3 if screen.blind else screen.rank(pair)
            self._dry = 0 if rank is not None and rank < 3 else self._dry + 1
            if self._dry > patience(screen) and screen.sees:
                return
            if rank is not None and (rank < 3 or not screen.sees or self._is_due()):
                yield pair

    def _is_due(self) -> bool:
        """Whether a pair that shows nothing new comes into play."""
        due = self._alike < ALIKE and self._dry >= SEEN_OF_ALIKE * self._alike
        self._alike += due
        return due


class MutatedPairs:
    """Mutations of drawn pairs, inside of what their strategy can yield.

    Parameters
    ----------
    drawer : Drawer
    screened : Screened
    seed : int
    """

    name = "mutation"

    def __init__(self, drawer: Drawer, screened: Screened, seed: int) -> None:
        self._drawer, self._screened, self._random = drawer, screened, Random(seed)
        self._found: list[Pair] = []
        self._dry = 0

    def propose(self, past: Sequence[Tried]) -> Iterator[Pair]:
        """Pairs that go new ways, or are put farther apart than others."""
        screen = self._screened.screen
        hoped = sorted(past, key=lambda tried: -tried.hope)[:MOST_HOPED]
        parents = [tried.pair for tried in hoped]
        while self._dry <= patience(screen) and not screen.blind:
            self._dry += 1
            old = not self._found or self._random.random() < OF_THE_PAST
            pair = self._drawer.mutated(
                self._random.choice(parents if old else self._found[-MOST_HOPED:]), self._random
            )
            rank = None if pair is None else screen.rank(pair)
            if pair is not None and rank is not None and rank < 3:
                self._dry = 0
                self._found.append(pair)
                yield pair
