"""All relations between neighbours, by their names in a claim: those of vectors, and of values.

A function of the user can be a relation, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from inspect import Parameter, signature
from itertools import islice
from typing import Any

from pytest_dp.basics.errors import ClaimError
from pytest_dp.data.conversion import kind_of, rebuild, records_of
from pytest_dp.data.describing import describe
from pytest_dp.data.equality import equality_key, key
from pytest_dp.data.neighbours import (
    MAX_PAIRS,
    Pair,
    Relation,
    WithParams,
    different_kinds,
)
from pytest_dp.data.ordering import accept_until, distinct, in_turn, is_real
from pytest_dp.data.record_relations import AddRemoveOne, OfRecords, ReplaceOne, ReplaceSpecial
from pytest_dp.data.types import type_of
from pytest_dp.declaration import Queries, Values

ROUNDING = 1e-9
"""Rounding error of an answer that moves by 1. Larger: more pairs count as neighbours."""
MAX_ATTEMPTS = 20_000
"""Pairs in a row that a user's function refuses, until the search ends."""
__all__ = [
    "RELATIONS",
    "AddRemoveOne",
    "AllQueries",
    "AnyTwo",
    "Neighbours",
    "OfFunction",
    "OfQueries",
    "OfRecords",
    "OneQuery",
    "Pair",
    "Predicate",
    "Relation",
    "ReplaceOne",
    "ReplaceSpecial",
    "WithParams",
    "of_function",
]


class OfQueries(Relation):
    """The base of relations of answers of counting queries, each of which moves by at most 1."""

    __slots__ = ()
    of = Queries

    def between(self, d1: Any, d2: Any) -> Pair | str:
        """Return vectors whose answers differ by at most 1 as a pair; else the reason."""
        for name, value in (("D", d1), ("D'", d2)):
            data = type_of(value)
            if data is None or not data.vector:
                return f"{name} is of type {type(value).__name__}, which is not a vector"
            wrong = [answer for answer in records_of(value) if not is_real(answer)]
            if wrong:
                return f"{name} holds {describe(wrong[0])}, which is not a number"
        if kind_of(d1) != kind_of(d2):
            return different_kinds(d1, d2)
        if len(d1) != len(d2):
            return f"their lengths are {len(d1)} and {len(d2)}"
        moved = _answer_differences(d1, d2)
        if not any(moved):
            return "no answer differs"
        at = max(range(len(moved)), key=moved.__getitem__)
        if moved[at] > 1 + ROUNDING:
            return f"the answer at index {at} differs by {moved[at]:g}"
        return Pair(d1, d2, "every answer may move by 1")

    def pairs(self, dataset: Any, records: Sequence[Any] = ()) -> Iterator[Pair]:  # noqa: ARG002
        """Yield pairs of the vector with each neighbour whose answers its type can hold."""
        answers = records_of(dataset)
        d1 = rebuild(dataset, answers)

        def moved() -> Iterator[Any]:
            for steps in self._steps(len(answers)):
                with suppress(ClaimError):  # such as -1 in an array of unsigned integers
                    yield rebuild(dataset, [a + b for a, b in zip(answers, steps, strict=True)])

        pairs = (self.pair(d1, d2) for d2 in distinct(moved(), known=[key(d1)]))
        return filter(None, pairs)  # not always: inf + 1 is inf

    def _steps(self, n: int) -> Iterator[list[int]]:
        """Yield for each neighbour of `n` answers the differences of its answers."""
        for at in range(n):
            for step in (1, -1):
                yield [step * (index == at) for index in range(n)]


class OneQuery(OfQueries):
    """One answer moves."""

    __slots__ = ()
    name = "one_query"
    example = "([1, 1], [2, 1])"

    @property
    def required(self) -> str:
        return (
            "D and D' are vectors of numbers, of one length, and exactly one answer differs, by at "
            "most 1"
        )

    def between(self, d1: Any, d2: Any) -> Pair | str:
        found = super().between(d1, d2)
        moved = [] if isinstance(found, str) else list(filter(None, _answer_differences(d1, d2)))
        if len(moved) > 1:
            return f"{len(moved)} answers differ"
        return Pair(d1, d2, f"one answer moved by {moved[0]:g}") if moved else found


