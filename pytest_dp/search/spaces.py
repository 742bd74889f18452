"""Spaces to search: the inputs that a claim speaks of, and how to get from one to others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import numpy as np

from pytest_dp.datasets import records_of
from pytest_dp.datasets.equality import equality_key
from pytest_dp.datasets.fields import fields_of
from pytest_dp.limits import LARGEST_NUMBER
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


class Walk(Protocol):
    """A sequence of inputs, each a neighbour of the next, which are made as they are needed."""

    def __len__(self) -> int: ...

    def __getitem__(self, step: int) -> Any: ...


class Space(Protocol):
    """Inputs of one kind, and how to get from one to others."""

    @property
    def records(self) -> Sequence[Any]:
        """What datasets are made of, in the form of `records_of`."""
        ...

    def corners(self, values: Sequence[Constant]) -> Iterator[Candidate]:
        """Corner cases: inputs at which any code may go wrong, some with these values."""
        ...

    def placed(self, constant: Constant) -> Iterator[Candidate]:
        """Inputs with a constant, or a value just below or above it, where it may matter."""
        ...

    def combined(self, constants: Sequence[Constant], rng: np.random.Generator) -> Candidate:
        """An input with several constants."""
        ...

    def inserted(
        self, data: Any, constant: Constant, rng: np.random.Generator
    ) -> Iterator[Candidate]:
        """The input with a constant in some places, and what it held in the others."""
        ...

    def mutated(
        self, data: Any, constants: Sequence[Constant], rng: np.random.Generator
    ) -> Candidate:
        """An input with something changed."""
        ...

    def walk(self, start: Any, end: Any) -> Walk | None:
        """From one input to another through neighbours; None if none is known."""
        ...


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


def _holds(data: Any, value: Any) -> bool:
    records = records_of(data)
    values = chain.from_iterable(fields_of(record).values() for record in records)
    return equality_key(value) in set(map(equality_key, values))
