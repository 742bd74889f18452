"""The space of vectors of query answers, in which each answer moves by at most 1."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from pytest_dp.limits import FEW, LARGEST_NUMBER, MOVES, THOUSAND
from pytest_dp.search.constants import Constant
from pytest_dp.search.spaces import Candidate, Walk, beside, choice, described


class Vectors:
    """Lists of numbers, of certain lengths."""

    records: Sequence[Any] = ()

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
        return _Steps(start, end)

    def _with_constant(
        self, data: list[Any], constants: Sequence[Constant], rng: np.random.Generator
    ) -> Candidate:
        constant = choice(constants, rng)
        values = _numbers(constant)
        if not values:
            return Candidate(data)
        value = values[0] if rng.random() < 0.5 else choice(values, rng)
        # In half of the places, as what the others hold may matter just as well; or in one.
        in_half = rng.random() < 0.5
        places = rng.random(len(data)) < 0.5 if in_half else rng.permutation(len(data)) == 0
        return Candidate(_replaced(data, places, value), *described(value, constant))


class _Steps:
    """Vectors between two others, each a neighbour of the next."""

    def __init__(self, start: Any, end: Any) -> None:
        self._start, self._end = list(start), list(end)
        self._steps: list[int] = [math.ceil(abs(b - a)) for a, b in zip(start, end, strict=True)]

    def __len__(self) -> int:
        return sum(self._steps) + 1

    def __getitem__(self, step: int) -> Any:
        data = []
        for a, b, steps in zip(self._start, self._end, self._steps, strict=True):
            done = min(max(step, 0), steps)
            step -= steps
            data.append(b if done == steps else a + (done if b > a else -done))
        return data


def _numbers(constant: Constant) -> list[Any]:
    return [] if isinstance(constant.value, str) else beside(constant.value, whole=True)


def _replaced(data: Sequence[Any], places: Iterable[bool], value: Any) -> list[Any]:
    return [value if here else answer for answer, here in zip(data, places, strict=True)]


def _summing(total: int, n: int) -> list[int]:
    share, left = divmod(total, n)
    return [share + (i < left) for i in range(n)]
