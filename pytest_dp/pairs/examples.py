"""Datasets inside a claim by its examples, and outside of it.

Inside are datasets of the examples' records, none more often than in an example, in an order of the
examples; what holds within each example (`regularities`) has to hold, and a unit has all rows that
it has in some example, or none. A mechanism need not take other datasets.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from pytest_dp.basics.reprs import plural
from pytest_dp.data import describe, describe_record, is_real, key, kind_of, records_of
from pytest_dp.data.conversion import length
from pytest_dp.data.equality import equality_key
from pytest_dp.data.fields import columns_of, fields_of
from pytest_dp.data.record_relations import OfRecords
from pytest_dp.data.relations import Pair
from pytest_dp.data.types import type_of
from pytest_dp.pairs import regularities

MAX_DEPTH = 5
"""Levels of records in which values are looked for. With fewer, inner ones stay."""


class Bounds:
    """A test of which inputs are inside a claim; this base class accepts all inputs."""

    is_sample = False
    """Whether the claim means more inputs than these: code that only others reach counts as code
    that never ran."""

    def beyond(self, pair: Pair) -> str:  # noqa: ARG002
        """Return in words what of a pair is outside of the claim; "" for a pair inside."""
        return ""

    def holds(self, data: Any) -> bool:  # noqa: ARG002
        """Return whether an input is inside the claim: here always."""
        return True

    def to_add(self, pair: Pair) -> tuple[Any, ...]:  # noqa: ARG002
        """Return inputs that, as further examples, would take a pair inside: here none."""
        return ()


EVERYTHING = Bounds()


class Patterns(Bounds):
    """Bounds that hold certain pairs only, such as the patterns of queries."""

    is_sample = True

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._pairs = {frozenset((key(pair.d1), key(pair.d2))) for pair in pairs}
        self._inputs = frozenset().union(*self._pairs)
        answers = [answer for pair in pairs for d in (pair.d1, pair.d2) for answer in d]
        self._have = f"{min(answers)} to {max(answers)}"

    def beyond(self, pair: Pair) -> str:
        """Return the answers of D in words if the pair is not one of these; else ""."""
        if frozenset((key(pair.d1), key(pair.d2))) in self._pairs:
            return ""
        return f"the answers {describe(list(pair.d1), 40)} (the patterns have {self._have})"

    def holds(self, data: Any) -> bool:
        """Return whether an input is D or D' of one of these pairs."""
        return key(data) in self._inputs


class _Entry(NamedTuple):
    """A record of a dataset: itself, its content, and the values of its fields."""

    record: Any
    content: Hashable
    row: dict[Hashable, Any]
    contents: regularities.Row
    is_null: bool


