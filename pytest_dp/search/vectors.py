"""Vectors of query answers as a space to search: each answer moves by at most 1."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pytest_dp.search.constants import Constant
from pytest_dp.search.spaces import LARGEST, Found, Way, beside, one_of, told

STEPS = (1, -1, 2, -2, 10, -10, 100, -100)
HALVES = 3
"""Ways to cut a vector in two: any two of its answers are told apart by half of them."""
LARGE = 1_000
"""Of numbers that are made up."""


class Vectors:
    """Lists of numbers of given lengths.

    Parameters
    ----------
    lengths : sequence of int
    """

    records: Sequence[Any] = ()

    def __init__(self, lengths: Sequence[int]) -> None:
        self._lengths = tuple(lengths)

    def inside(self, data: Any) -> bool:
        """Whether the patterns are like this."""
        return all(0 <= answer <= 2 for answer in data)

    def corners(self, values: Sequence[Constant]) -> Iterator[Found]:
        """Vectors of equal numbers."""
        for constant in values:
            for value in _numbers(constant)[:1]:
                yield from (Found([value] * n, *told(value, constant)) for n in self._lengths)

    def placed(self, constant: Constant) -> Iterator[Found]:
        """Vectors with a number, or with one just below or above, everywhere, once, or as a sum."""
        values = _numbers(constant)
        for n in self._lengths:
            yield from (Found([value] * n, *told(value, constant)) for value in values)
        for n in self._lengths:
            for value in values:
                yield Found(_summing(value, n), f"a vector with the sum {value}")
                yield Found([value] + [0] * (n - 1), *told(value, constant))

    def combined(self, constants: Sequence[Constant], rng: np.random.Generator) -> Found:
        """A vector with several constants in it."""
        found = Found([0] * one_of(self._lengths, rng))
        for _ in range(int(rng.integers(1, len(found.data) + 1))):
            found = self._with_constant(found.data, constants, rng)
        return found

    def combed(self, data: Any, constant: Constant, rng: np.random.Generator) -> Iterator[Found]:
        """The vector with a number in a random half of the places, and in the other half."""
        for value in _numbers(constant)[::2]:  # and the one above
            for _ in range(HALVES):
                half = rng.random(len(data)) < 0.5
                for side in (half, ~half):
                    made = [value if here else one for one, here in zip(data, side, strict=True)]
                    yield Found(made, *told(value, constant))

    def mutated(self, data: Any, constants: Sequence[Constant], rng: np.random.Generator) -> Found:
        """The vector with something changed."""
        data = list(data)
        at, other = (int(rng.integers(len(data))) for _ in range(2))
        match int(rng.integers(7)):
            case 0:
                data[at] = int(rng.integers(-LARGE, LARGE + 1))
            case 1:
                data[at] += one_of(STEPS, rng)
            case 2:
                step = one_of(STEPS, rng)
                data = [answer + step for answer in data]
            case 3:
                data[at] = data[other]
            case 4:
                data[at] *= one_of((-1, 2, 10), rng)
            case _:
                return self._with_constant(data, constants, rng)
        return Found(data if max(map(abs, data)) <= LARGEST else [0] * len(data))

    def way(self, start: Any, end: Any) -> Way | None:
        """From one vector to another in steps of 1, answer by answer."""
        if len(start) != len(end):
            return None
        return _Steps(start, end)

    def _with_constant(
        self, data: list[Any], constants: Sequence[Constant], rng: np.random.Generator
    ) -> Found:
        constant = one_of(constants, rng)
        values = _numbers(constant)
        if not values:
            return Found(data)
        value = values[0] if rng.random() < 0.5 else one_of(values, rng)
        # In half of the places: what is in the others may matter just as well.
        at = rng.random(len(data)) < 0.5 if rng.random() < 0.5 else rng.permutation(len(data)) == 0
        changed = [value if here else answer for answer, here in zip(data, at, strict=True)]
        return Found(changed, *told(value, constant))


class _Steps:
    """All vectors on the way, each a neighbour of the next."""

    def __init__(self, start: Any, end: Any) -> None:
        self._start, self._end = list(start), list(end)
        self._each = [math.ceil(abs(b - a)) for a, b in zip(start, end, strict=True)]

    def __len__(self) -> int:
        return sum(self._each)

    def __getitem__(self, step: int) -> Any:
        data = []
        for a, b, steps in zip(self._start, self._end, self._each, strict=True):
            done = min(max(step, 0), steps)
            step -= steps
            data.append(b if done == steps else a + (done if b > a else -done))
        return data


def _numbers(constant: Constant) -> list[Any]:
    return [] if isinstance(constant.value, str) else beside(constant.value, whole=True)


def _summing(total: int, n: int) -> list[int]:
    share, left = divmod(total, n)
    return [share + (i < left) for i in range(n)]
