"""Draws of a run as sets of values that are still possible, which comparisons split."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from pytest_dp.known.paths import Weight
from pytest_dp.limits import MANY
from pytest_dp.randomness import laws
from pytest_dp.randomness.laws import Law
from pytest_dp.randomness.stand_ins import CannotInstrument


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


@dataclass(frozen=True, slots=True)
class Smooth:
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


def domain_of(law: Law) -> Domain:
    """The values of draws with a density."""
    return UNIFORM if law.family is laws.UNIFORM else Smooth(law)


def float_of(number: int) -> float:
    """The float with a number: its bits, as a whole number that increases with the float."""
    size = float(struct.unpack("<d", struct.pack("<q", abs(number)))[0])
    return size if number >= 0 else -size


def number_of(value: float) -> int:
    """The number of a float."""
    bits = int(struct.unpack("<q", struct.pack("<d", abs(value)))[0])
    return bits if value >= 0 else -bits


class Chooser(Protocol):
    """Chooses the branch that a run takes, or ends it."""

    splits: dict[tuple[int, ...], tuple[int, list[Weight]]]
    """Where draws were split before, and the masses of both parts, by the choices before."""

    def choose(self, weights: list[Weight]) -> int:
        """The number of the branch."""

    def so_far(self) -> tuple[int, ...]:
        """The choices of this run."""

    def note(self, reason: str) -> None:
        """Note that the run cannot be enumerated."""

    def is_over(self) -> bool:
        """Whether nothing more is enumerated in this run."""


class Draw(Protocol):
    """A draw of a run, as far as functions of it ask for it."""

    @property
    def chooser(self) -> Any:
        """The instrument."""

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole number itself."""

    def ends(self, function: Callable[[Any], Any]) -> tuple[Any, Any]:
        """A function of the smallest and of the largest possible value."""

    def holds(self, condition: Callable[[Any], Any]) -> Any:
        """Whether a condition on the value holds, which it does from a number on, or up to one."""

    def settle(self) -> None:
        """Become one number, as in a run that is refused."""

    def parted(self, function: Callable[[Any], Any]) -> bool:
        """Decide in which part it is; False if there is no way to do so."""

    def split_off(self, first: bool, last: bool) -> None:
        """Split off the first, or the last, of the possible numbers, or both."""

    def few_values(self, function: Callable[[Any], Any]) -> Any:
        """A function with few values, as a number that may be any of them."""

    def residue(self, modulus: int) -> int | None:
        """The remainder of a whole number, if there are few."""


class OpenDraw:
    """A draw of a run: the interval of its domain, by numbers, that is still possible."""

    __slots__ = ("chooser", "domain", "start", "stop")

    def __init__(self, domain: Domain, chooser: Chooser) -> None:
        self.domain, self.chooser = domain, chooser
        self.start, self.stop = domain.first, domain.last

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole number itself."""
        return isinstance(self.domain, Evenly) and isinstance(self.domain.value(0), int)

    def ends(self, function: Callable[[Any], Any]) -> tuple[Any, Any]:
        """A function of the smallest and of the largest possible value."""
        return function(self.domain.value(self.start)), function(self.domain.value(self.stop - 1))

    def holds(self, condition: Callable[[Any], Any]) -> bool:
        """Whether a condition on the value holds, which it does from a number on, or up to one.

        If that is open, the draw is split: there is a branch for each part of what was possible.
        """
        if self.chooser.is_over():
            self.settle()
        value = self.domain.value
        at_start = bool(condition(value(self.start)))
        if at_start == bool(condition(value(self.stop - 1))):
            return at_start
        before = self.chooser.so_far()
        if before not in self.chooser.splits:
            self.chooser.splits[before] = self._split(condition, at_start)
        return at_start if self._first_part(before) else not at_start

    def settle(self) -> None:
        """Become one number, as in a run that is not enumerated."""
        self.start = self.domain.middle(self.start, self.stop)
        self.stop = self.start + 1

    def parted(self, function: Callable[[Any], Any]) -> bool:
        """Split the draw where a function has about half of its mass; False if it cannot be."""
        before, count = self.chooser.so_far(), self.stop - self.start
        if before in self.chooser.splits:  # an earlier run began like this one
            self._first_part(before)
            return True
        low, high = sorted(self.ends(function))
        middle = function(self.domain.value(self.domain.middle(self.start, self.stop)))
        if low <= middle < high:
            self.holds(lambda x: function(x) <= middle)
        else:
            self.holds(lambda x: function(x) < high)
        return self.stop - self.start < count

    def split_off(self, first: bool, last: bool) -> None:
        """Split off the first, or the last, of the possible numbers, or both."""
        if first and self.stop - self.start > 1:
            self._apart(self.start)
        if last and self.stop - self.start > 1:
            self._apart(self.stop - 1)

    def few_values(self, function: Callable[[Any], Any]) -> Any:
        """Not here, where each value becomes a branch."""
        raise NotImplementedError

    def _apart(self, number: int) -> None:
        share = self.domain.mass(number, number + 1) / self.domain.mass(self.start, self.stop)
        if self._choose([1 - share, share]):
            self.start, self.stop = number, number + 1
        elif number == self.start:
            self.start += 1
        else:
            self.stop -= 1

    def residue(self, modulus: int) -> int | None:
        """The remainder of a whole number, if there are few; there is a branch for each."""
        domain = self.domain
        if not isinstance(domain, Evenly) or not self.is_whole:
            return None
        parts = residues(domain, self.start, self.stop, modulus) if modulus <= MANY else []
        if not parts:
            return None
        weights: list[Weight] = [Fraction(part.last, self.stop - self.start) for _, part in parts]
        remainder, part = parts[self._choose(weights) if len(parts) > 1 else 0]
        self.domain, self.start, self.stop = part, part.first, part.last
        return remainder

    def _choose(self, weights: list[Weight]) -> int:
        try:
            return self.chooser.choose(weights)
        except CannotInstrument:  # this run is over, but has to end
            return max(range(len(weights)), key=weights.__getitem__)

    def _first_part(self, before: tuple[int, ...]) -> bool:
        """Go on with one of the two parts; whether that is the first."""
        high, parts = self.chooser.splits[before]
        if self._choose(parts):
            self.start = high
            return False
        self.stop = high
        return True

    def _split(self, condition: Callable[[Any], Any], at_start: bool) -> tuple[int, list[Weight]]:
        """The number from which a condition differs from the start, and the share of both parts."""

        def differs(number: int) -> bool:
            return bool(condition(self.domain.value(number))) != at_start

        high = first_where(self.start, self.stop - 1, differs)
        mass, total = self.domain.mass, self.domain.mass(self.start, self.stop)
        return high, [mass(self.start, high) / total, mass(high, self.stop) / total]
