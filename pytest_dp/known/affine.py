"""Numbers that are sums: a constant, and draws times constants.

A comparison of one draw with constants is a `Finite`; a comparison of several draws is decided at
once, and the mechanism is run again for the other answer. Other functions of one draw are `Lazy`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from functools import partialmethod
from typing import Any

from pytest_dp.known.finite import Finite, TracedDraw, joined
from pytest_dp.known.lazy import Lazy
from pytest_dp.known.trace import Function, Trace, Traced, is_constant, operators, simplest
from pytest_dp.limits import MAX_WORK
from pytest_dp.randomness.laws import INTEGERS, Law


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
        value = math.fsum(self.summands(self.trace.plain))
        return int(value) if self.is_whole else value

    def summands(self, value_of: Callable[[int], float]) -> list[float]:
        """Where its draws have some values."""
        return [self.constant, *(by * value_of(draw) for draw, by in self.terms.items())]

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

    def __converted__(self, kind: type) -> Any:
        if kind is bool:
            return self != 0
        return self if kind is float or self.is_whole else self.monotone().__converted__(kind)

    def monotone(self) -> Lazy:
        """The same number as a function of one draw."""
        if len(self.terms) > 1:
            self._refuse("a function of several draws that is no sum of them")
        ((draw, factor),) = self.terms.items()
        constant = self.constant
        if self.is_whole:
            constant, factor = int(constant), int(factor)
        of_draw = TracedDraw(self.trace, draw)
        return Lazy(of_draw, lambda x: constant + factor * x, discrete=of_draw.is_whole)

    def through(self, function: Callable[[Any], Any], lowest: float | None) -> Any:
        return self.monotone().through(function, lowest)

    def __round__(self, digits: int | None = None) -> Any:
        return self if self.is_whole else round(self.monotone(), digits)

    def __trunc__(self) -> Any:
        return self if self.is_whole else math.trunc(self.monotone())

    def __floor__(self) -> Any:
        return self if self.is_whole else math.floor(self.monotone())

    def __ceil__(self) -> Any:
        return self if self.is_whole else math.ceil(self.monotone())

    def __int__(self) -> int:
        return int(simplest(self) if self.is_whole else self.monotone())

    def __index__(self) -> int:
        return operator.index(simplest(self)) if self.is_whole else super().__index__()

    def __add__(self, other: Any) -> Any:
        other = _few(other)
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
        return self + (-float(other) if is_constant(other) else -_few(other))

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def combined(self, other: Any, by: Function) -> Any:
        """A function that is no sum, of one draw and a number."""
        number = simplest(self)
        return by(number if isinstance(number, Finite) else self.monotone(), _few(other))

    def _scaled(self, other: Any, by: Callable[[float, float], float], name: str) -> Any:
        other = _few(other)
        if isinstance(other, Affine):
            self._refuse(f"a {name} of draws is no sum of draws")
        if not is_constant(other):
            return NotImplemented
        terms = {draw: by(factor, float(other)) for draw, factor in self.terms.items()}
        return sum_of(self.trace, terms, by(self.constant, float(other)))

    __mul__ = __rmul__ = partialmethod(_scaled, by=operator.mul, name="product")
    __truediv__ = partialmethod(_scaled, by=operator.truediv, name="ratio")
    __rtruediv__ = operators(operator.truediv)[1]
    __floordiv__, __rfloordiv__ = operators(operator.floordiv)
    __mod__, __rmod__ = operators(operator.mod)
    __divmod__, __rdivmod__ = operators(divmod)
    __pow__, __rpow__ = operators(operator.pow)

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
        other = _few(other) if type(other) is Lazy else other
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


def _few(other: Any) -> Any:
    """The other number of an operation, decided if it has few values."""
    other = simplest(other) if type(other) is Lazy else other
    return other.decided() if isinstance(other, Finite) else other


def sum_of(trace: Trace, terms: Mapping[int, float], constant: float) -> Affine | float:
    """A sum of draws, or a constant where none is left."""
    nonzero = {draw: factor for draw, factor in terms.items() if factor != 0}
    if not all(map(math.isfinite, nonzero.values())):
        trace.refuse("a draw is multiplied by what is not finite")
    return Affine(trace, nonzero, constant) if nonzero else constant
