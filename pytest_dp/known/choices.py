"""Choices between the paths of a run, and draws that comparisons split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NoReturn

from pytest_dp.known.domains import Domain, Evenly, LazyDraw, domain_of
from pytest_dp.known.lazy import Lazy
from pytest_dp.known.paths import Path, Weight
from pytest_dp.limits import MANY, NEGLIGIBLE, SEVERAL
from pytest_dp.randomness.laws import Law
from pytest_dp.randomness.stand_ins import CannotInstrument, Instrument


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
        if count <= MANY:
            return low + (self.choose([Fraction(1, count)] * count) if count > 1 else 0)
        return Lazy(OpenDraw(Evenly(low, low + count), self), discrete=True)

    def random_bytes(self, count: int) -> bytes:
        """Random bytes, if they are few."""
        if 8 * count > 2 * SEVERAL:
            self.refuse(f"{8 * count} random bits as bytes")
        return bytes(self.choose([Fraction(1, 256)] * 256) for _ in range(count))


class OpenDraw(LazyDraw):
    """A draw of a run: the interval of its domain, by numbers, that is still possible.

    If what is asked is open, the draw is split: there is a branch for each part.
    """

    __slots__ = ("start", "stop")
    instrument: Choices

    def __init__(self, domain: Domain, instrument: Choices) -> None:
        super().__init__(domain, instrument)
        self.start, self.stop = domain.first, domain.last

    def possible(self) -> tuple[int, int]:
        return self.start, self.stop - 1

    def split(self, condition: Callable[[Any], Any], at_start: bool) -> bool:
        before = self.instrument.so_far()
        if before not in self.instrument.splits:
            high = self.first_other(condition, at_start, *self.possible())
            mass, total = self.domain.mass, self.domain.mass(self.start, self.stop)
            shares = mass(self.start, high) / total, mass(high, self.stop) / total
            self.instrument.splits[before] = high, shares
        return at_start if self._first_part(before) else not at_start

    def settle(self) -> None:
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

    def residue(self, modulus: int) -> int | None:
        """If there are few remainders, there is a branch for each."""
        if not isinstance(self.domain, Evenly) or not self.is_whole or modulus > MANY:
            return None
        parts = self.domain.residues(self.start, self.stop, modulus)
        if not parts:
            return None
        weights: list[Weight] = [Fraction(part.last, self.stop - self.start) for _, part in parts]
        remainder, part = parts[self._choose(weights) if len(parts) > 1 else 0]
        self.domain, self.start, self.stop = part, part.first, part.last
        return remainder

    def _choose(self, weights: Sequence[Weight]) -> int:
        try:
            return self.instrument.choose(weights)
        except CannotInstrument:  # this run is over, but has to end
            return max(range(len(weights)), key=weights.__getitem__)

    def _first_part(self, before: tuple[int, ...]) -> bool:
        """Go on with one of the two parts; whether that is the first."""
        high, parts = self.instrument.splits[before]
        if self._choose(parts):
            self.start = high
            return False
        self.stop = high
        return True
