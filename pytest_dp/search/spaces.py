"""What can be searched: the inputs that a claim speaks of, and how to get from one to others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pytest_dp.datasets import key, records_of
from pytest_dp.search.constants import Constant

LARGEST = 2.0**32
"""Of numbers that the claim's inputs do not hold: beyond, floats are too coarse for any noise."""


@dataclass(frozen=True, slots=True)
class Found:
    """An input, and what to say of where it came from.

    Attributes
    ----------
    data : object
    origin : str
        ``"a constant in stats.py:14"``.
    value : object
        What was put into it, if that is one number or string.
    """

    data: Any
    origin: str = "a mutation of another input"
    value: Any = None

    def said(self, d1: Any, d2: Any) -> str:
        """Where a pair of neighbours comes from that was found around the input."""
        if self.value is None:
            return f"D is {self.origin}, or next to it"
        holder = next((name for name, d in (("D", d1), ("D'", d2)) if _holds(d, self.value)), "")
        return f"{holder or 'the search'} {'holds' if holder else 'tried'} {self.origin}"


class Way(Protocol):
    """Inputs in a row, each a neighbour of the next; the first is number 0, the last `len`."""

    def __len__(self) -> int: ...

    def __getitem__(self, step: int) -> Any: ...


class Space(Protocol):
    """Inputs that are alike, and how to get from one to others."""

    @property
    def records(self) -> Sequence[Any]:
        """What datasets are made of, in the form of `records_of`."""
        ...

    def inside(self, data: Any) -> bool:
        """Whether an input holds nothing that the claim's own do not."""
        ...

    def corners(self, values: Sequence[Constant]) -> Iterator[Found]:
        """Inputs, some with these values, at which code may go wrong that knows nothing of them."""
        ...

    def placed(self, constant: Constant) -> Iterator[Found]:
        """Inputs with a constant, or what is just below or above, where it may matter."""
        ...

    def combined(self, constants: Sequence[Constant], rng: np.random.Generator) -> Found:
        """An input with several constants."""
        ...

    def combed(self, data: Any, constant: Constant, rng: np.random.Generator) -> Iterator[Found]:
        """The input with a constant in some places, and what it held in the others."""
        ...

    def mutated(self, data: Any, constants: Sequence[Constant], rng: np.random.Generator) -> Found:
        """An input with something changed."""
        ...

    def way(self, start: Any, end: Any) -> Way | None:
        """From one input to another through neighbours; None if none is known."""
        ...


def beside(value: Any, *, whole: bool) -> list[Any]:
    """A number with what comes just before and after; of a string also what it is a part of.

    Parameters
    ----------
    value : number or str
    whole : bool
        Whether only whole numbers are asked for.
    """
    if isinstance(value, str):
        return [value, f"{value}x", f"x{value}"]
    if abs(value) > LARGEST:
        return []
    below, above = math.ceil(value) - 1, math.floor(value) + 1
    if whole:
        return [*([int(value)] if value == int(value) else []), below, above]
    least = 1e-6 * max(1.0, abs(value))
    return [value, value - least, value + least, below, above]


def told(value: Any, constant: Constant) -> tuple[str, Any]:
    """What to say of a value that was taken from beside a constant, and the value."""
    if value == constant.value:
        return f"{value!r}, {constant.origin}", value
    if isinstance(value, str):
        return f"{value!r}, around {constant.value!r}, {constant.origin}", value
    side = "above" if value > constant.value else "below"
    return f"{value!r}, just {side} {constant.value!r}, {constant.origin}", value


def one_of(options: Sequence[Any], rng: np.random.Generator) -> Any:
    """One of several, at random."""
    return options[int(rng.integers(len(options)))]


def _holds(data: Any, value: Any) -> bool:
    records = records_of(data)
    fields = (field for one in records for field in (one if isinstance(one, tuple) else (one,)))
    return key(value) in set(map(key, fields))
