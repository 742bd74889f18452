"""Walks through a space of inputs, from those of the claim towards those with new behaviour.

Corner cases, constants of the code, mutations: each is a way to propose pairs, and a screen chooses
among them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any

from pytest_dp.basics.reprs import plural
from pytest_dp.data.relations import Pair, Relation
from pytest_dp.pairs.sources import Proposer, Proposing, Tried
from pytest_dp.proposers.columns import choice
from pytest_dp.proposers.constants import Constant, constants_of, corner_values
from pytest_dp.proposers.novelty import KNOWN, Screen
from pytest_dp.proposers.space import Candidate, Space, Walk

MAX_NEIGHBOURS = 6
"""Neighbours of an input that are tried. More share the search; fewer may miss the one that
leaks."""
MAX_OTHERS = 64
"""Pairs of the claim from which inputs are taken. More take longer; fewer are much alike."""
MAX_CONSTANTS = 12
"""Constants that are put into an input at a time. More share the search; fewer are tried later."""
MAX_BEST = 4
"""Best pairs that the search goes on from, and pairs that are tried before it. More share the
search; fewer are much alike."""
MAX_STARTS = 8
"""Pairs from which the search starts. More share it; fewer are much alike."""
DRY_EACH = 24
"""Attempts without a new pair for each that is known, after which the search rests. More take
longer; fewer miss rare ones."""
MAX_RECORDS = 1_000
"""Records that mutations take values from. More take memory; fewer miss rare ones."""
MAX_NAMED = 3
"""Constants that a note names. More hide the rest."""
PATIENCE = 40
"""Mutations in a row that may show nothing new. More take longer; fewer miss rare branches."""
SMALL_RECORDS, MIN_PATIENCE = 100, 10
"""Records of an input up to which searches have their whole patience, and the least that larger
ones get. More take longer on data frames; fewer miss branches that only these have."""

MAX_INSERTED_INTO = 8
"""Inputs with new behaviour into which constants are put: behind one condition, there may be
another. Measured."""
PAST_SHARE = 0.25
"""Share of mutations that are of pairs of the past; the others are of inputs with new behaviour.
Measured."""


class Around:
    """Pairs around inputs: of neighbours in whose behaviour, or between which, something is new.

    `records` may come into a neighbour; `walk` leads from one input to another.
    """

    def __init__(
        self,
        screen: Screen,
        relation: Relation,
        records: Sequence[Any],
        walk: Callable[[Any, Any], Walk | None],
    ) -> None:
        self._screen, self._relation, self._records, self._walk = screen, relation, records, walk

    def each(self, candidates: Callable[[], Iterator[Candidate]]) -> Iterator[Pair]:
        """A few pairs with the first candidates, then pairs around those with new behaviour."""
        for candidate in islice(candidates(), 2):
            pairs = (
                pair
                for pair in self._neighbours(candidate)
                if self._screen.blind or self._screen.rank(pair) is not None
            )
            yield from islice(pairs, 1)
        yield from self.new(candidates())

    def new(self, candidates: Iterable[Candidate]) -> Iterator[Pair]:
        """Pairs around candidates, as long as they can be looked at."""
        for candidate in candidates:
            if self._screen.blind:
                return
            yield from self.one(candidate)

    def one(self, candidate: Candidate) -> Iterator[Pair]:
        """Pairs around a candidate with new behaviour; else one, if it is of any interest."""
        if self._screen.is_new(candidate.data):
            boundary_pair = self._boundary_pair(candidate)
            if boundary_pair is not None:
                yield boundary_pair
            yield from self._best_neighbours(candidate)
            return
        for pair in islice(self._neighbours(candidate), 1):
            rank = self._screen.rank(pair)
            if rank is not None and rank < KNOWN:
                yield pair

    def _best_neighbours(self, candidate: Candidate) -> list[Pair]:
        ranked: list[tuple[int, int, Pair]] = []
        for pair in islice(self._neighbours(candidate), MAX_NEIGHBOURS):
            rank = self._screen.rank(pair)
            if rank is not None:
                ranked.append((rank, len(ranked), pair))
        return [pair for _, _, pair in sorted(ranked)[:2]]

    def _neighbours(self, candidate: Candidate) -> Iterator[Pair]:
        """A candidate with its neighbours: two in order, which differ most, then others."""
        pairs = self._relation.pairs(candidate.data, self._records)
        yield from (with_origin(pair, candidate) for pair in islice(pairs, 2))
        others = list(islice(pairs, MAX_OTHERS))
        for at in self._screen.rng.permutation(len(others)).tolist():
            yield with_origin(others[at], candidate)

    def _boundary_pair(self, candidate: Candidate) -> Pair | None:
        """Two neighbours, between an input of the claim and the candidate, that differ."""
        for start in self._screen.pairs[:MAX_STARTS]:
            walk = self._walk(start.d1, candidate.data)
            inputs = None if walk is None else boundary(walk, self._screen.behaviour_of)
            pair = None if inputs is None else self._relation.pair(*inputs)
            if pair is not None:
                ranked = self._screen.rank(pair) is not None
                return with_origin(pair, candidate) if ranked else None
        return None


class Explorer:
    """Proposes pairs around inputs of a space; `proposers` are by the options that ask for them."""

    def __init__(self, space: Space, relation: Relation, screen: Screen) -> None:
        self._space, self._screen, self._rng = space, screen, screen.rng
        self._around = Around(screen, relation, space.records, space.walk)
        self._tried: set[Constant] = set()
        """Constants of which an input was looked at."""
        self._dry = self._inserted_into = 0
        constants = self._around.each(self._with_constants)
        corners = self._around.each(lambda: space.corners(corner_values()))
        self.proposers: dict[str, Proposer] = {
            "constants": Proposing("constants of the code", lambda _: constants),
            "patterns": Proposing("corner cases", lambda _: corners),
            "mutation": Proposing("mutation", self._mutations),
        }

    @cached_property
    def _constants(self) -> list[Constant]:
        return constants_of(self._screen.call.mechanism, self._screen.call.params)

    def notes(self) -> list[str]:
        """The constants in comparisons that were not tried, with their places."""
        left = [c for c in self._constants if c.decides and c not in self._tried]
        places = (f"{c.value!r} ({c.origin.removeprefix('a constant in ')})" for c in left)
        named = ", ".join(islice(places, MAX_NAMED))
        more = f" and {plural(len(left) - MAX_NAMED, 'other')}" if len(left) > MAX_NAMED else ""
        return [f"constants of the code that were not tried: {named}{more}"] * bool(left)

    def _with_constants(self) -> Iterator[Candidate]:
        """Inputs with each constant of the code, or a value just below or above; with several."""
        for constant in self._constants:
            for candidate in self._space.placed(constant):
                yield candidate
                self._tried.add(constant)
        for _ in range(PATIENCE if self._constants else 0):
            yield self._space.combined(self._constants, self._rng)

    def _inserted(self) -> Iterator[Candidate]:
        """Each input with new behaviour, with constants of the code put into it."""
        new_inputs = self._screen.new_inputs
        most = MAX_INSERTED_INTO if self._screen.records <= SMALL_RECORDS else 0
        while self._inserted_into < min(len(new_inputs), most):
            self._inserted_into += 1
            for constant in self._constants[:MAX_CONSTANTS]:
                data = new_inputs[self._inserted_into - 1]
                yield from self._space.inserted(data, constant, self._rng)

    def _mutations(self, past: Sequence[Tried]) -> Iterator[Pair]:
        """Pairs around mutations with new behaviour, or with outputs farther apart than others'."""
        parents = [data for pair in hopeful(past) for data in (pair.d1, pair.d2)]
        constants = [*self._constants, *corner_values()]
        screen = self._screen
        while self._dry < patience(screen) and not screen.blind:
            yield from self._around.new(self._inserted())
            self._dry += 1
            from_past = not screen.new_inputs or (parents and self._rng.random() < PAST_SHARE)
            parent = choice(parents if from_past else screen.new_inputs, self._rng)
            candidate = self._space.mutated(parent, constants, self._rng)
            for pair in self._around.one(candidate):
                self._dry = 0
                parents.append(candidate.data)
                yield pair


