"""Domains of draws: values in increasing order, each with a number; intervals have a mass."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import exp, expm1
from typing import Any, Protocol

from pytest_dp.randomness.branching import Weight


class Domain(Protocol):
    """Values in increasing order, numbered from `first` to the one before `last`."""

    @property
    def first(self) -> int: ...

    @property
    def last(self) -> int: ...

    def value(self, number: int) -> Any:
        """The value with a number."""

    def mass(self, start: int, stop: int) -> Weight:
        """The probability of values from one number up to another, times a constant."""

    def middle(self, start: int, stop: int) -> int:
        """A number that has about half of the mass on either side."""


@dataclass(frozen=True, slots=True)
class Evenly:
    """Whole numbers from `first` to before `last`, all equally likely; or values made of them."""

    first: int
    last: int

    def value(self, number: int) -> Any:
        return number

    def mass(self, start: int, stop: int) -> Weight:
        """How many values there are."""
        return Fraction(stop - start)

    def middle(self, start: int, stop: int) -> int:
        return (start + stop) // 2


@dataclass(frozen=True, slots=True)
class Spaced(Evenly):
    """The whole numbers ``offset + step * number``, all equally likely."""

    step: int
    offset: int

    def value(self, number: int) -> Any:
        return self.offset + self.step * number


def residues(domain: Evenly, start: int, stop: int, modulus: int) -> list[tuple[int, Spaced]]:
    """Each remainder, with the part of the domain that leaves it; empty if two are the same."""
    parts = []
    for number in range(start, min(start + modulus, stop)):
        value, step = domain.value(number), domain.value(number + modulus) - domain.value(number)
        parts.append((value % modulus, Spaced(0, -((number - stop) // modulus), step, value)))
    return parts if len({remainder for remainder, _ in parts}) == len(parts) else []


def first_where(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The smallest number above `low` for which a condition holds, as it does from there on.

    It holds at `high`, where it is not asked for. (`bisect` takes no negative numbers.)
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


BITS = 53
"""Given by the uniform floats that Python and numpy draw: multiples of 2**-53."""


class _Uniform(Evenly):
    """Uniform floats in [0, 1), as they are drawn."""

    __slots__ = ()

    def value(self, number: int) -> Any:
        return number * 2.0**-BITS


UNIFORM = _Uniform(0, 1 << BITS)
UNIFORM_ABOVE_0 = _Uniform(1, 1 << BITS)
"""Uniform floats of generators that draw again for a zero."""
ROOT_2, ROOT_2_PI = math.sqrt(2), math.sqrt(2 * math.pi)


@dataclass(frozen=True, slots=True)
class Smooth:
    """Floats in an interval, with the masses of a distribution that has a density.

    `below` and `above` are the distribution function and its complement, each accurate where it is
    small. Beyond `lowest` and `highest` the mass is less than floats hold.
    """

    below: Callable[[float], float]
    above: Callable[[float], float]
    density: Callable[[float], float]
    lowest: float
    highest: float

    @property
    def first(self) -> int:
        return _number(self.lowest)

    @property
    def last(self) -> int:
        return _number(self.highest) + 1

    def value(self, number: int) -> Any:
        """The float with a number: its bits, as a whole number that increases with the float."""
        size = float(struct.unpack("<d", struct.pack("<q", abs(number)))[0])
        return size if number >= 0 else -size

    def mass(self, start: int, stop: int) -> Weight:
        """By the distribution function, or its complement on the right; or by the density.

        The latter in narrow intervals, where Simpson's rule is accurate to 1e-15.
        """
        low = self.value(start)
        high = math.inf if stop >= self.last else self.value(stop)
        if high - low < 1e-3:  # differences of distribution functions lose digits here
            middle = low + (high - low) / 2
            sides = self.density(low) + self.density(high)
            return float((high - low) * (sides + 4 * self.density(middle)) / 6)
        if self.below(low) > 0.5:
            return max(self.above(low) - self.above(high), 0.0)
        return max(self.below(high) - self.below(low), 0.0)

    def middle(self, start: int, stop: int) -> int:
        """By bisection."""
        half = self.mass(start, stop) / 2
        middle = first_where(start, stop, lambda number: self.mass(start, number) >= half)
        return min(middle, stop - 1)


def _number(value: float) -> int:
    bits = int(struct.unpack("<q", struct.pack("<d", abs(value)))[0])
    return bits if value >= 0 else -bits


NORMAL = Smooth(
    lambda x: 0.5 * math.erfc(-x / ROOT_2),
    lambda x: 0.5 * math.erfc(x / ROOT_2),
    lambda x: exp(-x * x / 2) / ROOT_2_PI,
    lowest=-40.0,
    highest=40.0,
)
EXPONENTIAL = Smooth(
    lambda x: -expm1(-x) if x > 0 else 0.0,
    lambda x: exp(-x) if x > 0 else 1.0,
    lambda x: exp(-x),
    lowest=0.0,
    highest=750.0,
)
"""Standard distributions, on the intervals beyond which no float is drawn, or hardly ever."""
