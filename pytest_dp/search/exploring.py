"""Walks through a space of inputs, from those of the claim towards those with new behaviour."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice

from pytest_dp.datasets.relations import Pair, Relation
from pytest_dp.limits import FEW, MANY, SEVERAL
from pytest_dp.search.bisection import boundary
from pytest_dp.search.constants import Constant, constants_of, corner_values
from pytest_dp.search.screening import KNOWN, Screen, SearchContext
from pytest_dp.search.spaces import Candidate, Space


class Explorer:
    """Finds pairs around candidates of a space.

    `tried` has the constants of which an input was looked at.
    """

    def __init__(self, space: Space, relation: Relation, context: SearchContext) -> None:
        self.space, self.relation = space, relation
        self.tried: set[Constant] = set()
        self._context, self.rng = context, context.rng

    @property
    def screen(self) -> Screen:
        """The behaviours that are known so far."""
        return self._context.screen

    @cached_property
    def constants(self) -> list[Constant]:
        """Constants of the mechanism's code."""
        return constants_of(self._context.call.mechanism, self._context.call.params)

    def untried(self) -> list[str]:
        """The constants in comparisons that were not tried, with their places."""
        left = [c for c in self.constants if c.decides and c not in self.tried]
        return [f"{c.value!r} ({c.origin.removeprefix('a constant in ')})" for c in left]

    @cached_property
    def corners(self) -> list[Constant]:
        """Ordinary corner values."""
        return corner_values()

    def neighbours(self, candidate: Candidate) -> Iterator[Pair]:
        """A candidate with its neighbours: two in order, which differ most, then others."""
        pairs = self.relation.pairs(candidate.data, self.space.records)
        yield from (self._with_origin(pair, candidate) for pair in islice(pairs, 2))
        others = list(islice(pairs, MANY))
        for at in self.rng.permutation(len(others)).tolist():
            yield self._with_origin(others[at], candidate)

    def pairs(self, candidate: Candidate) -> Iterator[Pair]:
        """Pairs around a candidate with new behaviour; else one, if it is of any interest."""
        if self.screen.is_new(candidate.data):
            yield from self._pairs_around(candidate)
            return
        for pair in islice(self.neighbours(candidate), 1):
            rank = self.screen.rank(pair)
            if rank is not None and rank < KNOWN:
                yield pair

    def _pairs_around(self, candidate: Candidate) -> Iterator[Pair]:
        """A pair where the candidate's behaviour begins, and pairs of it with its neighbours."""
        boundary_pair = self._boundary_pair(candidate)
        if boundary_pair is not None:
            yield boundary_pair
        ranked: list[tuple[int, int, Pair]] = []
        for pair in islice(self.neighbours(candidate), 2 * FEW):
            rank = self.screen.rank(pair)
            if rank is not None:
                ranked.append((rank, len(ranked), pair))
        yield from (pair for _, _, pair in sorted(ranked)[:2])

    def _boundary_pair(self, candidate: Candidate) -> Pair | None:
        """Two neighbours, between an input of the claim and the candidate, that differ."""
        for start in self._context.pairs[:SEVERAL]:
            walk = self.space.walk(start.d1, candidate.data)
            inputs = None if walk is None else boundary(walk, self.screen.behaviour_of)
            pair = None if inputs is None else self.relation.pair(*inputs)
            if pair is not None:
                pair = self._with_origin(pair, candidate)
                return pair if self.screen.rank(pair) is not None else None
        return None

    def _with_origin(self, pair: Pair, candidate: Candidate) -> Pair:
        return replace(pair, origin=candidate.origin_of(pair.d1, pair.d2))