def values_in_turn(options: Sequence[Any], relation: Relation, screen: Screen) -> Proposing:
    """Pairs around the values of a claim; others may mean nothing to the mechanism."""
    records = tuple(options)[:MAX_RECORDS]
    around = Around(screen, relation, records, lambda *ends: Walk(2, ends.__getitem__))
    pairs = around.each(lambda: (Candidate(option, "one of the values") for option in records))
    return Proposing("corner cases", lambda _: pairs)


def with_origin(pair: Pair, candidate: Candidate) -> Pair:
    """A pair that says which candidate it was found around."""
    return replace(pair, origin=candidate.origin_of(pair.d1, pair.d2))


def boundary(walk: Walk, behaviour_of: Callable[[Any], Hashable | None]) -> tuple[Any, Any] | None:
    """Two inputs next to each other, of which only the former behaves like the start of a walk.

    The walk's last input does not behave like the first. Inputs with equal keys of `behaviour_of`
    behave alike; the key None ends the search. About ``log2`` of all inputs are looked at, and
    there may be other such places.
    """
    low, high = 0, walk.inputs - 1
    behaviour_at_start = behaviour_of(walk.at(low))
    while high - low > 1:
        middle = (low + high) // 2
        behaviour = behaviour_of(walk.at(middle))
        if behaviour is None:
            return None
        if behaviour == behaviour_at_start:
            low = middle
        else:
            high = middle
    return (walk.at(low), walk.at(high)) if high else None


def patience(screen: Screen) -> int:
    """How many inputs in a row may show nothing new until a search ends.

    Behind each input with new behaviour, there may be more. Inputs of many records, which take
    long to make and to run, get fewer.
    """
    if screen.records > SMALL_RECORDS:
        return max(PATIENCE * SMALL_RECORDS // screen.records, MIN_PATIENCE)
    return min(PATIENCE + 30 * len(screen.new_inputs), 10 * PATIENCE)


def hopeful(past: Sequence[Tried]) -> list[Pair]:
    """The pairs that a bet may gain most on."""
    ordered = sorted(past, key=lambda tried: -tried.hope)
    return [tried.pair for tried in ordered[:MAX_BEST]]


class Sieve:
    """Lets pairs pass, but most of those with known behaviour."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._dry = self._known = 0

    def __call__(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """The pairs that pass, until many in a row showed nothing new."""
        screen = self._screen
        for pair in pairs:
            rank = KNOWN if screen.blind else screen.rank(pair)
            self._dry = 0 if rank is not None and rank < KNOWN else self._dry + 1
            if self._dry > patience(screen) and screen.observer.sees:
                return
            if rank is not None and (rank < KNOWN or not screen.observer.sees or self._is_due()):
                yield pair

    def _is_due(self) -> bool:
        """Whether a pair that shows nothing new is proposed all the same."""
        is_due = self._known < MAX_BEST and self._dry >= DRY_EACH * self._known
        self._known += is_due
        return is_due
