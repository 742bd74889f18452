"""Pairs of neighbouring inputs from Hypothesis strategies: corner cases first, then ever more.

A pair is drawn and made smaller as a whole, with its parameters. Smaller pairs are made of fewer
and simpler choices; those that D and D' have in common change in both, so that D and D' stay
neighbours.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import chain, count, islice
from numbers import Real
from typing import Any, cast

from pytest_dp.basics import clocks
from pytest_dp.basics.errors import ClaimError
from pytest_dp.data import key, kind_of, records_of
from pytest_dp.data.conversion import length
from pytest_dp.data.fields import fields_of
from pytest_dp.data.ordering import accept_until, distinct, in_turn
from pytest_dp.data.relations import Pair
from pytest_dp.pairs.drawing import MAX_DRAWS, MAX_POOL_RECORDS, choices_work
from pytest_dp.pairs.edits import Choices, DrawnValue
from pytest_dp.pairs.pair_strategies import NO_PAIR, Pairs, Parts, next_draw

POOL = 200
"""Datasets that are drawn from a strategy to choose from. Fewer may miss what leaks."""
MAX_REJECTED = 1.25
"""Draws for each dataset that is needed. With fewer, pools are small."""
MAX_CORNERS = 18
"""Corner cases that come first. More share the samples; fewer may miss the one that leaks."""
MIN_FIRST = 24
"""Pairs that are drawn before bets, at least. Fewer may miss the one that leaks."""
MAX_VALUES = 16
"""Values of a field that are all tried. More share the samples; fewer may miss a leak."""

Remake = Callable[[Sequence[Parts]], Sequence[DrawnValue | None]]
"""Makes a value of each of several sequences of choices; None where the strategy rejects it."""

MAX_WIDTH = 12
"""Choices that are left out at once, beside halves and so on. With fewer, wide records stay."""
CANDIDATES = 12
"""Candidates that are made at a time. More make some in vain, once a smaller one is found."""


class Generated:
    """Pairs (D, D') that a strategy yields: `pairs` for every method, and further ones on request.

    Corner cases come first, and equal seeds give equal pairs. `written` is how errors name the
    strategy: ``"inputs=lists(integers())"``. The numbers and texts among `constants` are drawn
    where the strategy allows them. Raises ClaimError if the strategy raises, or yields no pair.
    """

    name = "the strategy"

    def __init__(
        self, pairs: Pairs, seed: int, written: str, constants: Sequence[Any] = ()
    ) -> None:
        self._strategy, self._written = pairs, written
        self._has_choices = choices_work()
        self._drawn: dict[frozenset[bytes], DrawnValue] = {}
        self._rejected = 0
        self._more = self._draw_new_pairs(pairs.draw_values(seed, constants))
        pool: list[Pair] = []
        records, enough = 0, max(POOL, 8 * len(pairs.listed))
        for pair in self._more:
            pool.append(pair)
            records += _size(pair.d1) + _size(pair.d2)
            is_dear = records > MAX_POOL_RECORDS
            is_late = is_dear or len(pool) + self._rejected > MAX_REJECTED * enough
            if len(pool) >= (MIN_FIRST if is_late else enough):
                break
        if not pool:
            under = f" under {pairs.relation}" if pairs.relation else ""
            raise ClaimError(f"{written}: {NO_PAIR.format(under)}")
        pool = order_pairs(pool, any_params=bool(pairs.listed))
        up_front = max(MIN_FIRST, len(pairs.listed))
        self.pairs, self._waiting = tuple(pool[:up_front]), pool[up_front:]

    def _draw_new_pairs(self, drawn: Iterator[DrawnValue | None]) -> Iterator[Pair]:
        """Yield pairs that were not drawn before, until `MAX_DRAWS` draws in a row give none.

        Raises ClaimError if the strategy raises.
        """

        def accept(one: DrawnValue | None) -> Pair | None:
            if one is not None and self._remember_new(one):
                return cast("Pair", one.value)
            self._rejected += 1
            return None

        endless = (next_draw(drawn, self._written) for _ in count())
        return accept_until(endless, accept, MAX_DRAWS)

    def _remember_new(self, drawn: DrawnValue) -> bool:
        """Record the draw of a pair, and return whether the pair is new with D unlike D'."""
        known = drawn.value.content
        if known in self._drawn or len(known) < 2:
            return False
        self._drawn[known] = drawn
        return True

    @property
    def pool(self) -> tuple[Pair, ...]:
        """Pairs that were drawn, but are not in `pairs` and were not proposed yet."""
        return tuple(self._waiting)

    def propose(self) -> Iterable[Pair]:
        """Yield further pairs: those of `pool`, which leave it, then newly drawn ones.

        Raises ClaimError if the strategy raises.
        """
        while self._waiting:
            yield self._waiting.pop(0)
        yield from self._more

    def remember_pair(self, drawn: DrawnValue) -> Pair:
        """Record the draw of a pair that a search found, unless one is known; return the pair."""
        self._drawn.setdefault(drawn.value.content, drawn)
        return cast("Pair", drawn.value)

    def find_draw(self, pair: Pair) -> DrawnValue | None:
        """Return the draw of a pair; None if its choices are unknown or cannot be remade."""
        drawn = self._drawn.get(pair.content)
        return drawn if drawn is not None and drawn.choices and self._has_choices else None

    def redraw(self, pair: Pair, changes: Mapping[int, Any]) -> Pair | None:
        """Make a pair anew with some choices of its draw replaced, and remember the new draw.

        `changes` maps positions, counted over all choices of the draw, to new choices. A choice
        that the strategy does not allow becomes the simplest one. None if the draw is unknown, if
        the strategy rejects the choices, or if the new D and D' are equal or not neighbours.
        """
        drawn = self.find_draw(pair)
        if drawn is None:
            return None
        parts, at = [], 0
        for part in drawn.choices:
            parts.append(tuple(changes.get(at + n, choice) for n, choice in enumerate(part)))
            at += len(part)
        (made,) = self._strategy.remake_values([tuple(parts)])
        return None if made is None or len(made.value.content) < 2 else self.remember_pair(made)

    def shrink(
        self, pair: Pair, still_fails: Callable[[Pair], bool], seconds: float = 10.0
    ) -> Pair:
        """Return the smallest pair found for which `still_fails` is True, or `pair` itself.

        Fewer and simpler choices are tried for about `seconds`; the last call may overrun.
        `still_fails` has to return the same for equal pairs. A pair whose draw is unknown is
        returned unchanged.
        """
        drawn = self.find_draw(pair)
        if drawn is None:
            return pair
        backwards = key(drawn.value.d1) != key(pair.d1)
        known: dict[Hashable, bool] = {}

        def fails(smaller: Pair) -> bool:
            what = key((smaller.d1, smaller.d2, dict(smaller.params)))
            if what not in known:
                turned = smaller.reverse() if backwards else smaller
                known[what] = len(smaller.content) == 2 and still_fails(turned)
            return known[what]

        smallest = simplify(self._strategy.remake_values, drawn, fails, seconds)
        self._remember_new(smallest)
        shrunken = cast("Pair", smallest.value)
        return shrunken.reverse() if backwards else shrunken


def _size(data: Any) -> int:
    """Return the number of records of a dataset; 1 for another input."""
    return length(data) if kind_of(data) else 1


def order_pairs(pairs: Sequence[Pair], *, any_params: bool = False) -> list[Pair]:
    """Return all pairs, each once, with up to `MAX_CORNERS` corner cases first.

    Cases are: an empty dataset, one record, all records equal; and in records that only D or D'
    has, by column: NaN, infinities, both extremes, and each of a few values. Parameters count as
    columns. The smallest pair shows a case. With `any_params`, each D and D' is a case, and all
    come first.
    """
    cases: dict[Hashable, Pair] = {}
    columns: dict[Hashable, dict[Hashable, tuple[Any, Pair]]] = {}
    for pair in sorted(pairs, key=lambda pair: _size(pair.d1) + _size(pair.d2)):
        if any_params:
            cases.setdefault(replace(pair, params={}).content, pair)
        d1, d2 = (_count_records(data) for data in (pair.d1, pair.d2))
        for side in (d1, d2):
            if side.total() < 2 or len(side) == 1:
                cases.setdefault((min(side.total(), 2), len(side)), pair)
        apart = (d1 - d2) + (d2 - d1)
        records = [data for data in (*_records(pair.d1), *_records(pair.d2)) if key(data) in apart]
        cells = [cell for record in records for cell in fields_of(record).items()]
        for column, value in [*cells, *((("with", name), v) for name, v in pair.params.items())]:
            columns.setdefault(column, {}).setdefault(key(value), (value, pair))
    of_columns = in_turn(_column_cases(list(column.values())) for column in columns.values())
    corners = distinct(chain(cases.values(), of_columns), by=id)
    first = list(islice(corners, max(MAX_CORNERS, len(cases))))
    return list(distinct([*first, *pairs], by=id))


def _records(data: Any) -> Sequence[Any]:
    """Return the records of a dataset; of another input, itself."""
    return records_of(data) if kind_of(data) else [data]


def _count_records(data: Any) -> Counter[Hashable]:
    """Return how often an input holds each record, by content."""
    return Counter(map(key, _records(data)))


def _column_cases(values: Sequence[tuple[Any, Pair]]) -> list[Pair]:
    """Return pairs of extreme and non-finite values of a column, and of all if these are few.

    `values` are its values, each with a pair.
    """
    numbers: list[tuple[Any, Pair]] = [each for each in values if isinstance(each[0], Real)]
    odd = [pair for value, pair in numbers if not abs(value) < math.inf]
    finite = [each for each in numbers if abs(each[0]) < math.inf]
    ends = [pick(finite, key=lambda each: each[0])[1] for pick in (min, max) if finite]
    return [*odd, *ends, *(pair for _, pair in values if len(values) <= MAX_VALUES)]


def simplify(
    remake: Remake, drawn: DrawnValue, still_fails: Callable[[Any], bool], seconds: float
) -> DrawnValue:
    """Return the simplest value found for which `still_fails` is True, or `drawn` itself.

    `remake` makes values of simpler choices, for about `seconds`. `still_fails` has to return the
    same for equal values.
    """
    until, best, seen = clocks.seconds() + seconds, drawn, set[str]()
    while True:
        parts = (
            one
            for one in _simpler_parts(best.choices)
            if _simplicity_key(one) < _simplicity_key(best.choices)
        )
        found = None
        while (
            found is None
            and clocks.seconds() < until
            and (batch := list(islice(parts, CANDIDATES)))
        ):
            for made in remake(batch):
                if made is None or repr(made.choices) in seen or clocks.seconds() >= until:
                    continue
                seen.add(repr(made.choices))
                if still_fails(made.value):
                    found = made
                    break
        if found is None:
            return best
        best = found


def _simplicity_key(parts: Parts) -> tuple[int, list[tuple[int, float, bool]]]:
    """Return a sort key of choices: fewer come first, then whole, small and positive ones."""
    sizes = [_choice_size(choice) for part in parts for choice in part]
    return sum(map(len, parts)), sizes


def _choice_size(choice: Any) -> tuple[int, float, bool]:
    """Return a sort key of a choice: small whole numbers first, infinities and NaN last."""
    if isinstance(choice, str | bytes):
        return 0, len(choice) + sum(1 for letter in choice if letter not in ("0", 48)) / 1e6, False
    if not math.isfinite(choice):
        return 2, 0.0, choice < 0
    return int(choice != int(choice)), abs(choice), choice < 0


def _simpler_parts(parts: Parts) -> Iterator[Parts]:
    """Yield the parts without some choices, then with simpler ones.

    A choice that D and D' have in common is left out, or changed, in both.
    """
    twins = [[_match_choices(part, other) for other in parts] for part in parts]
    for part, its_twins in zip(parts, twins, strict=True):
        for width in _widths(len(part)):
            for start in range(len(part) - width, -1, -1):
                yield _edit_parts(parts, its_twins, range(start, start + width), ())
    if len(parts) > 1:
        yield from _shorten_sides(*parts)
    for part, its_twins in zip(parts, twins, strict=True):
        for at, choice in enumerate(part):
            for new in _simpler_choices(choice):
                yield _edit_parts(parts, its_twins, range(at, at + 1), (new,))


def _shorten_sides(d1: Choices, d2: Choices, *params: Choices) -> Iterator[Parts]:
    """Yield D and D' both without their last choices, then one whole and the other without some."""
    for width in _widths(min(len(d1), len(d2))):
        yield (d1[:-width], d2[:-width], *params)
    for part in (d1, d2):
        for width in _widths(len(part)):
            for start in range(len(part) - width + 1):
                less = (*part[:start], *part[start + width :])
                yield (part, less, *params)
                yield (less, part, *params)


def _widths(length: int) -> list[int]:
    """Return how many of `length` choices to leave out at once, falling: halves, ..., 12 to 1."""
    widths = {length >> power for power in range(1, length.bit_length())}
    return sorted(widths | set(range(1, min(MAX_WIDTH, length) + 1)), reverse=True)


def _match_choices(part: Choices, other: Choices) -> dict[int, int]:
    """Return the positions in `other` of choices that it shares with `part`, by those in `part`."""
    if part is other:
        return {at: at for at in range(len(part))}
    keys = [[f"{type(choice).__name__} {choice!r}" for choice in one] for one in (part, other)]
    blocks = SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_matching_blocks()
    return {a + at: b + at for a, b, size in blocks for at in range(size)}


def _edit_parts(
    parts: Parts, twins: Sequence[dict[int, int]], places: range, new: Sequence[Any]
) -> Parts:
    """Return the parts with `new` choices at the `places` of one part, and at their twins.

    `twins` has, for each part, the position there of a choice of the edited part. A part without
    all of these choices, in a row, stays as before.
    """
    edited = []
    for part, twin in zip(parts, twins, strict=True):
        own = [twin[at] for at in places if at in twin]
        if len(own) < len(places) or own[-1] - own[0] != len(own) - 1:
            edited.append(part)
        else:
            edited.append((*part[: own[0]], *new, *part[own[-1] + 1 :]))
    return tuple(edited)


def _simpler_choices(choice: Any) -> list[Any]:
    """Return a few choices that may be simpler, the simplest first; empty for False."""
    if isinstance(choice, bool):
        return [False] if choice else []
    if isinstance(choice, str | bytes):
        shorter = [choice[: len(choice) >> power] for power in range(1, len(choice).bit_length())]
        zero: Any = "0" if isinstance(choice, str) else b"0"
        plain = [choice[:at] + zero + choice[at + 1 :] for at in range(min(len(choice), MAX_WIDTH))]
        return [choice[:0], *shorter, choice[:-1], *plain]
    if not math.isfinite(choice):
        return [0.0, 1.0, abs(choice)]
    whole = int(choice)
    sign = 1 if whole > 0 else -1
    nearer = [whole - sign * (abs(whole) >> power) for power in range(64) if abs(whole) >> power]
    kind = type(choice)
    return [kind(0), kind(abs(whole)), *map(kind, nearer), *([float(whole)] * (kind is float))]
