"""Pairs that strategies draw: those with new behaviour are chosen, and mutated in the strategy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from pytest_dp.datasets.relations import Pair
from pytest_dp.inputs.sources import Drawer, Proposer, Tried
from pytest_dp.limits import DOZENS, SEVERAL
from pytest_dp.search.mutation import PAST_SHARE, hopeful, patience
from pytest_dp.search.screening import KNOWN, SearchContext


class Sifted:
    """Another proposer's pairs, without most of those with known behaviour."""

    def __init__(self, proposer: Proposer, context: SearchContext) -> None:
        self._proposer, self._context = proposer, context
        self.name: str = getattr(proposer, "name", type(proposer).__name__)
        self._dry = self._known = 0

    def propose(self, past: Sequence[Tried]) -> Iterator[Pair]:
        """Its pairs, until many in a row showed nothing new."""
        screen = self._context.screen
        for pair in self._proposer.propose(past):
            rank = KNOWN if screen.blind else screen.rank(pair)
            self._dry = 0 if rank is not None and rank < KNOWN else self._dry + 1
            if self._dry > patience(screen) and screen.sees:
                return
            if rank is not None and (rank < KNOWN or not screen.sees or self._is_due()):
                yield pair

    def _is_due(self) -> bool:
        """Whether a pair that shows nothing new is proposed all the same."""
        is_due = self._known < SEVERAL // 2 and self._dry >= DOZENS * self._known
        self._known += is_due
        return is_due


class MutatedPairs:
    """Mutations of drawn pairs, inside of what their strategy can yield."""

    name = "mutation"

    def __init__(self, drawer: Drawer, context: SearchContext, seed: int) -> None:
        self._drawer, self._context, self._random = drawer, context, Random(seed)
        self._new_pairs: list[Pair] = []
        self._dry = 0

    def propose(self, past: Sequence[Tried]) -> Iterator[Pair]:
        """Pairs with new behaviour, or with outputs farther apart than those of others."""
        screen, hoped = self._context.screen, hopeful(past)
        while self._dry <= patience(screen) and not screen.blind:
            self._dry += 1
            from_past = not self._new_pairs or self._random.random() < PAST_SHARE
            parents = hoped if from_past else self._new_pairs[-(SEVERAL // 2) :]
            pair = self._drawer.mutated(self._random.choice(parents), self._random)
            rank = None if pair is None else screen.rank(pair)
            if pair is not None and rank is not None and rank < KNOWN:
                self._dry = 0
                self._new_pairs.append(pair)
                yield pair
