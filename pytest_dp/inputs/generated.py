"""Pairs of neighbouring inputs from Hypothesis strategies: corner cases first, then ever more.

A pair is drawn as a whole, with the parameters that are drawn beside it, so that it can be drawn
again, mutated and shrunk as one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any, cast

from pytest_dp.datasets import kind_of
from pytest_dp.datasets.conversion import length
from pytest_dp.datasets.equality import key
from pytest_dp.datasets.relations import Pair
from pytest_dp.errors import ClaimError
from pytest_dp.inputs.corner_cases import ordered
from pytest_dp.inputs.drawing import Drawn, choices_work, draws, mutated, shrunk
from pytest_dp.inputs.pair_strategies import FIRST_FEW, MAX_DRAWN, MAX_REJECTED, Pairs, drawing
from pytest_dp.inputs.sources import Tried, content

UP_FRONT = 24
"""Pairs that every auditor looks at; where pairs are listed, at least as many as those. More leave
fewer samples for each, fewer leave out corner cases (see `corner_cases`). Chosen by hand."""
POOL = 200
"""Pairs that are drawn to choose these from: more take longer, fewer show fewer corner cases.
Chosen by hand."""
DRAWS_SHARE = 1.25
"""Draws in terms of pairs, with those that are rejected, after which fewer pairs are enough: what
bounds the time where a strategy rejects much. Chosen by hand."""
MUTATIONS = 20
"""Attempts at a mutation that gives a pair: more take longer where hardly any does. By hand."""


class Generated:
    """Pairs that a strategy yields, the same ones for each seed; it is a `Proposer` of more.

    Parameters
    ----------
    pairs : Pairs
    seed : int
    said : str
        What to call it in errors: ``"inputs=lists(integers())"``.
    constants : sequence
        Numbers and texts that are tried wherever the strategy allows them.

    Attributes
    ----------
    pairs : tuple of Pair
        Those that every auditor looks at, corner cases first.
    mutable : bool
        Whether pairs can be mutated and shrunk.

    Raises
    ------
    ClaimError
        If the strategy raises, rejects everything, or yields no pair.
    """

    name = "the strategy"

    def __init__(self, pairs: Pairs, seed: int, said: str, constants: Sequence[Any] = ()) -> None:
        self._strategy, self._said, self._constants = pairs.strategy, said, constants
        self.mutable = choices_work()
        self._drawn: dict[frozenset[bytes], Drawn] = {}
        self._rejected = 0
        self._more = self._new(draws(pairs.strategy, seed, constants))
        pool: list[Pair] = []
        records, enough = 0, max(POOL, 4 * len(pairs.listed))
        for pair in self._more:
            pool.append(pair)
            records += _size(pair.d1) + _size(pair.d2)
            late = len(pool) + self._rejected > DRAWS_SHARE * enough and len(pool) >= UP_FRONT
            if late or len(pool) >= (enough if records <= MAX_DRAWN else FIRST_FEW):
                break
        if not pool:
            raise ClaimError(f"{said}: {pairs.nothing}")
        pool = listed_first(pairs.listed, ordered(pool))
        up_front = max(UP_FRONT, len(pairs.listed))
        self.pairs, self._waiting = tuple(pool[:up_front]), pool[up_front:]

    def _new(self, drawn: Iterator[Drawn | None]) -> Iterator[Pair]:
        """Pairs that were not drawn before, until many draws in a row give none."""
        in_a_row = 0
        while in_a_row < MAX_REJECTED:
            pair = drawing(drawn, self._said)
            if pair is not None and self._keep(pair):
                in_a_row = 0
                yield pair.value
            else:
                in_a_row += 1
                self._rejected += 1

    def _keep(self, drawn: Drawn) -> bool:
        """Remember how a pair was drawn, if it is a new one."""
        known = content(drawn.value)
        if known in self._drawn or len(known) < 2:
            return False
        self._drawn[known] = drawn
        return True

    def propose(self, past: Sequence[Tried]) -> Iterable[Pair]:  # noqa: ARG002
        """Further pairs, one by one; the same whatever was learned."""
        while self._waiting:
            yield self._waiting.pop(0)
        yield from self._more

    def mutated(self, pair: Pair, random: Random) -> Pair | None:
        """Another pair of the same strategy, near a pair that came from here.

        Returns
        -------
        Pair or None
            None if none was found, or the pair came from elsewhere. Pairs come in one order.
        """
        drawn = self._drawn.get(content(pair))
        if drawn is None or not self.mutable:
            return None
        others = list(self._drawn.values())
        for _ in range(MUTATIONS):
            made = mutated(self._strategy, drawn, random.choice(others), random, self._constants)
            if made is None:
                continue
            digest = content(made.value)
            if len(digest) == 2 and digest != content(pair):
                self._drawn.setdefault(digest, made)
                return cast("Pair", made.value)
        return None

    def shrunk(
        self, pair: Pair, still_fails: Callable[[Pair], bool], seconds: float = 10.0
    ) -> Pair:
        """The smallest pair found of the same strategy for which `still_fails`.

        Parameters
        ----------
        pair : Pair
            That came from here; others are returned as they are.
        still_fails : callable
            Says the same of equal pairs.
        seconds : float
            For all of it; the last call of `still_fails` may end later.
        """
        drawn = self._drawn.get(content(pair))
        if drawn is None or not self.mutable:
            return pair
        backwards = key(drawn.value.d1) != key(pair.d1)
        known: dict[Hashable, bool] = {}

        def fails(smaller: Pair) -> bool:
            what = key((smaller.d1, smaller.d2, dict(smaller.params)))
            if what not in known:
                turned = smaller.reversed() if backwards else smaller
                known[what] = len(content(smaller)) == 2 and still_fails(turned)
            return known[what]

        smallest = shrunk(self._strategy, drawn, fails, seconds)
        self._keep(smallest)
        shrunken = cast("Pair", smallest.value)
        return shrunken.reversed() if backwards else shrunken


def listed_first(listed: Sequence[Pair], drawn: Sequence[Pair]) -> list[Pair]:
    """The same drawn pairs, with one draw of each listed pair in front, whatever its parameters."""
    positions: dict[frozenset[bytes], int] = {}
    for at, pair in enumerate(drawn if listed else ()):
        positions.setdefault(content(replace(pair, params={})), at)
    chosen = [positions[digest] for digest in map(content, listed) if digest in positions]
    return [drawn[at] for at in dict.fromkeys([*chosen, *range(len(drawn))])]


def _size(data: Any) -> int:
    return length(data) if kind_of(data) else 1
