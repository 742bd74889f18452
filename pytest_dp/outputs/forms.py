"""What is observed of outputs besides their leaves: types, and the order of keys.

A list or a tuple, an int or a float, float32 or float64, which key comes first: all of that can
tell two inputs apart. It is spoken about only where it varies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from pytest_dp.arrays import Floats
from pytest_dp.limits import FEW, MANY, SEVERAL, THOUSAND
from pytest_dp.outputs.columns import NUMBER, UNKNOWN
from pytest_dp.outputs.containers import ASPECT_TEXTS, Aspect
from pytest_dp.outputs.table import Table
from pytest_dp.outputs.text_features import READERS, readings_of_texts

Form = tuple[Aspect, ...]


@dataclass(frozen=True, slots=True)
class OfKind:
    """Whether the output is a container of a type."""

    kind: str

    def values(self, table: Table) -> Floats:
        """1 for each output of which it holds, 0 for others."""
        holds = np.array([structure.kind == self.kind for structure in table.structures], float)
        return holds[table.structure]

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
        return _by_form(table, lambda form: self.aspect in form)

    def __str__(self) -> str:
        place, what, value = self.aspect
        return ASPECT_TEXTS[what].format(
            place, ", ".join(value) if isinstance(value, tuple) else value
        )


@dataclass(frozen=True, slots=True)
class OrderOf:
    """Which key of a mapping a key is, from 0, in the order in which it gives them."""

    place: str
    key: str

    def values(self, table: Table) -> Floats:
        """The number for each output; NaN if there is no such key."""

        def index(form: Form) -> float:
            keys = _keys(form, self.place)
            return keys.index(self.key) if self.key in keys else np.nan

        return _by_form(table, index)

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

        def reading(form: Form) -> float:
            keys = _keys(form, self.place)[self.which :]
            return READERS[self.what][0](keys[0], self.argument) if keys else np.nan

        return _by_form(table, reading)

    def __str__(self) -> str:
        key = f"repr(list({self.place})[{self.which}])"
        return READERS[self.what][1].format(key, self.argument)


def _forms(table: Table) -> list[Form]:
    """The different forms of outputs; one without aspects where it is not known."""
    return [form or () for form in table.forms.names]  # type: ignore[misc]


def _by_form(table: Table, value: Callable[[Form], float]) -> Floats:
    """For each output, a number that depends on its form."""
    return np.array(list(map(value, _forms(table))), float)[table.forms.which]


def _keys(form: Form, place: str) -> tuple[str, ...]:
    """The keys of the mapping at a place, in their order; none if there is none."""
    return next((keys for at, what, keys in form if (at, what) == (place, "order")), ())


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
    for form, weight in zip(_forms(table), weights, strict=True):
        counts.update(dict.fromkeys(form, weight))
    varied = [aspect for aspect, n in counts.items() if 0 < n < len(table)]
    varied.sort(key=lambda aspect: (-counts[aspect], repr(aspect)))
    yield from map(Has, varied[:MANY])
    orders = [(place, keys) for place, what, keys in varied if what == "order"]
    pairs = {(place, key) for place, keys in orders for key in keys}
    yield from (OrderOf(*pair) for pair in sorted(pairs)[: 2 * SEVERAL])
    yield from _read_keys(table, sorted({place for place, _ in orders}))


def _read_keys(table: Table, places: list[str]) -> Iterator[KeyReading]:
    """What to read out of keys, if there are too many orders for a feature of each."""
    for place in places[: SEVERAL // 2]:
        known = [_keys(form, place) for form in _forms(table)]
        if len(set(known)) <= MANY:
            continue
        for which in range(FEW):
            texts = [keys[which] for keys in known[:THOUSAND] if which < len(keys)]
            if len(set(texts)) > 1:
                yield from (
                    KeyReading(place, which, *wanted) for wanted in readings_of_texts(texts)
                )
