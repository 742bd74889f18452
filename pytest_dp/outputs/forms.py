"""What is observed of outputs besides their leaves: types, and the order of keys.

A list or a tuple, an int or a float, float32 or float64, which key comes first: all of that can
tell two inputs apart. It is spoken about only where it varies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pytest_dp.arrays import Floats
from pytest_dp.outputs.columns import NUMBER, UNKNOWN
from pytest_dp.outputs.containers import SEEN, Aspect
from pytest_dp.outputs.readings import of_texts, read, written_reading
from pytest_dp.outputs.table import Table

MOST_ASPECTS, MOST_KEYS = 64, 16
MOST_PLACES, MOST_READ, MOST_LOOKED_AT = 4, 3, 1_000
"""Mappings of which keys are read, how many keys of each, and from how many outputs."""


@dataclass(frozen=True, slots=True)
class OfKind:
    """Whether the output is a container of a type."""

    kind: str

    def values(self, table: Table) -> Floats:
        """1 for each output of which it holds, 0 for others."""
        found = np.array([structure.kind == self.kind for structure in table.structures], float)
        return found[table.structure]

    def __str__(self) -> str:
        return f"type(output) is {self.kind}"


@dataclass(frozen=True, slots=True)
class OfType:
    """Whether the number at a place is of a type; nothing is said of anything but a number."""

    place: str
    kind: str

    def values(self, table: Table) -> Floats:
        """1 for each output of which it holds, 0 for others, NaN without a number."""
        types, codes = table.typed(self.place), table.leaf(self.place)[1]
        wanted = np.array([name == self.kind for name in table.types.names], float)
        return np.where(codes == NUMBER, wanted[types], np.nan)

    def __str__(self) -> str:
        return f"type({self.place}) is {self.kind}"


@dataclass(frozen=True, slots=True)
class Has:
    """Whether the output has an aspect (see `containers.Aspect`)."""

    aspect: Aspect

    def values(self, table: Table) -> Floats:
        """1 for each output of which it holds, 0 for others."""
        found = [float(self.aspect in _aspects(form)) for form in table.forms.names]
        return np.array(found)[table.forms.which]

    def __str__(self) -> str:
        place, what, value = self.aspect
        return SEEN[what].format(place, ", ".join(value) if isinstance(value, tuple) else value)


@dataclass(frozen=True, slots=True)
class OrderOf:
    """Which key of a mapping a key is, from 0, in the order in which it gives them."""

    place: str
    key: str

    def values(self, table: Table) -> Floats:
        """The number for each output; NaN if there is no such key."""
        found = np.full(len(table.forms.names), np.nan)
        for i, form in enumerate(table.forms.names):
            for place, what, keys in _aspects(form):
                if place == self.place and what == "order" and self.key in keys:
                    found[i] = keys.index(self.key)
        return found[table.forms.which]

    def __str__(self) -> str:
        return f"list({self.place}).index({self.key})"


@dataclass(frozen=True, slots=True)
class KeyReading:
    """What is read out of one of the keys of a mapping, which may all differ every time."""

    place: str
    which: int
    what: str
    argument: str | int

    def values(self, table: Table) -> Floats:
        """The number for each output; NaN if it has no such key."""
        found = np.full(len(table.forms.names), np.nan)
        for i, keys in enumerate(_keys(table, self.place)):
            if self.which < len(keys):
                found[i] = read(keys[self.which], self.what, self.argument)
        return found[table.forms.which]

    def __str__(self) -> str:
        return written_reading(f"repr(list({self.place})[{self.which}])", self.what, self.argument)


def _keys(table: Table, place: str) -> list[tuple[str, ...]]:
    """For each form, the keys of the mapping at a place; none if there is none."""
    return [
        next((keys for at, what, keys in _aspects(form) if (at, what) == (place, "order")), ())
        for form in table.forms.names
    ]


Observed = OfKind | OfType | Has | OrderOf | KeyReading


def observed(table: Table) -> Iterator[Observed]:
    """What varies of the forms of these outputs and of the types of their numbers."""
    kinds = {structure.kind for structure in table.structures}
    if len(kinds) > 1:
        yield from (OfKind(kind) for kind in sorted(kinds - {"scalar"}))
    if len({*table.types.names} - {UNKNOWN}) > 1:
        for place in table.places:
            types = table.typed(place)[table.leaf(place)[1] == NUMBER]
            present = np.flatnonzero(np.bincount(types, minlength=1))
            if len(present) > 1:
                yield from (OfType(place, str(table.types.names[i])) for i in present.tolist())
    if len(table.forms.names) > 1:
        yield from _varying(table)


def _varying(table: Table) -> Iterator[Observed]:
    weights = np.bincount(table.forms.which, minlength=len(table.forms.names)).tolist()
    counts: Counter[Aspect] = Counter()
    for form, weight in zip(table.forms.names, weights, strict=True):
        counts.update(dict.fromkeys(_aspects(form), weight))
    some = [(n, aspect) for aspect, n in counts.items() if 0 < n < len(table)]
    yield from (
        Has(a) for _, a in sorted(some, key=lambda pair: (-pair[0], repr(pair[1])))[:MOST_ASPECTS]
    )
    keys = {(place, key): 0 for _, (place, what, of) in some if what == "order" for key in of}
    yield from (OrderOf(*pair) for pair in sorted(keys)[:MOST_KEYS])
    yield from _read_keys(table, sorted({a[0] for _, a in some if a[1] == "order"}))


def _read_keys(table: Table, places: list[str]) -> Iterator[KeyReading]:
    """What to read out of keys, if there are too many different ones to speak of each."""
    for place in places[:MOST_PLACES]:
        known = _keys(table, place)
        if len(set(known)) <= MOST_ASPECTS:
            continue
        for which in range(MOST_READ):
            held = [keys[which] for keys in known[:MOST_LOOKED_AT] if which < len(keys)]
            if len(set(held)) > 1:
                yield from (KeyReading(place, which, *one) for one in of_texts(held))


def _aspects(form: object) -> tuple[Aspect, ...]:
    return form or ()  # type: ignore[return-value]
