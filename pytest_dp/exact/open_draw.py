"""A draw of a run as a set of values that are still possible, which comparisons split."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol

from pytest_dp.exact.domains import Domain, Evenly, first_where, residues
from pytest_dp.limits import MANY
from pytest_dp.randomness.branching import Weight
from pytest_dp.randomness.stand_ins import CannotInstrument


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

    def split_again(self) -> bool:
        """Split the draw as in an earlier run that began like this one; whether there was one."""
        before = self.chooser.so_far()
        if before not in self.chooser.splits:
            return False
        self._first_part(before)
        return True

    def apart(self, number: int) -> None:
        """Split off the first, or the last, of the possible numbers."""
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
