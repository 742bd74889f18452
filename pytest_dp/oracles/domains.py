"""The possible values of a draw, numbered in increasing order, which comparisons split."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pytest_dp.oracles.paths import Weight
from pytest_dp.running import laws
from pytest_dp.running.laws import Law
from pytest_dp.running.stand_ins import CannotInstrument


@dataclass(frozen=True, slots=True)
class Evenly:
    """The numbers ``step * number`` from `first` to before `last`, all equally likely."""

    first: int
    last: int
    step: float = 1

    def value(self, number: int) -> Any:
        return self.step * number

    def number(self, value: float) -> int:
        """Return the number of about this value."""
        return int(value / self.step)

    def mass(self, start: int, stop: int) -> Weight:
        """How many values there are."""
        return Fraction(stop - start)

    def middle(self, start: int, stop: int) -> int:
        return (start + stop) // 2


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

    def number(self, value: float) -> int:
        """Return the number of a value."""
        return number_of(value)

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


class OpenDraw:
    """A draw of a run: the interval of its domain, by numbers, that is still possible.

    If what is asked is open, the draw is split: there is a branch for each part. `instrument` is
    what answered it, and chooses the branches.
    """

    __slots__ = ("domain", "instrument", "start", "stop")

    def __init__(self, domain: Domain, instrument: Any) -> None:
        self.domain, self.instrument = domain, instrument
        self.start, self.stop = domain.first, domain.last

    @property
    def is_whole(self) -> bool:
        """Return whether it is a whole number itself."""
        return isinstance(self.domain, Evenly) and isinstance(self.domain.value(0), int)

    def possible(self) -> tuple[int, int]:
        """Return the numbers of the first and of the last possible value."""
        return self.start, self.stop - 1

    def ends(self, function: Callable[[Any], Any]) -> tuple[Any, Any]:
        """Return a function of the smallest and of the largest possible value."""
        first, last = self.possible()
        return function(self.domain.value(first)), function(self.domain.value(last))

    def holds(self, condition: Callable[[Any], Any], near: float | None = None) -> bool:
        """Decide whether a condition holds, which it does from a number on, or up to one.

        `near` is a value beside which it changes, if that is known.
        """
        if self.instrument.is_over():
            self.settle()
        at_start, at_end = (bool(end) for end in self.ends(condition))
        return at_start if at_start == at_end else self._split(condition, at_start, near)

    def _split(self, condition: Callable[[Any], Any], at_start: bool, near: float | None) -> bool:
        before = self.instrument.so_far()
        if before not in self.instrument.splits:
            high = self._first_other(condition, at_start, near)
            mass, total = self.domain.mass, self.domain.mass(self.start, self.stop)
            shares = mass(self.start, high) / total, mass(high, self.stop) / total
            self.instrument.splits[before] = high, shares
        return at_start if self._first_part(before) else not at_start

    def _first_other(
        self, condition: Callable[[Any], Any], at_start: bool, near: float | None
    ) -> int:
        """Return the first number at which a condition is another than at the start.

        (`bisect` takes no negative numbers.)
        """
        low, high = self.possible()
        guesses = []
        if near is not None and math.isfinite(near):
            guess = self.domain.number(near)
            guesses = [guess, guess - 1, guess + 1, guess + 2]
        while high - low > 1:
            middle = guesses.pop() if guesses else (low + high) // 2
            if low < middle < high:
                differs = bool(condition(self.domain.value(middle)) != at_start)
                low, high = (low, middle) if differs else (middle, high)
        return high

    def settle(self) -> None:
        """Become one number, as in a run that is refused."""
        self.start = self.domain.middle(self.start, self.stop)
        self.stop = self.start + 1

    def parted(self, function: Callable[[Any], Any]) -> bool:
        """Split the draw where a function has about half of its mass; False if it cannot be."""
        before, count = self.instrument.so_far(), self.stop - self.start
        if before in self.instrument.splits:  # an earlier run began like this one
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

    def _apart(self, number: int) -> None:
        share = self.domain.mass(number, number + 1) / self.domain.mass(self.start, self.stop)
        if self._choose([1 - share, share]):
            self.start, self.stop = number, number + 1
        elif number == self.start:
            self.start += 1
        else:
            self.stop -= 1

    def _choose(self, weights: Sequence[Weight]) -> int:
        try:
            branch: int = self.instrument.choose(weights)
        except CannotInstrument:  # this run is over, but has to end
            return max(range(len(weights)), key=weights.__getitem__)
        return branch

    def _first_part(self, before: tuple[int, ...]) -> bool:
        """Go on with one of the two parts; return whether that is the first."""
        high, parts = self.instrument.splits[before]
        if self._choose(parts):
            self.start = high
            return False
        self.stop = high
        return True
