"""Deferred numbers: sums of draws, and numbers with few values."""

from __future__ import annotations

import math
import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partialmethod
from itertools import product
from typing import Any

import numpy as np

from pytest_dp.known.trace import Trace, Traced, is_constant, simplest
from pytest_dp.limits import MAX_WORK
from pytest_dp.randomness.laws import INTEGERS, Law

Function = Callable[[Any, Any], Any]


def _operators(function: Function) -> tuple[Function, Function]:
    """A method for an operator with the number on its left, and one with it on its right."""
    return (
        lambda self, other: self._combined(other, function),
        lambda self, other: self._combined(other, lambda right, left: function(left, right)),
    )


class Finite(Traced):
    """One of few values, depending on the parts of the line that some draws are in.

    `cuts` has for each draw the points between the parts, increasing. `values` has one for each
    combination of parts, those of the last draw varying fastest.
    """

    __slots__ = ("cuts", "values")

    def __init__(
        self, trace: Trace, cuts: Mapping[int, tuple[float, ...]], values: Sequence[Any]
    ) -> None:
        super().__init__(trace)
        self.cuts, self.values = cuts, values

    def plain(self) -> Any:
        """The value where its draws are, as in a real run."""
        number = 0
        for draw, cuts in self.cuts.items():
            number = number * (len(cuts) + 1) + bisect_left(cuts, self.trace.plain(draw))
        return self.values[number]

    def simple(self) -> Any:
        """A constant, if by what was decided before only one value is possible."""
        if not self.cuts.keys() & self.trace.allowed.keys():
            return self
        parts = [
            [self.trace.probability(draw, cell) > 0 for cell in self.trace.cells(draw, cuts)]
            for draw, cuts in self.cuts.items()
        ]
        possible = {
            (type(value), value)
            for value, combination in zip(self.values, product(*parts), strict=True)
            if all(combination)
        }
        return next(iter(possible))[1] if len(possible) == 1 else self

    def decided(self) -> Any:
        """One of its values from here on; the mechanism is run once for each of them."""
        if len(self.cuts) == 1:
            ((draw, cuts),) = self.cuts.items()
            places: dict[Any, tuple[Any, ...]] = {}
            for value, cell in zip(self.values, self.trace.cells(draw, cuts), strict=True):
                places[value] = places.get(value, ()) + cell
            return list(places)[self.trace.restrict(draw, list(places.values()))]
        number = 0
        for draw, cuts in self.cuts.items():
            cells = self.trace.cells(draw, cuts)
            number = number * len(cells) + self.trace.restrict(draw, cells)
        return self.values[number]

    def with_cuts(self, cuts: Mapping[int, tuple[float, ...]]) -> list[Any]:
        """Its values by finer parts, of more draws."""
        lengths = [len(self.cuts[draw]) + 1 for draw in self.cuts]
        parts = []  # of each draw, the coarse parts that its fine parts are in
        for draw, fine in cuts.items():
            coarse = self.cuts.get(draw, ())
            parts.append([bisect_right(coarse, start) for start in (-math.inf, *fine)])
        order = list(cuts)
        positions = [order.index(draw) for draw in self.cuts]
        values = []
        for combination in product(*parts):
            number = 0
            for position, length in zip(positions, lengths, strict=True):
                number = number * length + combination[position]
            values.append(self.values[number])
        return values

    def map(self, function: Callable[[Any], Any]) -> Any:
        return Finite(self.trace, self.cuts, tuple(map(function, self.values))).simple()

    def _combined(self, other: Any, function: Function) -> Any:
        """A function of the number and another one."""
        other = simplest(other)
        if isinstance(other, Finite):
            return joined(self.trace, function, self, other)
        if isinstance(other, Traced):
            return function(self.decided(), other)
        if is_constant(other):
            return self.map(lambda value: function(value, other))
        return NotImplemented

    __add__, __radd__ = _operators(operator.add)
    __sub__, __rsub__ = _operators(operator.sub)
    __mul__, __rmul__ = _operators(operator.mul)
    __truediv__, __rtruediv__ = _operators(operator.truediv)
    __floordiv__, __rfloordiv__ = _operators(operator.floordiv)
    __mod__, __rmod__ = _operators(operator.mod)
    __and__, __rand__ = _operators(operator.and_)
    __or__, __ror__ = _operators(operator.or_)
    __xor__, __rxor__ = _operators(operator.xor)
    __lt__, __gt__ = _operators(operator.lt)
    __le__, __ge__ = _operators(operator.le)

    def __bool__(self) -> bool:
        truth = self.map(bool)
        return bool(truth.decided()) if isinstance(truth, Finite) else bool(truth)

    def __invert__(self) -> Any:
        return self.map(lambda value: not value if isinstance(value, bool | np.bool_) else ~value)

    def __neg__(self) -> Any:
        return self.map(operator.neg)

    def __abs__(self) -> Any:
        return self.map(abs)

    def converted(self, kind: type) -> Any:
        return self.map(kind)

    def __int__(self) -> int:
        return int(self.decided())

    __index__ = __trunc__ = __int__

    def __float__(self) -> float:
        return float(self.decided())

    def __round__(self, digits: int | None = None) -> Any:
        return self.map(lambda value: round(value, digits))

    def __eq__(self, other: object) -> Any:
        return True if other is self else self._combined(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return False if other is self else self._combined(other, operator.ne)


def all_cuts(numbers: Iterable[Finite]) -> dict[int, tuple[float, ...]]:
    """By draw, the points at which any of several numbers changes."""
    cuts: dict[int, tuple[float, ...]] = {}
    for number in numbers:
        for draw, points in number.cuts.items():
            cuts[draw] = tuple(sorted({*cuts.get(draw, ()), *points}))
    return cuts


def combinations_of(cuts: Mapping[int, tuple[float, ...]]) -> int:
    """How many combinations of parts of the line draws have between their cuts."""
    return math.prod(len(points) + 1 for points in cuts.values())


def joined(trace: Trace, function: Callable[..., Any], *numbers: Finite) -> Any:
    """A function of several numbers."""
    cuts = all_cuts(numbers)
    if combinations_of(cuts) > MAX_WORK // 2:
        trace.refuse(f"a value depends on more than {(MAX_WORK // 2):,} combinations of draws")
    values = [number.with_cuts(cuts) for number in numbers]
    return Finite(trace, cuts, tuple(map(function, *values))).simple()


class Affine(Traced):
    """A constant, and draws times constants.

    `terms` says by its number what each draw is multiplied by, which is never 0; there is at least
    one.
    """

    __slots__ = ("constant", "terms")

    def __init__(self, trace: Trace, terms: Mapping[int, float], constant: float) -> None:
        super().__init__(trace)
        self.terms, self.constant = terms, constant

    def plain(self) -> Any:
        """The sum of its draws, as in a real run."""
        value = math.fsum(by * self.trace.plain(draw) for draw, by in self.terms.items())
        value += self.constant
        return int(value) if self.is_whole else value

    @property
    def laws(self) -> list[Law]:
        return [self.trace.laws[draw] for draw in self.terms]

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole number, whatever is drawn."""
        numbers = [self.constant, *self.terms.values()]
        return all(law.lattice for law in self.laws) and all(
            float(number).is_integer() for number in numbers
        )

    def converted(self, kind: type) -> Any:
        return self if kind is float or self.is_whole else kind(self)

    def __round__(self, digits: int | None = None) -> Any:
        return self if self.is_whole else super().__round__(digits)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Finite):
            other = other.decided()
        if isinstance(other, Affine):
            terms = dict(self.terms)
            for draw, factor in other.terms.items():
                terms[draw] = terms.get(draw, 0.0) + factor
            return sum_of(self.trace, terms, self.constant + other.constant)
        if is_constant(other):
            return sum_of(self.trace, self.terms, self.constant + float(other))
        return NotImplemented

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self * -1.0

    def __sub__(self, other: Any) -> Any:
        return self + (-float(other) if is_constant(other) else other * -1)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def _scaled(self, other: Any, by: Callable[[float, float], float], name: str) -> Any:
        if isinstance(other, Finite):
            other = other.decided()
        if isinstance(other, Affine):
            self._refuse(f"a {name} of draws is no sum of draws")
        if not is_constant(other):
            return NotImplemented
        terms = {draw: by(factor, float(other)) for draw, factor in self.terms.items()}
        return sum_of(self.trace, terms, by(self.constant, float(other)))

    __mul__ = __rmul__ = partialmethod(_scaled, by=operator.mul, name="product")
    __truediv__ = partialmethod(_scaled, by=operator.truediv, name="ratio")

    def __rtruediv__(self, other: Any) -> Any:
        self._refuse("one over a draw is no sum of draws")

    def __floordiv__(self, other: Any) -> Any:
        self._refuse("a draw is rounded")

    __mod__ = __rmod__ = __divmod__ = __rfloordiv__ = __floordiv__

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __eq__(self, other: object) -> Any:
        return self._is(other, True)

    def __ne__(self, other: object) -> Any:
        return self._is(other, False)

    def _is(self, other: Any, equal: bool) -> Any:
        if other is self:
            return equal
        difference = self._minus(other)
        if difference is NotImplemented:
            return not equal
        if not isinstance(difference, Affine):
            return (difference == 0) == equal
        if not all(law.lattice for law in difference.laws):
            return not equal  # with probability 1
        both = (difference >= 0) & (difference <= 0)
        return both if equal else ~both if isinstance(both, Finite) else not both

    def _minus(self, other: Any) -> Any:
        if not isinstance(other, Traced) and not is_constant(other):
            return NotImplemented
        return self - other

    def _compared(self, other: Any, *, above: bool, equal: bool) -> Any:
        if isinstance(other, Finite) and len(self.terms) == 1:
            return self._compared_by_value(other, above=above, equal=equal)
        difference = self._minus(other)
        if difference is NotImplemented:
            return NotImplemented
        if not isinstance(difference, Affine):
            compare = {(True, True): operator.ge, (True, False): operator.gt}
            compare |= {(False, True): operator.le, (False, False): operator.lt}
            return compare[above, equal](difference, 0)
        if math.isnan(difference.constant):
            return False
        if not above:
            difference = -difference
        return difference.is_above(equal=equal)

    __gt__ = partialmethod(_compared, above=True, equal=False)
    __ge__ = partialmethod(_compared, above=True, equal=True)
    __lt__ = partialmethod(_compared, above=False, equal=False)
    __le__ = partialmethod(_compared, above=False, equal=True)

    def _compared_by_value(self, other: Finite, *, above: bool, equal: bool) -> Any:
        """Compared with each value of a number that has few; nothing is decided."""
        options = list(dict.fromkeys(other.values))
        answers = [self._compared(value, above=above, equal=equal) for value in options]
        undecided = [answer for answer in answers if isinstance(answer, Finite)]

        def answer(value: Any, *decided: bool) -> bool:
            truths = iter(decided)
            known = [next(truths) if isinstance(a, Finite) else a for a in answers]
            return bool(known[options.index(value)])

        return joined(self.trace, answer, other, *undecided)

    def is_above(self, *, equal: bool) -> Any:
        """Whether it is above 0, or at least 0."""
        if math.isinf(self.constant):
            return self.constant > 0
        if len(self.terms) > 1:
            if any(law.lattice for law in self.laws):
                self._refuse("sums of integer draws are compared")
            return self.trace.compare(self.terms, self.constant)
        ((draw, factor),) = self.terms.items()
        cut = -self.constant / factor
        upper = factor > 0
        if self.trace.laws[draw].lattice:
            within = equal == upper  # whether a draw at the cut belongs to the upper part
            cut = math.ceil(cut) - 0.5 if within else math.floor(cut) + 0.5
        return Finite(self.trace, {draw: (cut,)}, (not upper, upper)).simple()

    def simplest(self) -> Any:
        """The same number by its values, if there are few."""
        if len(self.terms) != 1:
            return self
        ((draw, factor),) = self.terms.items()
        law = self.trace.laws[draw]
        if law.family is not INTEGERS or law.parameter > MAX_WORK // 2:
            return self
        values = [self.constant + factor * value for value in range(int(law.parameter))]
        if all(value.is_integer() for value in values):
            values = list(map(int, values))
        return Finite(self.trace, {draw: tuple(k + 0.5 for k in range(len(values) - 1))}, values)


def sum_of(trace: Trace, terms: Mapping[int, float], constant: float) -> Affine | float:
    """A sum of draws, or a constant where none is left."""
    nonzero = {draw: factor for draw, factor in terms.items() if factor != 0}
    if not all(map(math.isfinite, nonzero.values())):
        trace.refuse("a draw is multiplied by what is not finite")
    return Affine(trace, nonzero, constant) if nonzero else constant
