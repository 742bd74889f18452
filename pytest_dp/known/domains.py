"""The possible values of a draw, numbered in increasing order, which comparisons split."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pytest_dp.known.paths import Weight
from pytest_dp.randomness import laws
from pytest_dp.randomness.laws import Law


@dataclass(frozen=True, slots=True)
class Evenly:
    """The numbers ``offset + step * number`` from `first` to before `last`, all equally likely."""

    first: int
    last: int
    step: float = 1
    offset: int = 0

    def value(self, number: int) -> Any:
        return self.offset + self.step * number

    def mass(self, start: int, stop: int) -> Weight:
        """How many values there are."""
        return Fraction(stop - start)

    def middle(self, start: int, stop: int) -> int:
        return (start + stop) // 2

    def residues(self, start: int, stop: int, modulus: int) -> list[tuple[int, Evenly]]:
        """Each remainder, with the part that leaves it; empty if two of them are the same."""
        parts = [
            (
                self.value(number) % modulus,
                Evenly(0, -((number - stop) // modulus), self.step * modulus, self.value(number)),
            )
            for number in range(start, min(start + modulus, stop))
        ]
        return parts if len({remainder for remainder, _ in parts}) == len(parts) else []


BITS = 53
"""Given by the uniform floats that Python and numpy draw: multiples of 2**-53."""


UNIFORM = Evenly(0, 1 << BITS, 2.0**-BITS)


@dataclass(frozen=True, slots=True)
class ByLaw:
    """Floats, with the masses of a law that has a density."""

    law: Law

    @property
    def first(self) -> int:
        return number_of(self.law.reach[0])

    @property
    def last(self) -> int:
        return number_of(self.law.reach[1]) + 1

    def value(self, number: int) -> Any:
        return float_of(number)

    def mass(self, start: int, stop: int) -> Weight:
        """By the distribution function; in narrow intervals, where that loses digits, by density.

        Simpson's rule is accurate to 1e-15 there.
        """
        low = float_of(start)
        high = math.inf if stop >= self.last else float_of(stop)
        if high - low < 1e-3:
            at = self.law.log_density(np.array([low, low + (high - low) / 2, high]))
            return float(np.exp(at) @ [1, 4, 1]) * (high - low) / 6
        return math.exp(float(self.law.log_between(np.array(low), np.array(high))))

    def middle(self, start: int, stop: int) -> int:
        """By bisection, until there is at least a quarter on either side."""
        low, high, total = start, stop, self.mass(start, stop)
        while high - low > 1:
            middle = (low + high) // 2
            share = self.mass(start, middle) / total
            if 0.25 <= share <= 0.75:
                return middle
            low, high = (middle, high) if share < 0.5 else (low, middle)
        return min(high, stop - 1)


Domain = Evenly | ByLaw
"""Values, the probability of those from one number up to another, times a constant, and a number
that has about half of it on either side."""


def domain_of(law: Law) -> Domain:
    """The values of draws with a density."""
    return UNIFORM if law.family is laws.UNIFORM else ByLaw(law)


def float_of(number: int) -> float:
    """The float with a number: its bits, as a whole number that increases with the float."""
    size = float(struct.unpack("<d", struct.pack("<q", abs(number)))[0])
    return size if number >= 0 else -size


def number_of(value: float) -> int:
    """The number of a float."""
    bits = int(struct.unpack("<q", struct.pack("<d", abs(value)))[0])
    return bits if value >= 0 else -bits


class LazyDraw:
    """A draw of a run, as far as functions of it ask for it; `instrument` is what answered it."""

    __slots__ = ("domain", "instrument")

    def __init__(self, domain: Domain, instrument: Any) -> None:
        self.domain, self.instrument = domain, instrument

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole number itself."""
        return isinstance(self.domain, Evenly) and isinstance(self.domain.value(0), int)

    def possible(self) -> tuple[int, int]:
        """The numbers of the first and of the last possible value."""
        raise NotImplementedError

    def ends(self, function: Callable[[Any], Any]) -> tuple[Any, Any]:
        """A function of the smallest and of the largest possible value."""
        first, last = self.possible()
        return function(self.domain.value(first)), function(self.domain.value(last))

    def holds(self, condition: Callable[[Any], Any]) -> Any:
        """Whether a condition on the value holds, which it does from a number on, or up to one."""
        if self.instrument.is_over():
            self.settle()
        at_start, at_end = (bool(end) for end in self.ends(condition))
        return at_start if at_start == at_end else self.split(condition, at_start)

    def split(self, condition: Callable[[Any], Any], at_start: bool) -> Any:
        """Whether a condition holds, of which only one end is known."""
        raise NotImplementedError

    def first_other(self, function: Callable[[Any], Any], value: Any, low: int, high: int) -> int:
        """The first number above one at which a function has another value, as it has at `high`.

        (`bisect` takes no negative numbers.)
        """
        while high - low > 1:
            middle = (low + high) // 2
            differs = bool(function(self.domain.value(middle)) != value)
            low, high = (low, middle) if differs else (middle, high)
        return high

    def settle(self) -> None:
        """Become one number, as in a run that is refused."""

    def parted(self, function: Callable[[Any], Any]) -> bool:
        """Decide in which part it is; False if there is no way to do so."""
        raise NotImplementedError

    def split_off(self, first: bool, last: bool) -> None:
        """Split off the first, or the last, of the possible numbers, or both."""

    def few_values(self, function: Callable[[Any], Any]) -> Any:
        """A function with few values, as a number that may be any of them."""
        raise NotImplementedError

    def residue(self, modulus: int) -> int | None:  # noqa: ARG002
        """The remainder of a whole number, where it is told without the quotients."""
        return None
