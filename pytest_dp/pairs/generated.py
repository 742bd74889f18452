"""Pairs of neighbouring inputs from Hypothesis strategies: corner cases first, then ever more.

A pair is drawn as a whole, with the parameters that are drawn beside it, so that it can be drawn
again, and made smaller, as one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, islice
from numbers import Real
from typing import Any, cast

from pytest_dp.basics.errors import ClaimError
from pytest_dp.data import key, kind_of, records_of
from pytest_dp.data.conversion import length
from pytest_dp.data.fields import fields_of
from pytest_dp.data.ordering import accept_until, distinct, in_turn
from pytest_dp.data.relations import Pair
from pytest_dp.pairs.drawing import MAX_DRAWS, MAX_POOL_RECORDS, choices_work
from pytest_dp.pairs.edits import DrawnValue
from pytest_dp.pairs.pair_strategies import NO_PAIR, Pairs, drawing
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
            under = f" under {pairs.relation}" if pairs.relation else ""
            raise ClaimError(f"{said}: {NO_PAIR.format(under)}")
        pool = order_pairs(pool, any_params=bool(pairs.listed))
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


def _size(data: Any) -> int:
    return length(data) if kind_of(data) else 1


def order_pairs(pairs: Sequence[Pair], *, any_params: bool = False) -> list[Pair]:
    """Return the same pairs, corner cases first, each shown by the smallest pair.

    With `any_params`, each D and D' is a case, whatever the parameters. Others are, as wholes:
    empty, one record, all records equal, a record once more. Of the record in which D and D'
    differ, column by column in turn: NaN, infinities, the smallest and the largest number, and each
    of a few values, such as categories; of parameters alike.
    """
    smallest_first = sorted(pairs, key=lambda pair: _size(pair.d1) + _size(pair.d2))
    cases: dict[Hashable, Pair] = {}
    columns: dict[Hashable, dict[Hashable, tuple[Any, Pair]]] = {}
    for pair in smallest_first:
        if any_params:
            cases.setdefault(replace(pair, params={}).content, pair)
        sides = [_records_by_key(data) for data in (pair.d1, pair.d2)]
        d1, d2 = (Counter({content: len(its) for content, its in side.items()}) for side in sides)
        for case in _cases(d1, d2):
            cases.setdefault(case, pair)
        records = (((sides[0] | sides[1])[content])[0] for content in (d1 - d2) + (d2 - d1))
        cells = [cell for record in records for cell in fields_of(record).items()]
        for column, value in [*cells, *((("with", name), v) for name, v in pair.params.items())]:
            columns.setdefault(column, {}).setdefault(key(value), (value, pair))
    corners = in_turn(_column_cases(list(column.values())) for column in columns.values())
    first = [*cases.values(), *islice(corners, max(MAX_CORNERS - len(cases), 0))]
    return list(distinct([*first, *smallest_first], by=id))


def _records_by_key(data: Any) -> dict[Hashable, list[Any]]:
    by_key: dict[Hashable, list[Any]] = {}
    for record in records_of(data) if kind_of(data) else [data]:
        by_key.setdefault(key(record), []).append(record)
    return by_key


def _cases(d1: Counter[Hashable], d2: Counter[Hashable]) -> Iterator[str]:
    """Yield the corner cases that a pair shows as a whole, by how often each record occurs."""
    sizes = {d1.total(), d2.total()}
    if 0 in sizes:
        yield "empty"
    if 1 in sizes:
        yield "one record"
    if any(side.total() > 1 == len(side) for side in (d1, d2)):
        yield "all equal"
    if (d1 - d2).keys() & d2.keys() or (d2 - d1).keys() & d1.keys():
        yield "once more"


def _column_cases(values: Sequence[tuple[Any, Pair]]) -> list[Pair]:
    """Return the pairs that show the cases of one column, of its values with a pair each."""
    numbers = [(value, pair) for value, pair in values if isinstance(value, Real)]
    odd = [pair for value, pair in numbers if not abs(value) < math.inf]
    finite = [each for each in numbers if abs(each[0]) < math.inf]
    ends = [pick(finite, key=lambda each: each[0])[1] for pick in (min, max) if finite]
    return [*odd, *ends, *(pair for _, pair in values if len(values) <= MAX_VALUES)]
