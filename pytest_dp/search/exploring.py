"""Walks through a space of inputs, from those that the claim gives, towards new ways."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice

from pytest_dp.datasets.relations import Pair, Relation
from pytest_dp.search.bisection import parting
from pytest_dp.search.constants import Constant, constants_of, corner_values
from pytest_dp.search.screening import Screen, Screened
from pytest_dp.search.spaces import Found, Space

MAX_NEIGHBOURS, AMONG = 6, 64
"""Neighbours of an input on a new way that are looked at, and among how many they are chosen."""
MAX_INSIDE = 2
"""Pairs of such an input with its neighbours that are proposed."""
MAX_STARTS = 8
"""Pairs of the claim from which ways to others begin."""


class Explorer:
    """Where to go in a space, by what was seen of it.

    Parameters
    ----------
    space : Space
    relation : Relation
    screened : Screened
    """

    def __init__(self, space: Space, relation: Relation, screened: Screened) -> None:
        self.space, self.relation = space, relation
        self._screened, self.given, self.rng = screened, screened.given, screened.rng

    @property
    def screen(self) -> Screen:
        """What is known so far."""
        return self._screened.screen

    @cached_property
    def constants(self) -> list[Constant]:
        """Those of the code."""
        return constants_of(self._screened.call.mechanism, self._screened.call.params)

    @cached_property
    def corners(self) -> list[Constant]:
        """Those that need no code."""
        return corner_values()

    def neighbours(self, found: Found) -> Iterator[Pair]:
        """An input with its neighbours: first two in order, which differ most, then any."""
        pairs = self.relation.pairs(found.data, self.space.records)
        yield from (self._with_origin(pair, found) for pair in islice(pairs, 2))
        others = list(islice(pairs, AMONG))
        for at in self.rng.permutation(len(others)).tolist():
            yield self._with_origin(others[at], found)

    def visited(self, found: Found) -> Iterator[Pair]:
        """Pairs around an input on a new way; else one with it, if that is put farther apart."""
        if self.screen.is_new(found.data):
            yield from self.around(found)
            return
        for pair in islice(self.neighbours(found), 1):
            rank = self.screen.rank(pair)
            if rank is not None and rank < 3:
                yield pair

    def around(self, found: Found) -> Iterator[Pair]:
        """Where the way of an input parts from that of a given one, and pairs on it."""
        parted = self._parting(found)
        if parted is not None:
            yield parted
        ranked: list[tuple[int, int, Pair]] = []
        for pair in islice(self.neighbours(found), MAX_NEIGHBOURS):
            rank = self.screen.rank(pair)
            if rank is not None:
                ranked.append((rank, len(ranked), pair))
        yield from (pair for _, _, pair in sorted(ranked)[:MAX_INSIDE])

    def _parting(self, found: Found) -> Pair | None:
        """Two neighbours, on the way from a given input, of which one goes a known way."""
        for pair in self.given[:MAX_STARTS]:
            way = self.space.way(pair.d1, found.data)
            two = None if way is None else parting(way, self.screen.told)
            if two is not None and not self.relation.fault(*two):
                parted = self._with_origin(Pair(*two, self.relation.difference(*two)), found)
                return parted if self.screen.rank(parted) is not None else None
        return None

    def _with_origin(self, pair: Pair, found: Found) -> Pair:
        if all(map(self.space.inside, (pair.d1, pair.d2))):
            return pair
        return replace(pair, origin=found.said(pair.d1, pair.d2))
