"""Spaces to search: the inputs that a claim speaks of, and how to get from one to others."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from pytest_dp.datasets import records_of
from pytest_dp.datasets.equality import equality_key
from pytest_dp.datasets.fields import fields_of
from pytest_dp.limits import FEW, LARGEST_NUMBER, MOVES, THOUSAND
from pytest_dp.search.constants import Constant


@dataclass(frozen=True, slots=True)
class Candidate:
    """An input that may be proposed, and where it comes from."""

    data: Any
    origin: str = "a mutation of another input"
    """``"a constant in stats.py:14"``."""
    value: Any = None
    """What was put into it, if that is a single number or string."""

    def origin_of(self, d1: Any, d2: Any) -> str:
        """Where a pair of neighbours around the input comes from."""
        if self.value is None:
            return f"D is {self.origin}, or next to it"
        holder = next((name for name, d in (("D", d1), ("D'", d2)) if _holds(d, self.value)), "")
        return f"{holder or 'the search'} {'holds' if holder else 'tried'} {self.origin}"


@dataclass(frozen=True, slots=True)
class Walk:
    """So many inputs, each a neighbour of the next, which are made as they are needed."""

    inputs: int
    at: Callable[[int], Any]


class Space(ABC):
    """Inputs of one kind, and how to get from one to others."""

    records: Sequence[Any] = ()
    """What datasets are made of, in the form of `records_of`."""

    @abstractmethod
    def corners(self, values: Sequence[Constant]) -> Iterator[Candidate]:
        """Corner cases: inputs at which any code may go wrong, some with these values."""

    def placed(self, constant: Constant) -> Iterator[Candidate]:  # noqa: ARG002
        """Inputs with a constant, or a value just below or above it, where it may matter."""
        return iter(())

    @abstractmethod
    def combined(self, constants: Sequence[Constant], rng: np.random.Generator) -> Candidate:
        """An input with several constants."""

    def inserted(
        self,
        data: Any,  # noqa: ARG002
        constant: Constant,  # noqa: ARG002
        rng: np.random.Generator,  # noqa: ARG002
    ) -> Iterator[Candidate]:
        """The input with a constant in some places, and what it held in the others."""
        return iter(())

    @abstractmethod
    def mutated(
        self, data: Any, constants: Sequence[Constant], rng: np.random.Generator
    ) -> Candidate:
        """An input with something changed."""

    @abstractmethod
    def walk(self, start: Any, end: Any) -> Walk | None:
        """From one input to another through neighbours; None if none is known."""


class Options(Space):
    """The values of a claim; others may mean nothing to the mechanism. Any two are neighbours."""

    def __init__(self, options: Sequence[Any]) -> None:
        self.records = tuple(options)[:THOUSAND]

    def corners(self, values: Sequence[Constant]) -> Iterator[Candidate]:  # noqa: ARG002
        return (Candidate(option, "one of the values") for option in self.records)

    def combined(self, constants: Sequence[Constant], rng: np.random.Generator) -> Candidate:  # noqa: ARG002
        return Candidate(choice(self.records, rng), "one of the values")

    def mutated(
        self,
        data: Any,  # noqa: ARG002
        constants: Sequence[Constant],
        rng: np.random.Generator,
    ) -> Candidate:
        return self.combined(constants, rng)

    def walk(self, start: Any, end: Any) -> Walk:
        return Walk(2, (start, end).__getitem__)


class Vectors(Space):
    """Lists of the answers of queries, of certain lengths; each answer moves by at most 1."""

    def __init__(self, lengths: Sequence[int]) -> None:
        self._lengths = tuple(lengths)

    def corners(self, values: Sequence[Constant]) -> Iterator[Candidate]:
        """Vectors of equal numbers."""
        for constant in values:
            for value in _numbers(constant)[:1]:
                origin = described(value, constant)
                yield from (Candidate([value] * n, *origin) for n in self._lengths)

    def placed(self, constant: Constant) -> Iterator[Candidate]:
        """Vectors with a constant, or a number just below or above, everywhere, once, or as sum."""
        values = _numbers(constant)
        for n in self._lengths:
            yield from (Candidate([value] * n, *described(value, constant)) for value in values)
        for n in self._lengths:
            for value in values:
                yield Candidate(_summing(value, n), f"a vector with the sum {value}")
                yield Candidate([value] + [0] * (n - 1), *described(value, constant))

    def combined(self, constants: Sequence[Constant], rng: np.random.Generator) -> Candidate:
        candidate = Candidate([0] * choice(self._lengths, rng))
        for _ in range(int(rng.integers(1, len(candidate.data) + 1))):
            candidate = self._with_constant(candidate.data, constants, rng)
        return candidate

    def inserted(
        self, data: Any, constant: Constant, rng: np.random.Generator
    ) -> Iterator[Candidate]:
        """The vector with a number in a random half of the places, and in the other half."""
        for value in _numbers(constant)[::2]:  # and the one above
            for _ in range(FEW):
                half = rng.random(len(data)) < 0.5
                for places in (half, ~half):
                    vector = _replaced(data, places, value)
                    yield Candidate(vector, *described(value, constant))

    def mutated(
        self, data: Any, constants: Sequence[Constant], rng: np.random.Generator
    ) -> Candidate:
        data = list(data)
        at, other = (int(rng.integers(len(data))) for _ in range(2))
        match int(rng.integers(7)):
            case 0:
                data[at] = int(rng.integers(-THOUSAND, THOUSAND + 1))
            case 1:
                data[at] += choice(MOVES, rng)
            case 2:
                step = choice(MOVES, rng)
                data = [answer + step for answer in data]
            case 3:
                data[at] = data[other]
            case 4:
                data[at] *= choice((-1, 2, 10), rng)
            case _:
                return self._with_constant(data, constants, rng)
        return Candidate(data if max(map(abs, data)) <= LARGEST_NUMBER else [0] * len(data))

    def walk(self, start: Any, end: Any) -> Walk | None:
        """From one vector to another in steps of 1, answer by answer."""
        if len(start) != len(end):
            return None
        steps = [math.ceil(abs(b - a)) for a, b in zip(start, end, strict=True)]

        def after(step: int) -> list[Any]:
            data = []
            for a, b, most in zip(start, end, steps, strict=True):
                done = min(max(step, 0), most)
                step -= most
                data.append(b if done == most else a + (done if b > a else -done))
            return data

        return Walk(sum(steps) + 1, after)

    def _with_constant(
        self, data: list[Any], constants: Sequence[Constant], rng: np.random.Generator
    ) -> Candidate:
        constant = choice(constants, rng)
        value = any_of(_numbers(constant), rng)
        if value is None:
            return Candidate(data)
        # In half of the places, as what the others hold may matter just as well; or in one.
        in_half = rng.random() < 0.5
        places = rng.random(len(data)) < 0.5 if in_half else rng.permutation(len(data)) == 0
        return Candidate(_replaced(data, places, value), *described(value, constant))


def beside(value: Any, *, whole: bool) -> list[Any]:
    """A number with those just below and above; a string with others that contain it."""
    if isinstance(value, str):
        return [value, f"{value}x", f"x{value}"]
    if abs(value) > LARGEST_NUMBER:
        return []
    below, above = math.ceil(value) - 1, math.floor(value) + 1
    if whole:
        return [*([int(value)] if value == int(value) else []), below, above]
    step = 1e-6 * max(1.0, abs(value))
    return [value, value - step, value + step, below, above]


def described(value: Any, constant: Constant) -> tuple[str, Any]:
    """The origin of a value that is beside a constant, and the value."""
    if value == constant.value:
        return f"{value!r}, {constant.origin}", value
    if isinstance(value, str):
        return f"{value!r}, around {constant.value!r}, {constant.origin}", value
    side = "above" if value > constant.value else "below"
    return f"{value!r}, just {side} {constant.value!r}, {constant.origin}", value


def choice(options: Sequence[Any], rng: np.random.Generator) -> Any:
    """A random element; of any type, where ``rng.choice`` makes an array of the options."""
    return options[int(rng.integers(len(options)))]


def any_of(values: Sequence[Any], rng: np.random.Generator) -> Any:
    """The first of the values half of the time, else any of them; None if there are none."""
    if not values:
        return None
    return values[0] if rng.random() < 0.5 else choice(values, rng)


def _holds(data: Any, value: Any) -> bool:
    records = records_of(data)
    values = chain.from_iterable(fields_of(record).values() for record in records)
    return equality_key(value) in set(map(equality_key, values))


def _numbers(constant: Constant) -> list[Any]:
    return [] if isinstance(constant.value, str) else beside(constant.value, whole=True)


def _replaced(data: Sequence[Any], places: Iterable[bool], value: Any) -> list[Any]:
    return [value if here else answer for answer, here in zip(data, places, strict=True)]


def _summing(total: int, n: int) -> list[int]:
    share, left = divmod(total, n)
    return [share + (i < left) for i in range(n)]
