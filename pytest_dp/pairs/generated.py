"""Pairs of neighbouring inputs from Hypothesis strategies: corner cases first, then ever more.

A pair is drawn as a whole, with the parameters that are drawn beside it, so that it can be drawn
again, and made smaller, as one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, cast

from pytest_dp.basics.errors import ClaimError
from pytest_dp.data import is_real, key, kind_of, records_of
from pytest_dp.data.conversion import length
from pytest_dp.data.fields import fields_of
from pytest_dp.data.ordering import accept_until, in_turn
from pytest_dp.data.relations import Pair
from pytest_dp.pairs.drawing import MAX_DRAWS, MAX_POOL_RECORDS, DrawnValue, choices_work
from pytest_dp.pairs.pair_makers import Pairs
from pytest_dp.pairs.pair_strategies import drawing
from pytest_dp.pairs.simplifying import simplify

POOL = 200
"""Datasets that are drawn from a strategy to choose from. More take longer; fewer may miss what
leaks."""
MAX_REJECTED = 1.25
"""Draws for each dataset that is needed, where neighbours are rejected. More take longer; fewer:
pools are small."""
MIN_POOL = 8
"""Datasets of a pool, however large they are. Fewer: there is nothing to choose from."""
MAX_CORNERS = 18
"""Records of a strategy's ends that pairs are made of. More share the samples; fewer may miss the
one that leaks."""
MIN_FIRST = 24
"""Pairs that are drawn before bets, at least. More take longer; fewer may miss the one that
leaks."""
MAX_VALUES = 16
"""Values of a field that are all tried. More share the samples; fewer may miss the one that
leaks."""


class Generated:
    """Pairs that a strategy yields, the same ones for each seed; it is a `Proposer` of more.

    `pairs` are those that every auditor looks at, corner cases first. `said` is what to call the
    strategy in errors: ``"inputs=lists(integers())"``. The numbers and texts among `constants` are
    tried wherever it allows them. `mutable` is whether it is known how pairs are made. Raises
    ClaimError if the strategy raises, rejects everything, or yields no pair.
    """

    name = "the strategy"

    def __init__(self, pairs: Pairs, seed: int, said: str, constants: Sequence[Any] = ()) -> None:
        self._strategy, self._said, self.constants = pairs, said, constants
        self.mutable = choices_work()
        self._drawn: dict[frozenset[bytes], DrawnValue] = {}
        self._rejected = 0
        self._more = self._new(pairs.draws(seed, constants))
        pool: list[Pair] = []
        records, enough = 0, max(POOL, 4 * len(pairs.listed))
        for pair in self._more:
            pool.append(pair)
            records += _size(pair.d1) + _size(pair.d2)
            late = len(pool) + self._rejected > MAX_REJECTED * enough and len(pool) >= MIN_FIRST
            if late or len(pool) >= (enough if records <= MAX_POOL_RECORDS else MIN_POOL):
                break
        if not pool:
            raise ClaimError(f"{said}: {pairs.explain_none()}")
        pool = listed_first(pairs.listed, order_pairs(pool))
        up_front = max(MIN_FIRST, len(pairs.listed))
        self.pairs, self._waiting = tuple(pool[:up_front]), pool[up_front:]

    def _new(self, drawn: Iterator[DrawnValue | None]) -> Iterator[Pair]:
        """Return pairs that were not drawn before, until many draws in a row give none."""

        def accept(one: DrawnValue | None) -> Pair | None:
            if one is not None and self._keep(one):
                return cast("Pair", one.value)
            self._rejected += 1
            return None

        endless = (drawing(drawn, self._said) for _ in count())
        return accept_until(endless, accept, MAX_DRAWS)

    def _keep(self, drawn: DrawnValue) -> bool:
        """Remember how a pair was drawn, if it is a new one."""
        known = drawn.value.content
        if known in self._drawn or len(known) < 2:
            return False
        self._drawn[known] = drawn
        return True

    @property
    def pool(self) -> tuple[Pair, ...]:
        """Pairs that were drawn beside the first ones, and not proposed yet."""
        return tuple(self._waiting)

    def propose(self) -> Iterable[Pair]:
        """Yield further pairs, one by one; the same whatever was learned."""
        while self._waiting:
            yield self._waiting.pop(0)
        yield from self._more

    def keep(self, drawn: DrawnValue) -> Pair:
        """Remember how a pair was made that a search found."""
        self._drawn.setdefault(drawn.value.content, drawn)
        return cast("Pair", drawn.value)

    def drawn(self, pair: Pair) -> DrawnValue | None:
        """Return how a pair was drawn that came from here; None if that is not known."""
        drawn = self._drawn.get(pair.content)
        return drawn if drawn is not None and drawn.choices and self.mutable else None

    def redrawn(self, pair: Pair, changes: Mapping[int, Any]) -> Pair | None:
        """Return the pair that the strategy makes if some choices, by their numbers, are others."""
        drawn = self.drawn(pair)
        if drawn is None:
            return None
        parts, at = [], 0
        for part in drawn.choices:
            parts.append(tuple(changes.get(at + n, choice) for n, choice in enumerate(part)))
            at += len(part)
        (made,) = self._strategy.remade([tuple(parts)])
        return None if made is None or len(made.value.content) < 2 else self.keep(made)

    def shrunk(
        self, pair: Pair, still_fails: Callable[[Pair], bool], seconds: float = 10.0
    ) -> Pair:
        """Return the smallest pair found of the same strategy for which `still_fails` is true.

        A pair that did not come from here is returned as it is. `still_fails` says the same of
        equal pairs. All calls of it share `seconds`; the last one may overrun.
        """
        drawn = self.drawn(pair)
        if drawn is None:
            return pair
        backwards = key(drawn.value.d1) != key(pair.d1)
        known: dict[Hashable, bool] = {}

        def fails(smaller: Pair) -> bool:
            what = key((smaller.d1, smaller.d2, dict(smaller.params)))
            if what not in known:
                turned = smaller.reversed() if backwards else smaller
                known[what] = len(smaller.content) == 2 and still_fails(turned)
            return known[what]

        smallest = simplify(self._strategy.remade, drawn, fails, seconds)
        self._keep(smallest)
        shrunken = cast("Pair", smallest.value)
        return shrunken.reversed() if backwards else shrunken


def listed_first(listed: Sequence[Pair], drawn: Sequence[Pair]) -> list[Pair]:
    """Return the drawn pairs with one draw of each listed pair in front, for any parameters."""
    positions: dict[frozenset[bytes], int] = {}
    for at, pair in enumerate(drawn if listed else ()):
        positions.setdefault(replace(pair, params={}).content, at)
    chosen = [
        positions[digest] for digest in (pair.content for pair in listed) if digest in positions
    ]
    return [drawn[at] for at in dict.fromkeys([*chosen, *range(len(drawn))])]


def _size(data: Any) -> int:
    return length(data) if kind_of(data) else 1


@dataclass(frozen=True, slots=True)
class _Look:
    """The records of a pair on either side, and the cells of those that only one side has."""

    sides: tuple[Counter[Hashable], Counter[Hashable]]
    cells: list[tuple[Hashable, Any]]
    """Column and value, of the records that only one side has, and of the parameters."""

    @property
    def size(self) -> int:
        return sum(side.total() for side in self.sides)

    def cases(self) -> Iterator[Hashable]:
        """Yield the corner cases that the pair shows as a whole."""
        sizes = [side.total() for side in self.sides]
        if 0 in sizes:
            yield "empty"
        if 1 in sizes:
            yield "one record"
        if any(side.total() > 1 == len(side) for side in self.sides):
            yield "all equal"
        d1, d2 = self.sides
        if (d1 - d2).keys() & d2.keys() or (d2 - d1).keys() & d1.keys():
            yield "once more"


def order_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the same pairs, corner cases first.

    As wholes: empty, one record, all records equal, a record once more. Of the record in which D
    and D' differ, column by column in turn: NaN, infinities, the smallest and the largest number,
    and each of a few values, such as categories; of parameters alike. Each case is shown by the
    smallest pair.
    """
    looks = [_look(pair) for pair in pairs]
    by_size = sorted(range(len(pairs)), key=lambda at: looks[at].size)
    cases: dict[Hashable, int] = {}
    values: dict[Hashable, dict[Hashable, int]] = {}
    numbers: dict[Hashable, list[tuple[float, int]]] = {}
    for at in by_size:
        for case in looks[at].cases():
            cases.setdefault(case, at)
        for column, value in looks[at].cells:
            values.setdefault(column, {}).setdefault(key(value), at)
            if is_real(value):
                numbers.setdefault(column, []).append((value, at))
    columns = [_column_cases(values[column], numbers.get(column, [])) for column in values]
    chosen = dict.fromkeys([*cases.values(), *in_turn(columns)])
    corners = dict.fromkeys(list(chosen)[:MAX_CORNERS])
    return [pairs[at] for at in corners | dict.fromkeys(range(len(pairs)))]


def _column_cases(values: Mapping[Hashable, int], numbers: list[tuple[float, int]]) -> list[int]:
    """Return the pairs that show the cases of one column."""
    special = [key(math.nan), key(math.inf), key(-math.inf)]
    shown = [values[case] for case in special if case in values]
    finite = [(value, at) for value, at in numbers if abs(value) < math.inf]
    if finite:
        shown += [min(finite)[1], max(finite)[1]]
    return shown + (list(values.values()) if len(values) <= MAX_VALUES else [])


def _look(pair: Pair) -> _Look:
    sides = []
    known: dict[Hashable, Any] = {}
    for data in (pair.d1, pair.d2):
        records = records_of(data) if kind_of(data) else [data]
        keys = list(map(key, records))
        known.update(zip(keys, records, strict=True))
        sides.append(Counter(keys))
    d1, d2 = sides
    different = (d1 - d2) + (d2 - d1)
    cells = [cell for record in different for cell in fields_of(known[record]).items()]
    return _Look((d1, d2), [*cells, *((("with", name), v) for name, v in pair.params.items())])
