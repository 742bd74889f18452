"""What may stand at one place of records: what examples hold there, and values beside constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.data import is_real
from pytest_dp.proposers.constants import Constant

LARGEST_NUMBER = 2.0**32
"""Largest number that is proposed. Beyond, floats are too coarse for the noise of most
mechanisms."""
MOVES = (1, -1, 2, -2, 10, -10, 100, -100)
"""Numbers by which a value is moved. More share the search; fewer may miss the one that leaks."""
USUAL_SIZE = 1_000
"""Size of numbers that are drawn where nothing is known of a column. Larger: small ones are
missed; smaller: large ones."""


@dataclass(frozen=True, slots=True)
class Column:
    """What the examples hold at one place of their records."""

    values: list[Any]
    """Distinct values; numbers in order."""
    kind: str
    """``"whole"``, ``"number"`` or ``"text"``: what else may stand there. Nothing where it is
    empty, as in a column of flags."""
    free: bool
    """Whether any number may stand there, whatever the examples hold."""

    @property
    def is_numeric(self) -> bool:
        return self.kind in ("whole", "number")

    def takes(self, number: float) -> bool:
        """Whether a number stays within what the examples span, if it has to."""
        return self.free or bool(self.values[0] <= number <= self.values[-1])

    def beside(self, constant: Constant) -> list[Any]:
        """A constant and values beside it, as far as they may stand here.

        Those of the code may be where its behaviour changes, wherever that is; ordinary ones stay
        within what the examples span, as whoever writes ages from 0 to 100 may well rely on it.
        """
        if isinstance(constant.value, str):
            return beside(constant.value, whole=False) if self.kind == "text" else []
        if not self.is_numeric:
            return []
        numbers = beside(constant.value, whole=self.kind == "whole")
        return [number for number in numbers if not constant.ordinary or self.takes(number)]

    def far(self) -> list[Any]:
        """Numbers far above and below those of the examples, which show a clip that is missing.

        The next power of ten but one, which a reader takes for what it is.
        """
        if self.free or not self.is_numeric:
            return []
        largest = max(abs(self.values[0]), abs(self.values[-1]), 1)
        far = 10 * 10 ** math.ceil(math.log10(largest))
        far = far if self.kind == "whole" else float(far)
        return [far, -far] if far <= LARGEST_NUMBER else []

    def summing(self, total: Any, n: int) -> list[Any]:
        """So many numbers with this sum, as equal as can be; none if one of them may not stand."""
        if not (is_real(total) and self.is_numeric and n):
            return []
        numbers = [total / n] * n
        if self.kind == "whole":
            share, left = divmod(int(total), n)
            numbers = [share + (at < left) for at in range(n)]
        return numbers if all(map(self.takes, numbers)) else []

    def mutated(self, value: Any, rng: np.random.Generator) -> Any:
        if not self.is_numeric or not is_real(value) or rng.random() < 0.3:
            return choice(self.values, rng)
        low, high = float(self.values[0]), float(self.values[-1])
        moves: Sequence[int] = (1, -1)
        if self.free:
            low, high, moves = -USUAL_SIZE, USUAL_SIZE, MOVES
        match int(rng.integers(3)):
            case 0:
                mutated = rng.uniform(low, high)
            case 1:
                mutated = (
                    value * choice((-1, 2, 10), rng) if self.free else choice((low, high), rng)
                )
            case _:
                mutated = value + choice(moves, rng)
        if self.free:
            return int(mutated) if abs(mutated) <= LARGEST_NUMBER else 0
        mutated = float(np.clip(mutated, low, high))
        return int(mutated) if self.kind == "whole" else mutated


def column_of(values: list[Any], *, free: bool) -> Column:
    """What the distinct values of a column say of it."""
    if not all(is_real(value) and not isinstance(value, bool) for value in values):
        is_text = all(isinstance(value, str) for value in values)
        return Column(values, "text" if is_text else "", free)
    numbers = sorted(set(values))
    if {0, 1}.issuperset(numbers) and not free:  # flags, which hardly any code clips
        return Column(numbers, "", free)
    whole = all(isinstance(value, int) for value in numbers)
    return Column(numbers, "whole" if whole else "number", free)


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
