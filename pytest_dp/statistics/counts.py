"""Counts of an event, on the input that is to make it likelier and on the other."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counts:
    """Outputs in an event, of so many independent ones on either input."""

    c1: int
    """Outputs in the event on the likelier input."""
    n1: int
    c2: int
    """The same on the other one."""
    n2: int
    planned: tuple[float, float] = (0.5, 0.25)
    """Probabilities of the event that were expected before anything was counted: by these, errors
    of either count are weighed. They must not depend on the counts."""

    @property
    def four(self) -> tuple[int, int, int, int]:
        """Outputs in the event, and in all, on the likelier input and on the other."""
        return self.c1, self.n1, self.c2, self.n2

    @property
    def hits(self) -> tuple[int, int]:
        """Outputs in the event, on the likelier input and on the other."""
        return self.c1, self.c2

    @property
    def runs(self) -> tuple[int, int]:
        """All outputs, on either."""
        return self.n1, self.n2

    @property
    def swapped(self) -> Counts:
        """These counts with D and D' exchanged."""
        return Counts(self.c2, self.n2, self.c1, self.n1, self.planned[::-1])


NO_COUNTS = Counts(0, 0, 0, 0)
