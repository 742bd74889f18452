"""One draw of a run, and how it is split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from pytest_dp.exact.domains import Domain, Evenly
from pytest_dp.randomness.branching import Weight


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

    def has_more_values_than(self, most: int) -> bool:
        """Whether it is a whole number among more than so many."""
        return type(self.domain) is Evenly and self.stop - self.start > most

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
        high, parts = self.chooser.splits[before]
        if self.chooser.choose(parts):
            self.start = high
            return not at_start
        self.stop = high
        return at_start

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