class Examples(Bounds):
    """Bounds by the examples of a claim, at least one of which has a record.

    The datasets that were `made` of the examples count as examples too: a record may then occur
    once more, and in any order.
    """

    def __init__(
        self, examples: Sequence[Any], relation: OfRecords, made: Sequence[Any] = ()
    ) -> None:
        self._examples, self._relation, self._strict = tuple(examples), relation, not made
        self._like = max(examples, key=length)
        data = type_of(self._like)
        self._names = data and data.columns(self._like)
        self._null = relation.null_key(self._like)
        self._known: dict[Hashable, _Entry] = {}
        self._of_object: dict[int, _Entry] = {}
        self._given, self._datasets = (*examples, *made), list[list[_Entry]]()
        for example in self._given:
            self._datasets.append(entries := self._read(records_of(example)))
            self._known |= {entry.content: entry for entry in entries}
            self._of_object |= {id(entry.record): entry for entry in entries}  # as of lists
        self._keys = [[entry.content for entry in entries] for entries in self._datasets]
        self._most: Counter[Hashable] = Counter()
        for keys in self._keys:
            self._most |= Counter(keys)
        self._lengths = list(map(len, self._keys))
        self._last: tuple[Any, str] = (None, "")

    def beyond(self, pair: Pair) -> str:
        """Return in words what of D, or else of D', no example has; "" for a pair inside.

        For a pair of whole large examples, return its own `beyond`.
        """
        if pair.is_large:
            return pair.beyond
        if self._last[0] is not pair.d1:  # which many pairs in a row share
            self._last = pair.d1, self._describe_fault(pair.d1)
        return self._last[1] or self._describe_fault(pair.d2)

    def holds(self, data: Any) -> bool:
        """Return whether a dataset is inside the claim."""
        return not self._describe_fault(data)

    def to_add(self, pair: Pair) -> tuple[Any, ...]:
        """Return D', D or both: the fewest that take a pair inside as examples; () if none do."""
        if pair.is_large:  # which has no rows but those of the examples
            return ()
        for more in ((pair.d2,), (pair.d1,), (pair.d1, pair.d2)):
            if not Examples([*self._examples, *more], self._relation).beyond(pair):
                return more
        return ()

    def describe_mixture(self, pair: Pair) -> str:
        """Return why a pair is outside, if D' mixes examples or repeats an id; else ""."""
        entries = self._read(records_of(pair.d2))
        repeated = self._find_repeats(entries) if self._relation.unit is None else ()
        is_unlike = self._describe_mixed(entries) or any(self._is_id(key) for key, _ in repeated)
        return self.beyond(pair) if is_unlike else ""

    def _describe_fault(self, data: Any) -> str:
        """Return in words why an input is outside of the claim; "" if it is inside."""
        if not kind_of(data):
            return f"{describe(data, 40)}, which is not a dataset"
        entries = self._read(records_of(data))
        for entry in entries:
            if entry.content not in self._known and not entry.is_null:
                return self._describe_unknown(entry)
        mixed = self._describe_mixed(entries) or self._describe_partial_unit(data)
        return mixed or self._describe_wrong_number(entries) or self._describe_wrong_order(entries)

    # Records

    def _read(self, records: Sequence[Any]) -> list[_Entry]:
        """Return the entry of each record."""
        return [self._entry(record) for record in records]

    def _entry(self, record: Any) -> _Entry:
        """Return the entry of a record: that of an equal record in the examples, if any."""
        same = self._of_object.get(id(record))
        if same is not None and same.record is record:
            return same
        content = key(record)
        if content in self._known:
            return self._known[content]
        row = self._values_by_name(record)
        contents = {name: key(value) for name, value in row.items()}
        return _Entry(record, content, row, contents, equality_key(record) == self._null)

    @cached_property
    def _columns(self) -> dict[Hashable, dict[Hashable, Any]]:
        """All values of the examples by the name, or the place, of a field, and by content."""
        return columns_of(entry.row for entry in self._known.values())

    def _values_by_name(self, record: Any) -> dict[Hashable, Any]:
        """Return the values of a record by field or place; of a frame's row by column."""
        named = _nested_values(record)
        names = self._names
        return dict(zip(names, named.values(), strict=False)) if names else named

    def _describe_unknown(self, entry: _Entry) -> str:
        """Return words for a record that no example has: for a new value, else for all of it."""
        for name, value in entry.row.items():
            known = self._columns.get(name, {})
            if known and entry.contents[name] not in known:
                have = _describe_values(list(known.values()))
                return f"{_name_value(name, value)} (they have {have})"
        return f"the record {describe_record(entry.record, 60)} (none of them has it)"

    # What holds within each example

    @cached_property
    def _uniform(self) -> frozenset[Hashable]:
        """Columns that have one value in each example."""
        return regularities.find_uniform_columns(list(map(_contents, self._datasets)))

    @cached_property
    def _unique(self) -> list[regularities.Key]:
        """Keys of one or two columns that never repeat in an example."""
        return regularities.find_key_columns(list(map(_contents, self._datasets)))

    @cached_property
    def _orders(self) -> list[regularities.Order]:
        """Orders in which all examples are sorted."""
        return list(regularities.find_orders(list(map(_rows, self._datasets))))

    def _describe_mixed(self, entries: Sequence[_Entry]) -> str:
        """Return words for a second value in a column that has one value per example; else ""."""
        if not self._uniform:
            return ""
        found = regularities.find_mixed_column(self._uniform, _contents(entries))
        if found is None:
            return ""
        (name, at), rows = found, _rows(entries)
        if name == regularities.FIELDS:
            other, first = ("fields " + describe(list(row), 40) for row in (rows[at], rows[0]))
        else:
            other, first = _name_value(name, rows[at].get(name)), describe(rows[0].get(name), 40)
        return f"{other} beside {first} (each of them has one of these)"

    def _find_repeats(self, entries: Sequence[_Entry]) -> Iterator[tuple[regularities.Key, str]]:
        """Yield each key that repeats here and in no example, with the repeated values in words."""
        contents = _contents(entries) if self._unique else []
        for columns in self._unique:
            at = regularities.find_repetition(columns, contents)
            if at is not None:
                row = _rows(entries)[at]
                yield columns, " with ".join(_name_value(name, row[name]) for name in columns)

    # Whole units

    @cached_property
    def _units(self) -> dict[Hashable, list[Counter[Hashable]]]:
        """The rows that each unit has in an example, by their contents."""
        units: dict[Hashable, list[Counter[Hashable]]] = {}
        for data in self._given:
            for unit, (rows, _) in self._relation.rows_of_units(data, key).items():
                units.setdefault(unit, []).append(rows)
        return units

    def _describe_partial_unit(self, data: Any) -> str:
        """Return in words which unit has other rows than in any example; "" if none has."""
        if self._relation.unit is None:
            return ""
        for unit, (rows, name) in self._relation.rows_of_units(data, key).items():
            known = self._units.get(unit, [])
            if known and rows not in known:
                sizes = sorted({of.total() for of in known})
                if rows.total() in sizes:
                    return f"other rows of {name} than in any of them"
                have = " or ".join(f"{size:,}" for size in sizes)
                return f"{plural(rows.total(), 'row')} of {name} (they have {have})"
        return ""

    # How often, and how many

    def _describe_wrong_number(self, entries: Sequence[_Entry]) -> str:
        """Return in words which record or unique value comes too often; "" if all fits.

        If records are only replaced, and without units, the number of records counts as well.
        """
        by_content = {entry.content: entry for entry in reversed(entries)}
        for content, times in Counter(entry.content for entry in entries).items():
            most, entry = self._most[content] + (not self._strict), by_content[content]
            if times > most and not entry.is_null:
                shown, few = describe_record(entry.record, 40), _times_in_words(most)
                return f"{_times_in_words(times)} the record {shown} (they have it {few} at most)"
        for _, values in self._find_repeats(entries) if self._strict else ():
            return f"twice {values} (they have it once)"
        fixed = self._relation.name.startswith("replace") and self._relation.unit is None
        if fixed and not min(self._lengths) <= len(entries) <= max(self._lengths):
            low, high = min(self._lengths), max(self._lengths)
            span = f"{low:,} to {high:,}" if low < high else f"{high:,}"
            return f"{len(entries):,} records (they have {span})"
        return ""

    def _is_id(self, columns: regularities.Key) -> bool:
        """Return whether a single key column looks like an id: by its name, or as the first column.

        The first counts if it holds only texts, or more than two consecutive whole numbers.
        """
        name, *others = columns
        if others or _is_named_id(name) or name != next(iter(self._columns)):
            return not others and _is_named_id(name)
        values = list(self._columns[name].values())
        if all(isinstance(value, str) for value in values):
            return True
        whole = all(isinstance(value, int) for value in values)
        return whole and len(values) > 2 and max(values) - min(values) == len(values) - 1

    # In which order

    def _describe_wrong_order(self, entries: Sequence[_Entry]) -> str:
        """Return in words two records that no example has in this order; "" if all fits."""
        data = type_of(self._like)
        if not self._strict or len(entries) < 2 or (data is not None and data.unique):
            return ""
        keys = [entry.content for entry in entries]
        places = self._find_out_of_order(keys) or self._find_unsorted(entries)
        if places is None:
            return ""
        before, after = (describe_record(entries[at].record, 30) for at in places)
        return f"{before} before {after} (they have another order)"

    def _find_out_of_order(self, keys: list[Hashable]) -> tuple[int, int] | None:
        """Return places of two records that examples have only in the opposite order; else None."""
        if keys in self._keys:
            return None
        for spans in self._spans:
            places = [at for at, content in enumerate(keys) if content in spans]
            for at, after in pairwise(places):
                a, b = keys[at], keys[after]
                if a != b and not any(
                    a in others and b in others and others[a][0] < others[b][1]
                    for others in self._spans
                ):
                    return at, after
        return None

    @cached_property
    def _spans(self) -> list[dict[Hashable, tuple[int, int]]]:
        """The first and the last place of each record in each example."""
        spans = []
        for keys in self._keys:
            last = {content: at for at, content in enumerate(keys)}
            first = {keys[at]: at for at in range(len(keys) - 1, -1, -1)}
            spans.append({content: (first[content], last[content]) for content in first})
        return spans

    def _find_unsorted(self, entries: Sequence[_Entry]) -> tuple[int, int] | None:
        """Return the positions of two records that break an order of all examples; else None."""
        if not self._orders:
            return None
        places = [at for at, entry in enumerate(entries) if not entry.is_null]
        rows = _rows(entries)
        for order in self._orders:
            at = regularities.find_unsorted(order, rows)
            if at is not None:
                return places[at - 1], places[at]
        return None


