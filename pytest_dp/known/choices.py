"""Choices between the paths of a run, and draws of Python that are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NoReturn, Self

from pytest_dp.known.lazy import Lazy
from pytest_dp.known.open_draw import Evenly, OpenDraw, domain_of
from pytest_dp.known.paths import Path, Weight
from pytest_dp.limits import MANY, NEGLIGIBLE, SEVERAL
from pytest_dp.randomness.laws import NORMAL, UNIFORM, Law
from pytest_dp.randomness.requests import SystemFunctions
from pytest_dp.randomness.stand_ins import CannotInstrument, Instrument

BYTE_WEIGHTS = [Fraction(1, 256)] * 256


class Abandoned(CannotInstrument):
    """A path is too rare to be followed to its end."""


class Choices(Instrument):
    """An instrument that chooses among branches as its path says.

    `inexact` counts the choices in this run whose weights are rounded; `abandoned` says whether the
    run was given up as too rare. `splits` has where draws were split, by the choices before: runs
    that begin alike split alike.
    """

    def __init__(self) -> None:
        super().__init__()
        self.splits: dict[tuple[int, ...], tuple[int, list[Weight]]] = {}
        self.start(Path())

    def start(self, path: Path) -> None:
        self.path, self.inexact, self.abandoned, self.refusal = path, 0, False, ""

    def is_over(self) -> bool:
        """Whether the run was refused, or given up."""
        return self.abandoned or super().is_over()

    def choose(self, weights: Sequence[Weight]) -> int:
        """The branch that the run takes; raises Abandoned if it has become too rare."""
        if self.abandoned or self.path.weight < NEGLIGIBLE:
            self.give_up()
        self.inexact += any(isinstance(weight, float) for weight in weights)
        return self.path.choose(weights)

    def so_far(self) -> tuple[int, ...]:
        """The choices of this run."""
        return tuple(self.path.taken)

    def give_up(self) -> NoReturn:
        """End the run, whose output stays unknown."""
        self.abandoned = True
        raise Abandoned("too rare")

    def value_of(self, law: Law) -> Any:
        """A draw of a law that has a density."""
        return Lazy(OpenDraw(domain_of(law), self))

    def integer(self, count: int, low: int = 0) -> Any:
        """One of `count` whole numbers from `low` on, all equally likely."""
        if count <= MANY:
            return low + (self.choose([Fraction(1, count)] * count) if count > 1 else 0)
        return Lazy(OpenDraw(Evenly(low, low + count), self), discrete=True)

    def random_bytes(self, count: int) -> bytes:
        """Random bytes, if they are few."""
        if 8 * count > 2 * SEVERAL:
            self.refuse(f"{8 * count} random bits as bytes")
        return bytes(self.choose(BYTE_WEIGHTS) for _ in range(count))


class PythonDraws(SystemFunctions):
    """The methods of Python's generators, on lazy values.

    Methods that Python writes in terms of uniform and whole numbers are inherited.
    """

    def __new__(cls, instrument: Choices) -> Self:  # noqa: ARG004
        return super().__new__(cls)

    def __init__(self, instrument: Choices) -> None:
        super().__init__(0)
        self._choices = instrument

    def random(self) -> Any:
        return self._choices.value_of(Law(UNIFORM))

    def getrandbits(self, k: int, /) -> Any:
        return self._choices.integer(1 << k) if k else 0

    def _randbelow(self, n: int) -> Any:
        return self._choices.integer(n)

    def randbytes(self, n: int) -> bytes:
        return self._choices.random_bytes(n)

    def normalvariate(self, mu: float = 0.0, sigma: float = 1.0) -> Any:
        return mu + sigma * self._choices.value_of(Law(NORMAL))
