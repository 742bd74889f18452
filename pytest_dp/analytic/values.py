"""Numbers that are known as functions of draws: sums (`Affine`), or of few values (`Finite`).

A comparison of one draw with constants is a `Finite`: it is decided only if the mechanism asks. A
comparison of several draws is decided at once.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from pytest_dp.analytic.laws import Law
from pytest_dp.analytic.trace import Trace
from pytest_dp.analytic.traced import Traced, is_constant

MAX_CELLS = 4_096
"""Combinations of what draws may be, of which one value may depend."""


class Affine(Traced):
    """A constant, and draws times constants.

    Attributes
    ----------
    terms : dict of int to float
        What each draw is multiplied by, which is never 0; at least one.
    constant : float
    """

    __slots__ = ("constant", "terms")

    def __init__(self, trace: Trace, terms: Mapping[int, float], constant: float) -> None:
        super().__init__(trace)
        self.terms, self.constant = terms, constant

    @property
    def laws(self) -> list[Law]:
        """Of its draws."""
        return [self.trace.laws[draw] for draw in self.terms]

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole number, whatever is drawn."""
        numbers = [self.constant, *self.terms.values()]
        return all(law.lattice for law in self.laws) and all(
            float(number).is_integer() for number in numbers
        )

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

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Finite):
            other = other.decided()
        if isinstance(other, Affine):
            self._refuse("a product of draws is no sum of draws")
        if is_constant(other):
            factor = float(other)
            terms = {draw: factor * times for draw, times in self.terms.items()}
            return sum_of(self.trace, terms, factor * self.constant)
        return NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Finite):
            other = other.decided()
        if isinstance(other, Affine):
            self._refuse("a ratio of draws is no sum of draws")
        if is_constant(other):
            factor = float(other)
            terms = {draw: times / factor for draw, times in self.terms.items()}
            return sum_of(self.trace, terms, self.constant / factor)
        return NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        self._refuse("one over a draw is no sum of draws")

    def __floordiv__(self, other: Any) -> Any:
        self._refuse("a draw is rounded")

    __mod__ = __rmod__ = __divmod__ = __rfloordiv__ = __floordiv__

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, above=True, equal=False)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, above=True, equal=True)

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, above=False, equal=False)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, above=False, equal=True)

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

    def _compared_by_value(self, other: Finite, *, above: bool, equal: bool) -> Any:
        """With one of few values: one of few comparisons, none of which is decided."""
        options = list(dict.fromkeys(other.values))
        answers = [self._compared(value, above=above, equal=equal) for value in options]
        open_ones = [answer for answer in answers if isinstance(answer, Finite)]

        def answer(value: Any, *known: bool) -> bool:
            left = iter(known)
            each = [next(left) if isinstance(a, Finite) else a for a in answers]
            return bool(each[options.index(value)])

        return joined(self.trace, answer, other, *open_ones)

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

    def finite(self) -> Finite | None:
        """The same by its values, if there are few."""
        if len(self.terms) != 1:
            return None
        ((draw, factor),) = self.terms.items()
        law = self.trace.laws[draw]
        if law.family != "integers" or law.parameter > MAX_CELLS:
            return None
        values = [self.constant + factor * value for value in range(int(law.parameter))]
        whole = all(value.is_integer() for value in values)
        shown = tuple(int(value) if whole else value for value in values)
        return Finite(self.trace, {draw: tuple(k + 0.5 for k in range(len(values) - 1))}, shown)


def sum_of(trace: Trace, terms: Mapping[int, float], constant: float) -> Affine | float:
    """A sum of draws, or a constant where none is left."""
    kept = {draw: factor for draw, factor in terms.items() if factor != 0}
    if not all(map(math.isfinite, kept.values())):
        trace.refuse("a draw is multiplied by what is not finite")
    return Affine(trace, kept, constant) if kept else constant


