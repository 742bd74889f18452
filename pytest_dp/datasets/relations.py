"""Relations: which inputs differ in one unit of privacy, and what the neighbours of one are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

from pytest_dp.datasets.describing import describe
from pytest_dp.datasets.making import in_words, kind_of, length, no_dataset, rebuilt, records_of
from pytest_dp.datasets.pool import Pool, Positions, diagonally, in_turn
from pytest_dp.datasets.records import is_real, key
from pytest_dp.datasets.types import type_of
from pytest_dp.errors import ClaimError

_ROUNDING = 1e-9  # 4.4 - 3.4 is a little more than 1


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbouring inputs.

    Attributes
    ----------
    d1, d2 : object
        D and D', as the mechanism takes them.
    difference : str
        How D' differs from D, such as ``"one record removed"``; empty if no relation was stated.
    """

    d1: Any
    d2: Any
    difference: str = ""

    def reversed(self) -> Pair:
        """The same pair with D and D' exchanged."""
        opposite = {"removed": "added", "added": "removed"}
        words = self.difference.split(" ")
        return Pair(self.d2, self.d1, " ".join(opposite.get(word, word) for word in words))


@dataclass(frozen=True, slots=True)
class Relation(ABC):
    """When two inputs are neighbours; a value, equal to another one that says the same.

    Attributes
    ----------
    name : str
        As in ``neighbors=``.
    required, example : str
        What it asks of a pair, in words, and a pair that fits.
    """

    name: ClassVar[str]
    required: ClassVar[str]
    example: ClassVar[str]

    def __str__(self) -> str:
        return f"neighbors={self.name!r}"

    @property
    def label(self) -> str:
        """What tells it from others in the id of a test."""
        return self.name

    @abstractmethod
    def fault(self, d1: Any, d2: Any) -> str:
        """What keeps two inputs from being neighbours; empty if they are."""

    @abstractmethod
    def difference(self, d1: Any, d2: Any) -> str:
        """How D' differs from D, for neighbours."""

    @abstractmethod
    def pairs(self, dataset: Any, records: Sequence[Any] = ()) -> Iterator[Pair]:
        """The dataset with each of its neighbours, one after the other, each at most once.

        Parameters
        ----------
        dataset : object
            An input as the relation takes them.
        records : sequence
            What may be added to it, or take the place of its records, in the form of `records_of`.

        Yields
        ------
        Pair
            Those of small and extreme records first. Each has the same D, a copy of `dataset`.

        Raises
        ------
        ClaimError
            If the dataset is none, or cannot hold a record.
        """


class OfRecords(Relation):
    """Datasets that differ in records, whatever their order."""

    __slots__ = ()
    needs: ClassVar[str]
    """What examples have to hold for a pair to follow from them."""

    def fault(self, d1: Any, d2: Any) -> str:
        for name, value in (("D", d1), ("D'", d2)):
            if not kind_of(value):
                return f"{name} is {no_dataset(value).replace(', is', ', which is')}"
        if kind_of(d1) != kind_of(d2):
            return _two_kinds(d1, d2)
        records = [Counter(map(key, records_of(dataset))) for dataset in (d1, d2)]
        only1, only2 = (records[0] - records[1]).total(), (records[1] - records[0]).total()
        if not only1 and not only2:
            return "they hold the same records"
        if self._apart(only1, only2):
            return ""
        return f"{_count(only1)} only in D and {_count(only2)} only in D'"

    @abstractmethod
    def _apart(self, only1: int, only2: int) -> bool:
        """Whether so many records that only D holds, and only D', make neighbours."""

    def pairs(self, dataset: Any, records: Sequence[Any] = ()) -> Iterator[Pair]:
        own = records_of(dataset)
        pool = Pool([dataset])
        known = set(map(pool.add, records))
        new = [at for at in pool.distinct if at in known]
        positions = tuple(range(len(own)))
        d1 = pool.dataset(positions)
        seen = {pool.content(positions)}
        for moved, words in self.moves(pool, positions, new):
            content = pool.content(moved)
            if content not in seen:
                seen.add(content)
                yield Pair(d1, pool.dataset(moved), words)

    @abstractmethod
    def moves(
        self, pool: Pool, own: Positions, new: Sequence[int]
    ) -> Iterator[tuple[Positions, str]]:
        """The positions of each neighbour, and how it differs; some may repeat.

        Parameters
        ----------
        pool : Pool
        own : tuple of int
            Those of the dataset.
        new : sequence of int
            Distinct records that may come into it, in the order in which they are tried.
        """


