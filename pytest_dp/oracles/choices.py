"""Choices between the paths of a run, and draws that comparisons split."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NoReturn

from pytest_dp.oracles.domains import Evenly, OpenDraw, domain_of
from pytest_dp.oracles.lazy import Lazy
from pytest_dp.oracles.paths import Path, Weight
from pytest_dp.running.laws import Law
from pytest_dp.running.stand_ins import CannotInstrument, Instrument

NEGLIGIBLE = 1e-15
"""Probability of a path that is left out. Larger: what is rare is not known; smaller: enumeration
takes longer."""
MAX_BITS = 16
"""Random bits that are enumerated at once. More: enumeration never ends; fewer: losses are not
known."""
MAX_BRANCHES = 64
"""Values of a draw that are enumerated one by one. More: paths multiply; fewer: comparisons split
them one by one."""


class Choices(Instrument):
    """An instrument that chooses among branches as its path says.

    `inexact` counts the choices in this run whose weights are rounded; `abandoned` says whether the
    run was given up as too rare. `splits` has where draws were split, by the choices before: runs
    that begin alike split alike.
    """

    def __init__(self) -> None:
        super().__init__()
        self.splits: dict[tuple[int, ...], tuple[int, Sequence[Weight]]] = {}
        self.start(Path())

    def start(self, path: Path) -> None:
        self.path, self.inexact, self.abandoned, self.refusal = path, 0, False, ""

    def is_over(self) -> bool:
        """Whether the run was refused, or given up."""
        return self.abandoned or super().is_over()

    def choose(self, weights: Sequence[Weight]) -> int:
        """The branch that the run takes; raises CannotInstrument if the path is too rare by now."""
        if self.abandoned or self.path.weight < NEGLIGIBLE:
            self.give_up()
        self.inexact += any(isinstance(weight, float) for weight in weights)
        return self.path.choose(weights)

    def branch(self, weights: Sequence[Weight]) -> int:
        """Return the branch for a draw that is one of a few."""
        return self.choose(weights)

    def so_far(self) -> tuple[int, ...]:
        """The choices of this run."""
        return tuple(self.path.taken)

    def give_up(self) -> NoReturn:
        """End the run, whose output stays unknown."""
        self.abandoned = True
        raise CannotInstrument("too rare")

    def value_of(self, law: Law) -> Any:
        """A draw of a law that has a density."""
        return Lazy(OpenDraw(domain_of(law), self))

    def integer(self, count: int, low: int = 0) -> Any:
        """One of `count` whole numbers from `low` on, all equally likely."""
        if count <= MAX_BRANCHES:
            return low + (self.branch([Fraction(1, count)] * count) if count > 1 else 0)
        return Lazy(OpenDraw(Evenly(low, low + count), self), discrete=True)

    def random_bytes(self, count: int) -> bytes:
        """Random bytes, if they are few."""
        if 8 * count > MAX_BITS:
            self.refuse(f"{8 * count} random bits as bytes")
        return bytes(self.branch([Fraction(1, 256)] * 256) for _ in range(count))
