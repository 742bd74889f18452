"""One draw of a run, and how it is split."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NoReturn, Protocol

from pytest_dp.exact.domains import Domain, Evenly, residues
from pytest_dp.randomness.branching import Weight

MAX_RESIDUES = 64
"""Remainders that are ways to go."""


class Chooser(Protocol):
    """Decides which way a run goes, or gives up."""

    splits: dict[tuple[int, ...], tuple[int, list[Weight]]]
    """Where draws were split before, and the masses of both parts, by the choices before."""

    def choose(self, weights: list[Weight]) -> int:
        """The number of the way."""

    def so_far(self) -> tuple[int, ...]:
        """The choices of this run."""

    def refuse(self, reason: str) -> NoReturn:
        """Give up."""


class Drawn:
    """One draw of a run: the numbers of its domain that are still possible.

    Parameters
    ----------
    domain : Domain
    chooser : Chooser
    """

    __slots__ = ("chooser", "domain", "start", "stop")

    def __init__(self, domain: Domain, chooser: Chooser) -> None:
        self.domain, self.chooser = domain, chooser
        self.start, self.stop = domain.first, domain.last

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole number itself."""
        return isinstance(self.domain, Evenly) and isinstance(self.domain.value(0), int)

    def ends(self, of: Callable[[Any], Any]) -> tuple[Any, Any]:
        """What a monotone function may be at most, and at least: at both ends."""
        return of(self.domain.value(self.start)), of(self.domain.value(self.stop - 1))

    def holds(self, condition: Callable[[Any], Any]) -> bool:
        """Whether a condition on the value holds, which it does from some number on, or up to it.

        If it is open, both ways are gone, and each leaves a part of what was possible.
        """
        value = self.domain.value
        at_start = bool(condition(value(self.start)))
        if at_start == bool(condition(value(self.stop - 1))):
            return at_start
        before = self.chooser.so_far()
        if before not in self.chooser.splits:
            self.chooser.splits[before] = self._split(condition, at_start)
        return at_start if self._first_part(before) else not at_start

    def split_again(self) -> bool:
        """Whether it is split here as in an earlier run that began like this one; then it is."""
        before = self.chooser.so_far()
        if before not in self.chooser.splits:
            return False
        self._first_part(before)
        return True

    def apart(self, number: int) -> None:
        """Know whether it is the first, or the last, of what is possible."""
        mass, whole = self.domain.mass, self.domain.mass(self.start, self.stop)
        alone = mass(number, number + 1) / whole
        if self.chooser.choose([1 - alone, alone]):
            self.start, self.stop = number, number + 1
        elif number == self.start:
            self.start += 1
        else:
            self.stop -= 1

    def residue(self, modulus: int) -> int | None:
        """The remainder of a whole number, if there are few; each is a way to go."""
        domain = self.domain
        if not isinstance(domain, Evenly) or not self.is_whole:
            return None
        parts = residues(domain, self.start, self.stop, modulus) if modulus <= MAX_RESIDUES else []
        if not parts:
            return None
        weights: list[Weight] = [Fraction(part.last, self.stop - self.start) for _, part in parts]
        remainder, part = parts[self.chooser.choose(weights) if len(parts) > 1 else 0]
        self.domain, self.start, self.stop = part, part.first, part.last
        return remainder

    def _first_part(self, before: tuple[int, ...]) -> bool:
        """Go on with one part; whether that is the first."""
        high, parts = self.chooser.splits[before]
        if self.chooser.choose(parts):
            self.start = high
            return False
        self.stop = high
        return True

    def _split(self, condition: Callable[[Any], Any], at_start: bool) -> tuple[int, list[Weight]]:
        """The first number from which a condition is another than at the start, and both masses."""
        value = self.domain.value
        low, high = self.start, self.stop - 1
        while high - low > 1:
            middle = (low + high) // 2
            if bool(condition(value(middle))) == at_start:
                low = middle
            else:
                high = middle
        mass, whole = self.domain.mass, self.domain.mass(self.start, self.stop)
        return high, [mass(self.start, high) / whole, mass(high, self.stop) / whole]