class AddRemoveOne(OfRecords):
    """One record more, or one less."""

    __slots__ = ()
    name = "add_remove_one"
    required = "D' is D with exactly one record removed or added, in any order"
    example = "([1, 0], [1])"
    needs = "a record"

    def _apart(self, only1: int, only2: int) -> bool:
        return (only1, only2) in {(0, 1), (1, 0)}

    def difference(self, d1: Any, d2: Any) -> str:
        return f"one record {'removed' if length(d2) < length(d1) else 'added'}"

    def moves(
        self, pool: Pool, own: Positions, new: Sequence[int]
    ) -> Iterator[tuple[Positions, str]]:
        indices = chain(*_rounds(pool, own))
        removed = ((own[:at] + own[at + 1 :], "one record removed") for at in indices)
        added = (((*own, at), "one record added") for at in _addable(pool, own, new))
        return in_turn((removed, added))


class ReplaceOne(OfRecords):
    """One record is another."""

    __slots__ = ()
    name = "replace_one"
    required = "D and D' have as many records and exactly one of them differs, in any order"
    example = "([1, 0], [1, 1])"
    needs = "two different records"

    def _apart(self, only1: int, only2: int) -> bool:
        return (only1, only2) == (1, 1)

    def difference(self, d1: Any, d2: Any) -> str:  # noqa: ARG002
        return "one record replaced"

    def moves(
        self, pool: Pool, own: Positions, new: Sequence[int]
    ) -> Iterator[tuple[Positions, str]]:
        addable = _addable(pool, own, new)
        for indices in _rounds(pool, own):
            for index, at in diagonally(indices, addable):
                if pool.same[own[index]] != at:
                    yield (*own[:index], at, *own[index + 1 :]), "one record replaced"


def _rounds(pool: Pool, own: Positions) -> list[list[int]]:
    """The indices of records, extreme ones ahead; first one of each, then those that repeat it.

    What repetitions add matters to few mechanisms.
    """
    rank = {at: order for order, at in enumerate(pool.distinct)}
    times: Counter[int] = Counter()
    rounds: dict[int, list[int]] = {}
    for index, at in enumerate(own):
        times[pool.same[at]] += 1
        rounds.setdefault(times[pool.same[at]], []).append(index)
    for indices in rounds.values():
        indices.sort(key=lambda index: rank[pool.same[own[index]]])
    return list(rounds.values())


def _addable(pool: Pool, own: Positions, new: Sequence[int]) -> Sequence[int]:
    """What may come in: a set cannot hold a record twice."""
    held = {pool.same[at] for at in own} if pool.unique else ()
    return [at for at in new if at not in held]