class AllQueries(OfQueries):
    """Any of the answers move."""

    __slots__ = ()
    name = "all_queries"
    example = "([1, 1], [2, 2])"

    @property
    def required(self) -> str:
        return (
            "D and D' are vectors of numbers, of one length, and each answer differs by at most 1"
        )

    def _steps(self, n: int) -> Iterator[list[int]]:
        """Yield moves of all answers with several combinations of signs, and of each alone."""
        half = n // 2
        for step in (1, -1):
            yield [step] * n
            yield [step] * half + [-step] * (n - half)
        for steps in super()._steps(n):
            yield steps
            at = next(index for index, step in enumerate(steps) if step)
            yield [steps[at] if index == at else -steps[at] for index in range(n)]


def _answer_differences(d1: Any, d2: Any) -> list[float]:
    """Return by how much each answer differs, as numbers of at least 0."""
    answers = zip(records_of(d1), records_of(d2), strict=False)
    # The smaller from the larger: unsigned integers would wrap around, and inf - inf is NaN.
    return [max(a, b) - min(a, b) if a != b else 0.0 for a, b in answers]


class AnyTwo(Relation):
    """Any two values, as in local differential privacy."""

    __slots__ = ()
    name = "any_two"
    example = "(0, 1)"
    of = Values

    @property
    def required(self) -> str:
        return "D and D' are two different values"

    def between(self, d1: Any, d2: Any) -> Pair | str:
        return "they are equal" if key(d1) == key(d2) else Pair(d1, d2, "any two values")

    def pairs(self, dataset: Any, records: Sequence[Any] = ()) -> Iterator[Pair]:
        """Yield the pairs of the value with each of the other values in `records`."""
        others = distinct(records, known=[key(dataset)])
        return (Pair(dataset, value, "any two values") for value in others)


@dataclass(frozen=True, slots=True)
class OfFunction(Relation):
    """The base of relations that are a function of the user."""

    function: Callable[..., Any]

    name = "function"
    example = "([1, 0], [1])"

    @property
    def shown_name(self) -> str:
        """The function's name; "the function" if it has none."""
        return str(getattr(self.function, "__name__", "the function"))

    @property
    def neighbors(self) -> Any:
        return self.function

    def _pair(self, d1: Any, d2: Any) -> Pair:
        return Pair(d1, d2, f"neighbours by {self.shown_name}")


class Neighbours(OfFunction):
    """``function(D)`` returns or yields the neighbours of D."""

    __slots__ = ()

    @property
    def required(self) -> str:
        return f"{self.shown_name}(D) yields D', or {self.shown_name}(D') yields D"

    def between(self, d1: Any, d2: Any) -> Pair | str:
        """Return a pair if the function yields one input for the other; else the reason."""
        taken = []
        for dataset, other in ((d1, d2), (d2, d1)):
            neighbours, wanted = list(self._neighbours_of(dataset)), equality_key(other)
            if any(equality_key(neighbour) == wanted for neighbour in neighbours):
                return self._pair(d1, d2)
            taken.append(f"{len(neighbours)}")
        return (
            f"{self.shown_name} yields {taken[0]} neighbours of D and {taken[1]} of D', not these"
        )

    def pairs(self, dataset: Any, records: Sequence[Any] = ()) -> Iterator[Pair]:  # noqa: ARG002
        """Yield the pairs of the dataset with each input that the function yields.

        Raises ClaimError if the function raises, or yields no inputs or the dataset itself. At most
        `MAX_PAIRS` inputs are taken.
        """
        return (self._pair(dataset, other) for other in distinct(self._neighbours_of(dataset)))

    def _neighbours_of(self, dataset: Any) -> Iterator[Any]:
        """Yield up to `MAX_PAIRS` inputs that the function yields; errors are those of `pairs`."""
        call = f"neighbors={self.shown_name}"
        kind, content = kind_of(dataset), key(dataset)
        returned = _answer(
            self.function, (dataset,), call, "returns its neighbours, or yields them"
        )
        if isinstance(returned, str) or not hasattr(returned, "__iter__"):
            raise ClaimError(
                f"{call} returned {describe(returned)}, of type {type(returned).__name__}, for D = "
                f"{describe(dataset)}. Return a list of the inputs that are neighbours of D, or "
                "yield them one by one."
            )
        neighbours = islice(iter(returned), MAX_PAIRS)
        while True:
            try:
                neighbour = next(neighbours)
            except StopIteration:
                return
            except Exception as error:
                raise _claim_error(call, error, (dataset,), "yields the neighbours of D") from error
            if neighbour is dataset or key(neighbour) == content:
                raise ClaimError(
                    f"{call} yields D itself, for D = {describe(dataset)}: no mechanism could "
                    "distinguish these. Yield a changed copy, and leave out copies that equal D."
                )
            if kind and not kind_of(neighbour):
                raise ClaimError(
                    f"{call} yields {describe(neighbour)}, of type {type(neighbour).__name__}, as "
                    f"a neighbour of D = {describe(dataset)}. Yield whole inputs, each like D."
                )
            yield neighbour