class Finite(Traced):
    """One of few values, depending on in which parts of the line some draws are.

    Attributes
    ----------
    cuts : dict of int to tuple of float
        By draw, the points between the parts, increasing.
    values : tuple
        One for each combination of parts, those of the last draw varying fastest.
    """

    __slots__ = ("cuts", "values")

    def __init__(
        self, trace: Trace, cuts: Mapping[int, tuple[float, ...]], values: Sequence[Any]
    ) -> None:
        super().__init__(trace)
        self.cuts, self.values = cuts, values

    def simple(self) -> Any:
        """The constant that it is, if it is one by what was decided before."""
        if not self.cuts.keys() & self.trace.allowed.keys():
            return self
        possible = {(type(self.values[at]), self.values[at]) for at, _ in self.possible()}
        return next(iter(possible))[1] if len(possible) == 1 else self

    def possible(self) -> list[tuple[int, tuple[Any, ...]]]:
        """Combinations of parts that have a probability, by their numbers, and where draws are."""
        parts = [list(enumerate(self.trace.cells(draw, at))) for draw, at in self.cuts.items()]
        lengths = [len(part) for part in parts]
        found = []
        for chosen in product(*parts):
            if all(
                self.trace.probability(draw, where) > 0
                for draw, (_, where) in zip(self.cuts, chosen, strict=True)
            ):
                number = 0
                for (at, _), length in zip(chosen, lengths, strict=True):
                    number = number * length + at
                found.append((number, tuple(where for _, where in chosen)))
        return found

    def decided(self) -> Any:
        """One of its values, from now on; the run goes on with each of them in turn."""
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
        places = []
        for draw, at in cuts.items():
            own = self.cuts.get(draw)
            starts = [-math.inf, *at]
            places.append([bisect_right(own, x) if own else 0 for x in starts])
        order = list(cuts)
        own_places = [order.index(draw) for draw in self.cuts]
        values = []
        for chosen in product(*places):
            number = 0
            for place, length in zip(own_places, lengths, strict=True):
                number = number * length + chosen[place]
            values.append(self.values[number])
        return values

    def map(self, function: Callable[[Any], Any]) -> Any:
        """A function of it."""
        return Finite(self.trace, self.cuts, tuple(map(function, self.values))).simple()

    def _with(self, other: Any, function: Callable[[Any, Any], Any]) -> Any:
        other = simplest(other)
        if isinstance(other, Affine):
            return function(self.decided(), other)
        if is_constant(other):
            return self.map(lambda value: function(value, other))
        if isinstance(other, Finite):
            return joined(self.trace, function, self, other)
        return NotImplemented

    def __add__(self, other: Any) -> Any:
        return self._with(other, operator.add)

    def __radd__(self, other: Any) -> Any:
        return self._with(other, _swapped(operator.add))

    def __sub__(self, other: Any) -> Any:
        return self._with(other, operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, _swapped(operator.sub))

    def __mul__(self, other: Any) -> Any:
        return self._with(other, operator.mul)

    def __rmul__(self, other: Any) -> Any:
        return self._with(other, _swapped(operator.mul))

    def __truediv__(self, other: Any) -> Any:
        return self._with(other, operator.truediv)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with(other, _swapped(operator.truediv))

    def __floordiv__(self, other: Any) -> Any:
        return self._with(other, operator.floordiv)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._with(other, _swapped(operator.floordiv))

    def __mod__(self, other: Any) -> Any:
        return self._with(other, operator.mod)

    def __rmod__(self, other: Any) -> Any:
        return self._with(other, _swapped(operator.mod))

    def __and__(self, other: Any) -> Any:
        return self._with(other, operator.and_)

    def __rand__(self, other: Any) -> Any:
        return self._with(other, _swapped(operator.and_))

    def __or__(self, other: Any) -> Any:
        return self._with(other, operator.or_)

    def __ror__(self, other: Any) -> Any:
        return self._with(other, _swapped(operator.or_))

    def __xor__(self, other: Any) -> Any:
        return self._with(other, operator.xor)

    def __rxor__(self, other: Any) -> Any:
        return self._with(other, _swapped(operator.xor))

    def __lt__(self, other: Any) -> Any:
        return self._with(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._with(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._with(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._with(other, operator.ge)

    def __bool__(self) -> bool:
        truth = self.map(bool)
        return bool(truth.decided()) if isinstance(truth, Finite) else bool(truth)

    def __invert__(self) -> Any:
        return self.map(lambda value: not value if isinstance(value, bool | np.bool_) else ~value)

    def __neg__(self) -> Any:
        return self.map(operator.neg)

    def __abs__(self) -> Any:
        return self.map(abs)

    def __int__(self) -> int:
        return int(self.decided())

    __index__ = __trunc__ = __int__

    def __float__(self) -> float:
        return float(self.decided())

    def __round__(self, digits: int | None = None) -> Any:
        return self.map(lambda value: round(value, digits))

    def __eq__(self, other: object) -> Any:
        return True if other is self else self._with(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return False if other is self else self._with(other, operator.ne)


def _swapped(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda own, other: function(other, own)


def simplest(value: Any) -> Any:
    """A value by its few values, if it has few; not decided."""
    found = value.finite() if isinstance(value, Affine) else None
    return value if found is None else found


def joined(trace: Trace, function: Callable[..., Any], *parts: Finite) -> Any:
    """A function of several values that are `Finite`."""
    cuts: dict[int, tuple[float, ...]] = {}
    for part in parts:
        for draw, at in part.cuts.items():
            cuts[draw] = tuple(sorted({*cuts.get(draw, ()), *at}))
    if math.prod(len(at) + 1 for at in cuts.values()) > MAX_CELLS:
        trace.refuse(f"a value depends on more than {MAX_CELLS:,} combinations of draws")
    values = [part.with_cuts(cuts) for part in parts]
    return Finite(trace, cuts, tuple(map(function, *values))).simple()
