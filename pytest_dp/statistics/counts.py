"""Counts of an event, on the input that is to make it likelier and on the other."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_dp.statistics.validation import check_count


@dataclass(frozen=True, slots=True)
class Counts:
    """Outputs in an event, of so many on either input: independent ones, or pairs.

    The outputs of a pair share their random numbers; pairs are independent of each other.
    """

    c1: int
    """Outputs in the event on the likelier input."""
    n1: int
    c2: int
    """The same on the other one."""
    n2: int
    both: int | None = None
    """Pairs with both outputs in the event; None if outputs did not come in pairs."""

    @classmethod
    def of_pairs(cls, both: int, only1: int, only2: int, pairs: int) -> Counts:
        """Make counts of coupled pairs: how many had both outputs in the event, or one of them."""
        return cls(both + only1, pairs, both + only2, pairs, both)

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
    def only1(self) -> int:
        """Pairs with only the output on the likelier input in the event."""
        return self.c1 - (self.both or 0)

    @property
    def only2(self) -> int:
        """Pairs with only the output on the other input in the event."""
        return self.c2 - (self.both or 0)

    @property
    def swapped(self) -> Counts:
        """These counts with D and D' exchanged."""
        return Counts(self.c2, self.n2, self.c1, self.n1, self.both)

    def check(self) -> None:
        """Raise ValueError unless these counts are possible."""
        if self.both is not None:
            pairs = {"both": self.both, "only1": self.only1, "only2": self.only2}
            for name, count in (*pairs.items(), (" + ".join(pairs), sum(pairs.values()))):
                check_count(name, count, self.n1)
        check_count("c1", self.c1, self.n1)
        check_count("c2", self.c2, self.n2)

    @property
    def cells(self) -> tuple[float, float, float, float]:
        """As a row of `resolution.told_apart`; of independent outputs what is to be expected."""
        runs = min(self.n1, self.n2)
        p1, p2 = self.c1 / self.n1, self.c2 / self.n2
        together = p1 * p2 if self.both is None else self.both / runs
        both, only1, only2 = together * runs, (p1 - together) * runs, (p2 - together) * runs
        return both, only1, only2, runs - both - only1 - only2


NO_COUNTS = Counts(0, 0, 0, 0)
