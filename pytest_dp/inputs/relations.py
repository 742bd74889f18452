"""Relations: when two inputs are neighbours, and how to say so."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from pytest_dp.errors import ClaimError
from pytest_dp.inputs.datasets import describe, is_real, key, kind_of, records_of

_REQUIRED = {
    "add_remove_one": (
        "D' is D with exactly one record removed or added, in any order",
        "([1, 0], [1])",
    ),
    "replace_one": (
        "D and D' have as many records and exactly one of them differs, in any order",
        "([1, 0], [1, 1])",
    ),
    "one_query": (
        "D and D' are vectors of numbers, of one length, and exactly one answer differs, "
        "by at most 1",
        "([1, 1], [2, 1])",
    ),
    "all_queries": (
        "D and D' are vectors of numbers, of one length, and each answer differs by at most 1",
        "([1, 1], [2, 2])",
    ),
    "any_two": ("D and D' are two different values", "(0, 1)"),
}
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


def stated_pair(at: int, d1: Any, d2: Any, relation: str | None) -> Pair:
    """The pair that the claim states at this index, checked."""
    both = f"D = {describe(d1)} and D' = {describe(d2)}"
    if key(d1) == key(d2):
        example = _REQUIRED[relation or "add_remove_one"][1]
        raise ClaimError(
            f"pairs[{at}] is not a pair of neighbours: {both} are identical, so no mechanism "
            f"could tell them apart. Write two inputs that differ, such as {example}."
        )
    if relation is None:
        return Pair(d1, d2)
    fault = why_no_neighbours(d1, d2, relation)
    if fault:
        required, example = _REQUIRED[relation]
        raise ClaimError(
            f"pairs[{at}] is not a pair of neighbours under neighbors={relation!r}: {both}; "
            f"{fault}. Required: {required}, such as {example}. Correct the pair, or leave "
            "neighbors= out to audit it as it stands."
        )
    return Pair(d1, d2, _difference(d1, d2, relation))


def why_no_neighbours(d1: Any, d2: Any, relation: str) -> str:
    """What keeps two inputs from being neighbours, or "" if they are."""
    if relation == "any_two":
        return "they are equal" if key(d1) == key(d2) else ""
    if relation in ("one_query", "all_queries"):
        return _no_query_neighbours(d1, d2, relation)
    for name, value in (("D", d1), ("D'", d2)):
        if not kind_of(value):
            return (
                f"{name} is of type {type(value).__name__}, which is no dataset (a list, tuple, "
                "set, array or data frame of records)"
            )
    if kind_of(d1) != kind_of(d2):
        return _two_kinds(d1, d2)
    records = [Counter(map(key, records_of(dataset))) for dataset in (d1, d2)]
    only1, only2 = (records[0] - records[1]).total(), (records[1] - records[0]).total()
    if not only1 and not only2:
        return "they hold the same records"
    if (only1, only2) in ({(0, 1), (1, 0)} if relation == "add_remove_one" else {(1, 1)}):
        return ""
    return f"{_count(only1)} only in D and {_count(only2)} only in D'"


def _no_query_neighbours(d1: Any, d2: Any, relation: str) -> str:
    for name, value in (("D", d1), ("D'", d2)):
        if (kind_of(value) or ("",))[0] not in ("list", "tuple", "array", "Series"):
            return f"{name} is of type {type(value).__name__}, which is no vector"
        wrong = [answer for answer in records_of(value) if not is_real(answer)]
        if wrong:
            return f"{name} holds {describe(wrong[0])}, which is no number"
    if kind_of(d1) != kind_of(d2):
        return _two_kinds(d1, d2)
    moves = _moves(d1, d2)
    if len(d1) != len(d2):
        return f"their lengths are {len(d1)} and {len(d2)}"
    if relation == "one_query" and sum(map(bool, moves)) != 1:
        return f"{sum(map(bool, moves))} answers differ"
    if not any(moves):
        return "no answer differs"
    at = max(range(len(moves)), key=moves.__getitem__)
    if moves[at] > 1 + _ROUNDING:
        return f"the answer at index {at} differs by {moves[at]:g}"
    return ""


def _moves(d1: Any, d2: Any) -> list[float]:
    """By how much each answer differs."""
    answers = zip(records_of(d1), records_of(d2), strict=False)
    # Larger less smaller: unsigned integers wrap around, and inf - inf is NaN.
    return [max(a, b) - min(a, b) if a != b else 0.0 for a, b in answers]


def _difference(d1: Any, d2: Any, relation: str) -> str:
    match relation:
        case "add_remove_one":
            return "one record removed" if len(d2) < len(d1) else "one record added"
        case "replace_one":
            return "one record replaced"
        case "one_query":
            return f"one answer moved by {max(_moves(d1, d2)):g}"
        case "all_queries":
            return "every answer may move by 1"
    return "any two values"


def _two_kinds(d1: Any, d2: Any) -> str:
    return f"one is {_named(kind_of(d1))}, the other {_named(kind_of(d2))}"


def _named(kind: tuple[Any, ...]) -> str:
    name, detail = kind
    if name == "array":
        return f"an array with records of shape {detail}"
    if name == "DataFrame":
        return f"a data frame with the columns {describe(list(detail))}"
    return f"a {name}" if detail is None else f"a {name} named {detail!r}"


def _count(n: int) -> str:
    return f"{n:,} record{'' if n == 1 else 's'}"
