"""The choices of a run, and the values that they are made for."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NoReturn

from pytest_dp.exact.domains import Domain, Evenly
from pytest_dp.exact.drawn import Drawn
from pytest_dp.exact.lazy import Lazy
from pytest_dp.randomness.branching import Path, Weight
from pytest_dp.randomness.stand_ins import CannotInstrument, Instrument

RAREST = 1e-15
"""Weight of a path that is not followed any further: it is counted as not known. A single float of
those that a uniform draw may be has less."""
MAX_EAGER = 64
"""Ways that a draw of a whole number goes at once; of more values, only as it is asked."""
MAX_BITS = 16
"""Random bits that are enumerated where they are asked for as bytes."""


ALL_BYTES = [Fraction(1, 256)] * 256


class Abandoned(CannotInstrument):
    """A path is too rare to be followed to its end."""


class Choices(Instrument):
    """An instrument that goes one of several ways, as its path says.

    Attributes
    ----------
    path : Path
        Of the run under way.
    inexact : int
        Choices in this run whose weights are rounded.
    abandoned : bool
        Whether the run was given up as too rare.
    splits : dict
        Where draws were split, by the choices before: runs that begin alike split alike.
    """

    def __init__(self) -> None:
        super().__init__()
        self.splits: dict[tuple[int, ...], tuple[int, list[Weight]]] = {}
        self.start(Path())

    def start(self, path: Path) -> None:
        """A new run begins."""
        self.path, self.inexact, self.abandoned, self.refusal = path, 0, False, ""

    def choose(self, weights: Sequence[Weight]) -> int:
        """Which way the run goes.

        Raises
        ------
        Abandoned
            If it has become too rare.
        """
        if self.abandoned or self.path.weight < RAREST:
            self.give_up()
        self.inexact += any(isinstance(weight, float) for weight in weights)
        return self.path.choose(weights)

    def so_far(self) -> tuple[int, ...]:
        """The choices of this run."""
        return tuple(self.path.taken)

    def give_up(self) -> NoReturn:
        """End the run: what it would give is not known.

        Raises
        ------
        Abandoned
        """
        self.abandoned = True
        raise Abandoned("too rare")

    def one_of(self, domain: Domain) -> Lazy:
        """A value that is not known yet."""
        return Lazy(Drawn(domain, self))

    def below(self, count: int, first: int = 0) -> Any:
        """A whole number among `count`, each as likely."""
        if count <= MAX_EAGER:
            return first + (self.choose([Fraction(1, count)] * count) if count > 1 else 0)
        return Lazy(Drawn(Evenly(first, first + count), self), whole=True)

    def some_bytes(self, count: int) -> bytes:
        """Random bytes, if they are few."""
        if 8 * count > MAX_BITS:
            self.refuse(f"{8 * count} random bits as bytes")
        return bytes(self.choose(ALL_BYTES) for _ in range(count))
