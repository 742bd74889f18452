"""The space of datasets: records are dropped, repeated, changed, and made of constants."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import numpy as np

from pytest_dp.datasets import is_real, key, rebuilt, records_of
from pytest_dp.datasets.fields import columns_of, fields_of, with_known
from pytest_dp.datasets.relations import Relation
from pytest_dp.errors import ClaimError
from pytest_dp.limits import COPIES, LARGEST_NUMBER, LONG_DATASET, SEVERAL
from pytest_dp.search.constants import Constant
from pytest_dp.search.spaces import Candidate, Space, Walk, any_of, beside, choice, described


@dataclass(frozen=True, slots=True)
class _Column:
    """What the examples hold at one place of their records."""

    values: list[Any]
    """Distinct values; numbers in order."""
    kind: str
    """``"whole"``, ``"number"`` or ``"text"``: what else may stand there. Nothing where it is
    empty, as in a column of flags."""

    def beside(self, constant: Constant) -> list[Any]:
        """A constant and values beside it, as far as they may stand here.

        Those of the code may be where its behaviour changes, wherever that is; ordinary ones stay
        within what the examples span, as whoever writes ages from 0 to 100 may well rely on it.
        """
        if isinstance(constant.value, str):
            return beside(constant.value, whole=False) if self.kind == "text" else []
        if self.kind not in ("whole", "number"):
            return []
        numbers = beside(constant.value, whole=self.kind == "whole")
        low, high = self.values[0], self.values[-1]
        return [number for number in numbers if not constant.ordinary or low <= number <= high]

    def far(self) -> list[Any]:
        """Numbers far above and below those of the examples, which show a clip that is missing.

        The next power of ten but one, which a reader takes for what it is.
        """
        if self.kind not in ("whole", "number"):
            return []
        largest = max(abs(self.values[0]), abs(self.values[-1]), 1)
        far = 10 * 10 ** math.ceil(math.log10(largest))
        far = far if self.kind == "whole" else float(far)
        return [far, -far] if far <= LARGEST_NUMBER else []

    def mutated(self, value: Any, rng: np.random.Generator) -> Any:
        if self.kind not in ("whole", "number") or not is_real(value) or rng.random() < 0.3:
            return choice(self.values, rng)
        low, high = float(self.values[0]), float(self.values[-1])
        match int(rng.integers(3)):
            case 0:
                mutated = rng.uniform(low, high)
            case 1:
                mutated = choice((low, high), rng)
            case _:
                mutated = value + choice((1, -1), rng)
        mutated = float(np.clip(mutated, low, high))
        return int(mutated) if self.kind == "whole" else mutated


class Tables(Space):
    """Datasets of the type of the first example, made of records like those of all examples.

    At least one of the examples has a record.
    """

    def __init__(self, examples: Sequence[Any], relation: Relation) -> None:
        self._examples = sorted(map(records_of, examples), key=len)
        self._like = max(examples, key=lambda example: len(records_of(example)))
        distinct: dict[Hashable, Any] = {}
        for records in self._examples:
            for record in records:
                distinct.setdefault(key(record), record)
        self.records = list(distinct.values())
        cells = columns_of(self.records)
        self._columns = {name: _column(list(values.values())) for name, values in cells.items()}
        self._names = list(self._columns)
        self._relation = relation

    def corners(self, values: Sequence[Constant]) -> Iterator[Candidate]:
        """No record, one, many of the same, all with the same value at one place, and extremes."""
        yield from self._far_everywhere()
        yield from self._alike()
        for at, column in self._columns.items():
            for value in column.far():
                yield from self._holding(
                    at, value, (f"{value!r}, far outside of the examples", value)
                )
        for constant in values:
            for at, column in self._columns.items():
                for value in column.beside(constant)[:1]:
                    base, origin = self._examples[-1], described(value, constant)
                    yield from self._made([*base, with_known(base[-1], at, value)], *origin)
                    yield from self._made(self._all_changed(base, at, value), *origin)

    def _far_everywhere(self) -> Iterator[Candidate]:
        """A record with a number far outside in each column: of wide tables, few are looked at."""
        far = {at: column.far() for at, column in self._columns.items() if column.far()}
        base = self._examples[-1]
        for end in (0, 1) if len(far) > 1 else ():
            record = base[-1]
            for at, values in far.items():
                record = with_known(record, at, values[end])
            origin = "numbers far outside of the examples"
            yield from self._made([*base, record], origin)
            yield from self._made([*base[:-1], record], origin)

    def _alike(self) -> Iterator[Candidate]:
        """Corner cases without constants: datasets of equal records, or of records with a value."""
        base, records = self._examples[-1], list(self.records[:SEVERAL])
        for times in (0, 1, *COPIES):
            for record in records if times else records[:1]:
                text = "repeated" if times > 1 else "all of it" if times else "left out"
                yield from self._made([record] * times, f"one record {text}")
        for times in COPIES:
            yield from self._made([*base, *records[:1] * times], "records that repeat")
        if None not in self._columns:
            for at in self._names:
                for record in records[:2]:
                    same = self._all_changed(base, at, fields_of(record).get(at))
                    yield from self._made(same, "records that share a value")
        for at, column in self._columns.items():
            for end in (column.values[0], column.values[-1]):
                same = self._all_changed(base, at, end)
                yield from self._made(same, "records with the same value")

    def placed(self, constant: Constant) -> Iterator[Candidate]:
        """Datasets with a constant in a record, in all, as their sum, or as their length."""
        for at, column in self._columns.items():
            for value in column.beside(constant):
                yield from self._holding(at, value, described(value, constant))
        value = constant.value
        if isinstance(value, int) and 0 < value <= LONG_DATASET:
            for length in (value, value + 1):
                records = list(islice(cycle(self._examples[-1]), length))
                yield from self._made(records, f"{length} records: {described(value, constant)[0]}")

    def _holding(self, at: Hashable, value: Any, origin: tuple[str, Any]) -> Iterator[Candidate]:
        """Datasets with a value in one column of a record, of several, of all; or as their sum."""
        base = self._examples[-1]
        record = with_known(base[-1], at, value)
        yield from self._made([*base, record], *origin)
        yield from self._made([record], *origin)
        yield from self._made([*base[:-1], record], *origin)
        yield from self._made(self._all_changed(base, at, value), *origin)
        for times in COPIES[1:]:
            yield from self._made([*base, *[record] * times], *origin)
        others: list[Any] = [fields_of(record).get(at) for record in base[:-1]]
        if is_real(value) and self._columns[at].kind and all(map(is_real, others)):
            rest, values = value - sum(others), self._columns[at].values
            if values[0] <= rest <= values[-1]:  # which is no constant
                records = [*base[:-1], with_known(base[-1], at, rest)]
                yield from self._made(records, f"a dataset with the sum {value!r}")

    def combined(self, constants: Sequence[Constant], rng: np.random.Generator) -> Candidate:
        candidate = Candidate(rebuilt(self._like, self._examples[-1]))
        for _ in range(int(rng.integers(1, 4))):
            candidate = self.mutated(candidate.data, constants, rng)
        return candidate

    def inserted(
        self, data: Any, constant: Constant, rng: np.random.Generator
    ) -> Iterator[Candidate]:
        """The dataset with a constant in one of its records, in all, and in another one."""
        records = records_of(data)
        for place, column in self._columns.items() if records else ():
            for value in column.beside(constant)[::2]:
                at, origin = int(rng.integers(len(records))), described(value, constant)
                changed = self._all_changed(records, place, value)
                yield from self._made([*records[:at], changed[at], *records[at + 1 :]], *origin)
                yield from self._made(changed, *origin)
                yield from self._made([*records, changed[at]], *origin)

    def mutated(
        self, data: Any, constants: Sequence[Constant], rng: np.random.Generator
    ) -> Candidate:
        records = records_of(data)
        origin: tuple[Any, ...] = ()
        match int(rng.integers(8)) if records else 0:
            case 0:
                records.append(choice(self.records, rng))
            case 1:
                del records[int(rng.integers(len(records)))]
            case 2 if len(records) < LONG_DATASET:
                records += [choice(records, rng)] * choice((1, *COPIES), rng)
            case 3:
                records = [record for record in records if rng.random() < 0.5]
            case 4:
                records, origin = self._with_constant(records, constants, rng)
            case 5:
                at, place = int(rng.integers(len(records))), choice(self._names, rng)
                value = fields_of(choice(records, rng)).get(place)
                records[at] = with_known(records[at], place, value)
            case _:
                at, place = int(rng.integers(len(records))), choice(self._names, rng)
                value = self._columns[place].mutated(fields_of(records[at]).get(place), rng)
                records[at] = with_known(records[at], place, value)
        return next(self._made(records, *origin), Candidate(data))

    def walk(self, start: Any, end: Any) -> Walk | None:
        """From one dataset to another: records are removed and added, or replaced, one by one."""
        before, after = records_of(start), records_of(end)
        if self._relation.name == "replace_one" and len(before) == len(after):
            changed = [i for i, record in enumerate(before) if key(record) != key(after[i])]
            steps = [before, *([*after[: i + 1], *before[i + 1 :]] for i in changed)]
        elif self._relation.name == "add_remove_one":
            steps = _removing_and_adding(before, after)
        else:
            return None
        return Walk(len(steps), lambda step: rebuilt(self._like, steps[step]))

    def _with_constant(
        self, records: list[Any], constants: Sequence[Constant], rng: np.random.Generator
    ) -> tuple[list[Any], tuple[Any, ...]]:
        place, constant = choice(self._names, rng), choice(constants, rng)
        value = any_of(self._columns[place].beside(constant), rng)
        if value is None:
            return records, ()
        at = int(rng.integers(len(records)))
        changed = with_known(records[at], place, value)
        if rng.random() < 0.5:
            return [*records, changed], described(value, constant)
        return [*records[:at], changed, *records[at + 1 :]], described(value, constant)

    def _made(
        self, records: Sequence[Any], origin: str = "", value: Any = None
    ) -> Iterator[Candidate]:
        """A candidate with these records, if there can be such a dataset.

        Where records are only replaced, the mechanism may rely on their number.
        """
        lengths = [len(example) for example in self._examples]
        fixed = self._relation.name.startswith("replace")
        if fixed and not lengths[0] <= len(records) <= lengths[-1]:
            return
        try:
            data = rebuilt(self._like, records)
        except ClaimError:  # such as 6.5 in a column of whole numbers
            return
        yield Candidate(data, origin, value) if origin else Candidate(data)

    def _all_changed(self, records: Sequence[Any], at: Hashable, value: Any) -> list[Any]:
        return [with_known(record, at, value) for record in records]


def _removing_and_adding(before: list[Any], after: list[Any]) -> list[list[Any]]:
    """Datasets in a row: records are removed that are too many, then missing ones are added."""
    missing = Counter(map(key, after))
    shared: list[Any] = []
    removed: list[Any] = []
    added: list[Any] = []
    for record in before:
        is_shared = missing[key(record)] > 0
        missing[key(record)] -= is_shared
        (shared if is_shared else removed).append(record)
    for record in reversed(after):
        if missing[key(record)] > 0:
            missing[key(record)] -= 1
            added.insert(0, record)
    removing = [[*removed[i:], *shared] for i in range(len(removed) + 1)]
    return [*removing, *([*shared, *added[: i + 1]] for i in range(len(added)))]


def _column(values: list[Any]) -> _Column:
    if not all(is_real(value) and not isinstance(value, bool) for value in values):
        return _Column(values, "text" if all(isinstance(value, str) for value in values) else "")
    numbers = sorted(set(values))
    if {0, 1}.issuperset(numbers):  # flags, which hardly any code clips
        return _Column(numbers, "")
    whole = all(isinstance(value, int) for value in numbers)
    return _Column(numbers, "whole" if whole else "number")