class Predicate(OfFunction):
    """``function(D, D')`` says whether they are neighbours."""

    __slots__ = ()

    @property
    def required(self) -> str:
        return f"{self.shown_name}(D, D') or {self.shown_name}(D', D) is true"

    def between(self, d1: Any, d2: Any) -> Pair | str:
        if self._are_neighbours(d1, d2) or self._are_neighbours(d2, d1):
            return self._pair(d1, d2)
        return f"{self.shown_name} says no"

    def pairs(self, dataset: Any, records: Sequence[Any] = ()) -> Iterator[Pair]:
        """Yield pairs that differ in one record, and that the function accepts.

        Of an input that is no dataset, they are its pairs with `records`. Raises ClaimError if the
        function raises.
        """
        if kind_of(dataset):
            relations = AddRemoveOne(), ReplaceOne()
            offered = [*records, *records_of(dataset)]
            candidates = in_turn(relation.pairs(dataset, offered) for relation in relations)
        else:
            candidates = (Pair(dataset, other) for other in records if key(other) != key(dataset))
        return self.filter_pairs(candidates)

    def filter_pairs(self, pairs: Iterator[Pair]) -> Iterator[Pair]:
        """Yield the pairs that the function accepts; end after `MAX_ATTEMPTS` others in a row."""
        return accept_until(pairs, lambda pair: self.pair(pair.d1, pair.d2), MAX_ATTEMPTS)

    def _are_neighbours(self, d1: Any, d2: Any) -> bool:
        """Call the user's function on D and D', and return the truth value of its answer.

        None counts as False. Raises ClaimError if the function raises, or if its answer has no
        truth value, as an array of several values.
        """
        call = f"neighbors={self.shown_name}"
        answer = _answer(self.function, (d1, d2), call, "returns whether they are neighbours")
        try:
            return bool(answer)
        except Exception as error:
            raise ClaimError(
                f"{call} returned {describe(answer)}, of type {type(answer).__name__}. Return True "
                "or False: whether D and D' are neighbours."
            ) from error


def of_function(function: Callable[..., Any]) -> OfFunction:
    """Return the relation of a function of one input, or of two; raise ClaimError for others."""
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C
        return Neighbours(function)
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = sum(p.default is Parameter.empty for p in places)
    if needed == 2:
        return Predicate(function)
    if needed == 1 or (places and not needed):
        return Neighbours(function)
    raise ClaimError(
        f"neighbors={getattr(function, '__name__', describe(function))} needs {needed} arguments. "
        "Allowed: a function of D that yields its neighbours, or one of D and D' that says whether "
        "they are."
    )


def _answer(function: Callable[..., Any], inputs: tuple[Any, ...], call: str, returns: str) -> Any:
    """Call a user's function on inputs and return its value; raise ClaimError if it raises."""
    try:
        return function(*inputs)
    except Exception as error:
        raise _claim_error(call, error, inputs, returns) from error


def _claim_error(call: str, error: Exception, inputs: tuple[Any, ...], returns: str) -> ClaimError:
    """Return the ClaimError on an error of a user's function, with its inputs and its task."""
    shown = " and ".join(
        f"{name} = {describe(value)}" for name, value in zip(("D", "D'"), inputs, strict=False)
    )
    return ClaimError(
        f"{call} raised {type(error).__name__}: {error}, for {shown}. It is called with "
        f"{'one input' if len(inputs) == 1 else 'two inputs'}, and {returns}."
    )


RELATIONS: dict[str, type[Relation]] = {
    relation.name: relation
    for relation in (AddRemoveOne, ReplaceOne, ReplaceSpecial, AllQueries, OneQuery, AnyTwo)
}
"""By the names in a claim. The first of those for a kind of inputs is its default."""