class _OfQueries(Relation):
    """Vectors of the answers of counting queries."""

    __slots__ = ()

    def fault(self, d1: Any, d2: Any) -> str:
        for name, value in (("D", d1), ("D'", d2)):
            data = type_of(value)
            if data is None or not data.vector:
                return f"{name} is of type {type(value).__name__}, which is no vector"
            wrong = [answer for answer in records_of(value) if not is_real(answer)]
            if wrong:
                return f"{name} holds {describe(wrong[0])}, which is no number"
        if kind_of(d1) != kind_of(d2):
            return _two_kinds(d1, d2)
        if len(d1) != len(d2):
            return f"their lengths are {len(d1)} and {len(d2)}"
        moved = _moves(d1, d2)
        if not any(moved):
            return "no answer differs"
        at = max(range(len(moved)), key=moved.__getitem__)
        if moved[at] <= 1 + _ROUNDING:
            return self._too_many(moved)
        return self._too_many(moved) or f"the answer at index {at} differs by {moved[at]:g}"

    def _too_many(self, moved: list[float]) -> str:  # noqa: ARG002
        """What is wrong with the number of answers that differ."""
        return ""

    def pairs(self, dataset: Any, records: Sequence[Any] = ()) -> Iterator[Pair]:  # noqa: ARG002
        answers = records_of(dataset)
        d1 = rebuilt(dataset, answers)
        seen = {key(d1)}
        for steps in self._steps(len(answers)):
            moved = [answer + step for answer, step in zip(answers, steps, strict=True)]
            try:
                d2 = rebuilt(dataset, moved)
            except ClaimError:  # such as -1 in an array of unsigned integers
                continue
            if key(d2) not in seen and not self.fault(d1, d2):  # inf + 1 is inf
                seen.add(key(d2))
                yield Pair(d1, d2, self.difference(d1, d2))

    def _steps(self, n: int) -> Iterator[list[int]]:
        """By what the answers of a neighbour differ, for each one."""
        for at in range(n):
            for step in (1, -1):
                yield [step * (index == at) for index in range(n)]


class OneQuery(_OfQueries):
    """One answer moves."""

    __slots__ = ()
    name = "one_query"
    required = (
        "D and D' are vectors of numbers, of one length, and exactly one answer differs, by at "
        "most 1"
    )
    example = "([1, 1], [2, 1])"

    def _too_many(self, moved: list[float]) -> str:
        n = sum(map(bool, moved))
        return "" if n == 1 else f"{n} answers differ"

    def difference(self, d1: Any, d2: Any) -> str:
        return f"one answer moved by {max(_moves(d1, d2)):g}"


class AllQueries(_OfQueries):
    """Any of the answers move."""

    __slots__ = ()
    name = "all_queries"
    required = (
        "D and D' are vectors of numbers, of one length, and each answer differs by at most 1"
    )
    example = "([1, 1], [2, 2])"

    def difference(self, d1: Any, d2: Any) -> str:  # noqa: ARG002
        return "every answer may move by 1"

    def _steps(self, n: int) -> Iterator[list[int]]:
        half = n // 2
        for step in (1, -1):
            yield [step] * n
            yield [step] * half + [-step] * (n - half)
        for steps in super()._steps(n):
            yield steps
            at = next(index for index, step in enumerate(steps) if step)
            yield [steps[at] if index == at else -steps[at] for index in range(n)]


class AnyTwo(Relation):
    """Any two values, as in local differential privacy."""

    __slots__ = ()
    name = "any_two"
    required = "D and D' are two different values"
    example = "(0, 1)"

    def fault(self, d1: Any, d2: Any) -> str:
        return "they are equal" if key(d1) == key(d2) else ""

    def difference(self, d1: Any, d2: Any) -> str:  # noqa: ARG002
        return "any two values"

    def pairs(self, dataset: Any, records: Sequence[Any] = ()) -> Iterator[Pair]:
        """The value with each of the other values in `records`."""
        seen = {key(dataset)}
        for value in records:
            if key(value) not in seen:
                seen.add(key(value))
                yield Pair(dataset, value, "any two values")


RELATIONS: dict[str, type[Relation]] = {
    one.name: one for one in (AddRemoveOne, ReplaceOne, OneQuery, AllQueries, AnyTwo)
}


def _moves(d1: Any, d2: Any) -> list[float]:
    """By how much each answer differs."""
    answers = zip(records_of(d1), records_of(d2), strict=False)
    # Larger less smaller: unsigned integers wrap around, and inf - inf is NaN.
    return [max(a, b) - min(a, b) if a != b else 0.0 for a, b in answers]


def _two_kinds(d1: Any, d2: Any) -> str:
    return f"one is {in_words(d1)}, the other {in_words(d2)}"


def _count(n: int) -> str:
    return f"{n:,} record{'' if n == 1 else 's'}"