def _rows(entries: Sequence[_Entry]) -> list[dict[Hashable, Any]]:
    """Return the values of records that are not the null record."""
    return [entry.row for entry in entries if not entry.is_null]


def _contents(entries: Sequence[_Entry]) -> list[regularities.Row]:
    """Return the contents of records that are not the null record, by field."""
    return [entry.contents for entry in entries if not entry.is_null]


def _is_named_id(name: Hashable) -> bool:
    """Return whether a name ends like ``user_id``, ``uid`` or ``userId``, but not ``paid``."""
    return re.search(r"(^|[_. -])(uu?)?id$|[a-z]I[Dd]$|^U*ID$", str(name)) is not None


def _nested_values(record: Any, depth: int = MAX_DEPTH) -> dict[Hashable, Any]:
    """Return the values of a record by name; values of dicts in it by ``"user.id"``."""
    named: dict[Hashable, Any] = {}
    for name, value in fields_of(record).items():
        if name is not None and isinstance(value, dict) and depth:
            inner = _nested_values(value, depth - 1)
            named |= {f"{name}.{at}": entry for at, entry in inner.items()}
        else:
            named[name] = value
    return named


def _name_value(name: Hashable, value: Any) -> str:
    """Return a value of a record by its name: ``age = 0``."""
    prefix = "" if name is None else f"{f'record[{name}]' if isinstance(name, int) else name} = "
    return prefix + describe(value, 40)


def _describe_values(values: Sequence[Any]) -> str:
    """Return the values of a column in words: ``18 to 90``, ``'a', 'b' and 5 others``."""
    if len(values) > 1 and all(is_real(v) and not isinstance(v, bool) for v in values):
        return f"{min(values)!r} to {max(values)!r}"
    shown = ", ".join(describe(value, 20) for value in values[:3])
    return f"{shown} and {plural(len(values) - 3, 'other')}" if len(values) > 3 else shown


def _times_in_words(number: int) -> str:
    """Return a number of times in words: once, twice, 3 times."""
    return {1: "once", 2: "twice"}.get(number, f"{number} times")
