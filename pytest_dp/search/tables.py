"""Datasets as a space to search: records are dropped, repeated, changed, and made of constants."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pytest_dp.datasets import is_real, key, rebuilt, records_of
from pytest_dp.datasets.relations import Relation
from pytest_dp.errors import ClaimError
from pytest_dp.search.constants import Constant
from pytest_dp.search.spaces import Found, Way, beside, one_of, told

COPIES = (2, 3, 10)
MAX_LENGTH = 300
"""Records of a dataset that is made up."""
MAX_CORNERS = 8
"""Records of which corners are made."""

Fields = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Column:
    """What the examples hold at one place of their records.

    Numbers stay within what they span: whoever writes ages from 0 to 100 may well rely on it.

    Attributes
    ----------
    values : list
        Distinct ones; numbers in order.
    kind : {"whole", "number", "text", ""}
        What else may stand there; nothing may where it is empty, as in a column of flags.
    keys : frozenset
        By which the values are told apart.
    """

    values: list[Any]
    kind: str
    keys: frozenset[Hashable] = field(repr=False)

    def beside(self, constant: Constant) -> list[Any]:
        """What may stand here of a constant and its surroundings."""
        if isinstance(constant.value, str):
            return beside(constant.value, whole=False) if self.kind == "text" else []
        if self.kind not in ("whole", "number"):
            return []
        made = beside(constant.value, whole=self.kind == "whole")
        return [value for value in made if self.values[0] <= value <= self.values[-1]]

    def holds(self, value: Any) -> bool:
        """Whether the examples hold this here."""
        return key(value) in self.keys

    def mutated(self, value: Any, rng: np.random.Generator) -> Any:
        """Another value."""
        if self.kind not in ("whole", "number") or not is_real(value) or rng.random() < 0.3:
            return one_of(self.values, rng)
        low, high = float(self.values[0]), float(self.values[-1])
        match int(rng.integers(3)):
            case 0:
                made = rng.uniform(low, high)
            case 1:
                made = one_of((low, high), rng)
            case _:
                made = value + one_of((1, -1), rng)
        made = float(np.clip(made, low, high))
        return int(made) if self.kind == "whole" else made


class Tables:
    """Datasets of the type of the first example, made of records like those of all examples.

    Parameters
    ----------
    examples : sequence of dataset
        With a record in at least one of them.
    relation : Relation
    """

    def __init__(self, examples: Sequence[Any], relation: Relation) -> None:
        self._examples = sorted(map(records_of, examples), key=len)
        self._like = max(examples, key=lambda one: len(records_of(one)))
        distinct: dict[Hashable, Any] = {}
        for records in self._examples:
            for record in records:
                distinct.setdefault(key(record), record)
        self.records, self._known = list(distinct.values()), frozenset(distinct)
        self._rows = all(isinstance(record, tuple) for record in self.records)
        self._columns = [
            _column(values) for values in zip(*map(self._fields, self.records), strict=False)
        ]
        self._relation = relation

    def inside(self, data: Any) -> bool:
        """Whether all records hold what those of the examples hold."""
        return all(key(one) in self._known or self._holds(one) for one in records_of(data))

    def _holds(self, record: Any) -> bool:
        fields = self._fields(record)
        return len(fields) == len(self._columns) and all(
            column.holds(one) for column, one in zip(self._columns, fields, strict=True)
        )

    def corners(self, values: Sequence[Constant]) -> Iterator[Found]:
        """No record, one, many of the same, all with the same value at one place, and extremes."""
        yield from self._alike()
        for constant in values:
            for at, column in enumerate(self._columns):
                for value in column.beside(constant)[:1]:
                    base, said = self._examples[-1], told(value, constant)
                    yield from self._made([*base, self._changed(base[-1], at, value)], *said)
                    yield from self._made([self._changed(one, at, value) for one in base], *said)

    def _alike(self) -> Iterator[Found]:
        base, some = self._examples[-1], self.records[:MAX_CORNERS]
        for times in (0, 1, *COPIES):
            for record in some if times else some[:1]:
                text = "repeated" if times > 1 else "all of it" if times else "left out"
                yield from self._made([record] * times, f"one record {text}")
        for times in COPIES:
            yield from self._made([*base, *some[:1] * times], "records that repeat")
        if self._rows:
            for at in range(len(self._columns)):
                for record in some[:2]:
                    value = record[at]
                    yield from self._made(
                        [_with(one, at, value) for one in base], "records that share a value"
                    )
        for column in range(len(self._columns)):
            values = self._columns[column].values
            for end in (values[0], values[-1]):
                same = [self._changed(one, column, end) for one in base]
                yield from self._made(same, "records with the same value")

    def placed(self, constant: Constant) -> Iterator[Found]:
        """Datasets with a constant in a record, in all, as their sum, or as their length."""
        for at, column in enumerate(self._columns):
            for value in column.beside(constant):
                yield from self._holding(at, value, told(value, constant))
        value = constant.value
        if isinstance(value, int) and 0 < value <= MAX_LENGTH:
            for length in (value, value + 1):
                many = [one_by_one(self._examples[-1], i) for i in range(length)]
                yield from self._made(many, f"{length} records: {told(value, constant)[0]}")

    def _holding(self, at: int, value: Any, said: tuple[str, Any]) -> Iterator[Found]:
        base = self._examples[-1]
        record = self._changed(base[-1], at, value)
        yield from self._made([*base, record], *said)
        yield from self._made([record], *said)
        yield from self._made([*base[:-1], record], *said)
        yield from self._made([self._changed(one, at, value) for one in base], *said)
        for times in COPIES[1:]:
            yield from self._made([*base, *[record] * times], *said)
        others = [self._fields(one)[at] for one in base[:-1]]
        if is_real(value) and self._columns[at].kind and all(map(is_real, others)):
            rest = value - sum(others)
            column = self._columns[at]
            if column.values[0] <= rest <= column.values[-1]:
                records = [*base[:-1], self._changed(base[-1], at, rest)]
                yield from self._made(records, f"a dataset with the sum {value!r}")

    def combined(self, constants: Sequence[Constant], rng: np.random.Generator) -> Found:
        """An example with several constants in it."""
        found = Found(rebuilt(self._like, self._examples[-1]))
        for _ in range(int(rng.integers(1, 4))):
            found = self.mutated(found.data, constants, rng)
        return found

    def combed(self, data: Any, constant: Constant, rng: np.random.Generator) -> Iterator[Found]:
        """The dataset with a constant in one of its records, in all, and in another one."""
        records = records_of(data)
        for place, column in enumerate(self._columns if records else ()):
            for value in column.beside(constant)[::2]:
                at, said = int(rng.integers(len(records))), told(value, constant)
                changed = [self._changed(one, place, value) for one in records]
                yield from self._made([*records[:at], changed[at], *records[at + 1 :]], *said)
                yield from self._made(changed, *said)
                yield from self._made([*records, changed[at]], *said)

    def mutated(self, data: Any, constants: Sequence[Constant], rng: np.random.Generator) -> Found:
        """The dataset with something changed."""
        records = records_of(data)
        said: tuple[Any, ...] = ()
        match int(rng.integers(8)) if records else 0:
            case 0:
                records.append(one_of(self.records, rng))
            case 1:
                del records[int(rng.integers(len(records)))]
            case 2 if len(records) < MAX_LENGTH:
                records += [one_of(records, rng)] * one_of((1, *COPIES), rng)
            case 3:
                records = [record for record in records if rng.random() < 0.5]
            case 4:
                records, said = self._with_constant(records, constants, rng)
            case 5:
                at, place = int(rng.integers(len(records))), int(rng.integers(len(self._columns)))
                value = self._fields(one_of(records, rng))[place]
                records[at] = self._changed(records[at], place, value)
            case _:
                at, place = int(rng.integers(len(records))), int(rng.integers(len(self._columns)))
                value = self._columns[place].mutated(self._fields(records[at])[place], rng)
                records[at] = self._changed(records[at], place, value)
        return next(self._made(records, *said), Found(data))

    def way(self, start: Any, end: Any) -> Way | None:
        """From one dataset to another: records are removed and added, or replaced, one by one."""
        before, after = records_of(start), records_of(end)
        if self._relation.name == "replace_one" and len(before) == len(after):
            at = [i for i, one in enumerate(before) if key(one) != key(after[i])]
            steps = [before, *([*after[: i + 1], *before[i + 1 :]] for i in at)]
        elif self._relation.name == "add_remove_one":
            steps = _one_by_one(before, after)
        else:
            return None
        return _Datasets(self._like, steps)

    def _with_constant(
        self, records: list[Any], constants: Sequence[Constant], rng: np.random.Generator
    ) -> tuple[list[Any], tuple[Any, ...]]:
        place, constant = int(rng.integers(len(self._columns))), one_of(constants, rng)
        values = self._columns[place].beside(constant)
        if not values:
            return records, ()
        value = values[0] if rng.random() < 0.5 else one_of(values, rng)
        at = int(rng.integers(len(records)))
        changed = self._changed(records[at], place, value)
        if rng.random() < 0.5:
            return [*records, changed], told(value, constant)
        return [*records[:at], changed, *records[at + 1 :]], told(value, constant)

    def _made(self, records: Sequence[Any], origin: str = "", value: Any = None) -> Iterator[Found]:
        """A dataset of these records, if there can be one.

        Where records are replaced, and never added, their number may be relied on, too.
        """
        lengths = [len(example) for example in self._examples]
        fixed = self._relation.name.startswith("replace")
        if fixed and not lengths[0] <= len(records) <= lengths[-1]:
            return
        try:
            data = rebuilt(self._like, records)
        except ClaimError:  # such as 6.5 in a column of whole numbers
            return
        yield Found(data, origin, value) if origin else Found(data)

    def _fields(self, record: Any) -> Fields:
        return record if isinstance(record, tuple) else (record,)

    def _changed(self, record: Any, at: int, value: Any) -> Any:
        return _with(record, at, value) if isinstance(record, tuple) else value


class _Datasets:
    """Datasets of records, each a neighbour of the next."""

    def __init__(self, like: Any, steps: Sequence[Sequence[Any]]) -> None:
        self._like, self._steps = like, steps

    def __len__(self) -> int:
        return len(self._steps) - 1

    def __getitem__(self, step: int) -> Any:
        return rebuilt(self._like, self._steps[step])


def one_by_one(records: Sequence[Any], number: int) -> Any:
    """One of the records in turn."""
    return records[number % len(records)]


def _one_by_one(before: list[Any], after: list[Any]) -> list[list[Any]]:
    """First those removed that are too many, then those added that are missing."""
    left = [key(record) for record in after]
    kept, gone = [], []
    for record in before:
        if key(record) in left:
            left.remove(key(record))
            kept.append(record)
        else:
            gone.append(record)
    new: list[Any] = []
    for record in reversed(after):
        if key(record) in left:
            left.remove(key(record))
            new.insert(0, record)
    removing = [[*gone[i:], *kept] for i in range(len(gone) + 1)]
    return [*removing, *([*kept, *new[: i + 1]] for i in range(len(new)))]


def _column(values: Sequence[Any]) -> _Column:
    numbers = sorted({value for value in values if is_real(value)})
    different = {key(value): value for value in values}
    distinct, keys = list(different.values()), frozenset(different)
    if not numbers or len(numbers) < len(distinct) or any(isinstance(v, bool) for v in values):
        text = all(isinstance(value, str) for value in distinct)
        return _Column(distinct, "text" if text else "", keys)
    if {0, 1}.issuperset(numbers):  # flags
        return _Column(numbers, "", keys)
    whole = all(isinstance(value, int) for value in numbers)
    return _Column(numbers, "whole" if whole else "number", keys)


def _with(record: Fields, at: int, value: Any) -> Fields:
    return (*record[:at], value, *record[at + 1 :])
