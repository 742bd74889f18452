"""What traced numbers have in common; what Python and numpy do with numbers is mostly refused."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.random import Generator

from pytest_dp.known.monotone import is_draw
from pytest_dp.known.paths import Path
from pytest_dp.limits import MANY, THOUSAND
from pytest_dp.randomness.laws import Law
from pytest_dp.randomness.requests import is_diagnostic
from pytest_dp.randomness.stand_ins import CannotInstrument, Instrument

Interval = tuple[float, float]
"""Open on the left, closed on the right; this makes a difference only for integers."""
EVERYWHERE: tuple[Interval, ...] = ((-math.inf, math.inf),)

Function = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Condition:
    """That a sum of draws, each by its number times a factor, and a constant is above 0."""

    terms: Mapping[int, float]
    constant: float


class Trace:
    """What is known of the draws of a run.

    The path chooses the answer of each comparison, and the instrument is refused what cannot be
    traced. `laws` are those of the draws, by their numbers. `allowed` says where draws lie on this
    path; others may be anywhere. Each of `conditions` is on several draws. `cut_off` has draws with
    endless values, of which some were told apart as far as tails are not negligible. `of_ufunc` and
    `of_function` say what functions of numpy do with traced numbers.
    """

    def __init__(
        self,
        path: Path,
        instrument: Instrument,
        of_ufunc: Callable[..., Any],
        of_function: Callable[..., Any],
    ) -> None:
        self.path, self.instrument = path, instrument
        self._plain: dict[int, float] = {}
        self.of_ufunc, self.of_function = of_ufunc, of_function
        self.laws: list[Law] = []
        self.allowed: dict[int, tuple[Interval, ...]] = {}
        self.conditions: list[Condition] = []
        self.cut_off: set[int] = set()

    def refuse(self, reason: str) -> NoReturn:
        """Give up what is being traced."""
        self.instrument.refuse(reason)

    def plain(self, draw: int) -> float:
        """The value of a draw in a run that is refused: one that is allowed, if that can be had."""
        if draw not in self._plain:
            values = self.laws[draw].draws(self.instrument.plain(Generator), MANY).tolist()
            allowed = self.allowed.get(draw, EVERYWHERE)
            fitting = (x for x in values if any(low < x <= high for low, high in allowed))
            self._plain[draw] = next(fitting, values[0])
        return self._plain[draw]

    def new(self, law: Law) -> int:
        """Add a draw, and return its number."""
        self.laws.append(law)
        return len(self.laws) - 1

    def cells(self, draw: int, cuts: Sequence[float]) -> list[tuple[Interval, ...]]:
        """Where a draw may be, between cuts; these cells may be empty."""
        edges = [-math.inf, *cuts, math.inf]
        allowed = self.allowed.get(draw, EVERYWHERE)
        return [
            tuple(
                (max(low, left), min(high, right))
                for left, right in allowed
                if max(low, left) < min(high, right)
            )
            for low, high in pairwise(edges)
        ]

    def probability(self, draw: int, intervals: Sequence[Interval]) -> float:
        """That a draw lies in any of the intervals, whatever is allowed on this path.

        A continuous draw is no single number: floats that are cut off by rounding are no outcome.
        """
        law = self.laws[draw]
        if not law.lattice:
            intervals = [(low, high) for low, high in intervals if high > math.nextafter(low, high)]
        return math.fsum(
            math.exp(float(law.log_between(np.array(low), np.array(high))))
            for low, high in intervals
        )

    def restrict(self, draw: int, choices: Sequence[tuple[Interval, ...]]) -> int:
        """Decide in which of several sets of intervals a draw lies; returns its number."""
        weights = [self.probability(draw, choice) for choice in choices]
        total = math.fsum(weights)
        if not total > 0:
            self.refuse("it goes a way of which the probability is too small for floats")
        number = self._choose([weight / total for weight in weights])
        self.allowed[draw] = choices[number]
        return number

    def _choose(self, weights: Sequence[float]) -> int:
        if len(self.path.taken) >= THOUSAND:
            self.refuse(f"it compares draws more than {THOUSAND:,} times")
        return self.path.choose(weights)

    def compare(self, terms: Mapping[int, float], constant: float) -> bool:
        """Decide whether a sum of several draws is above 0."""
        above = self._choose([0.5, 0.5]) == 0
        sign = 1.0 if above else -1.0
        self.require({draw: sign * by for draw, by in terms.items()}, sign * constant)
        return above

    def require(self, terms: Mapping[int, float], constant: float) -> None:
        """Add the condition that a sum of draws is above 0."""
        self.conditions.append(Condition(terms, constant))


def is_constant(value: Any) -> bool:
    """Whether a value is a plain number."""
    plain = isinstance(value, bool | int | float | np.generic) and not isinstance(value, np.void)
    return plain and not is_draw(value)


def simplest(value: Any) -> Any:
    """A number by its values, if it is traced and has few; nothing is decided."""
    return value.simplest() if is_draw(value) else value


def plain(value: Any) -> Any:
    """The same, with numbers as in a real run in place of those that are traced."""
    if is_draw(value):
        return value.plain()
    if isinstance(value, np.ndarray) and value.dtype == object:
        return np.array([plain(element) for element in value.flat]).reshape(value.shape)
    if type(value) in (list, tuple):
        return type(value)(map(plain, value))
    if type(value) is dict:
        return {name: plain(element) for name, element in value.items()}
    return value


_BINARY = "add sub mul truediv floordiv mod pow and or xor lt le gt ge eq ne"
_OPERATORS: dict[str, Callable[..., Any]] = {
    f"__{name}__": getattr(operator, f"__{name}__")
    for name in f"{_BINARY} neg abs invert index".split()
}
_OPERATORS |= {
    f"__{by.__name__}__": by
    for by in (
        *(divmod, bool, float, int, str, repr, format, round),
        math.trunc,
        math.floor,
        math.ceil,
    )
}
PLAINLY: dict[str, Callable[..., Any]] = {
    **_OPERATORS,
    **{
        f"__r{name}__": lambda right, left, by=_OPERATORS[f"__{name}__"]: by(left, right)
        for name in f"{_BINARY} divmod".split()
    },
    "__array_ufunc__": lambda _, ufunc, method, *inputs, **keywords: getattr(ufunc, method)(
        *inputs, **keywords
    ),
    "__reduce_ex__": lambda number, protocol: number.__reduce_ex__(protocol),
    "__converted__": lambda number, kind: kind(number),
    "through": lambda number, function, _: function(number),
    "__array_function__": lambda _, function, __, args, keywords: function(*args, **keywords),
    **{
        name: lambda self, *args, name=name, **keywords: getattr(self, name)(*args, **keywords)
        for name in ("astype", "round", "argmax", "argmin", "max", "min", "clip")
    },
}
"""What plain numbers and arrays do, by the methods of traced ones."""


def plain_once_refused(cls: type) -> type:
    """Let what a class refuses, and all that follows, be done with plain numbers."""
    for name in vars(cls).keys() & PLAINLY.keys():
        setattr(cls, name, _unless_over(getattr(cls, name), PLAINLY[name]))
    return cls


def _unless_over(method: Callable[..., Any], plainly: Callable[..., Any]) -> Any:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **keywords: Any) -> Any:
        trace = vars(self)["traced"] if isinstance(self, np.ndarray) else self.trace
        if trace is None or not trace.instrument.is_over():
            try:
                return method(self, *args, **keywords)
            except CannotInstrument:
                pass
        return plainly(plain(self), *plain(args), **plain(keywords))

    return call


@plain_once_refused
class Traced:
    """A function of draws."""

    __slots__ = ("trace",)
    _is_draw = True
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __init_subclass__(cls) -> None:
        plain_once_refused(cls)

    def plain(self) -> Any:
        """Its value as in a real run, once this one is refused."""
        raise NotImplementedError

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        return self.trace.of_ufunc(self.trace, ufunc, method, inputs, keywords)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        return self.trace.of_function(self.trace, function, args, keywords)

    def _refuse(self, what: str) -> NoReturn:
        self.trace.refuse(what)

    def simplest(self) -> Any:
        """The same number in a simpler form, if it has one."""
        return self

    def item(self) -> Any:
        return self

    def __converted__(self, kind: type) -> Any:
        """In a type of Python."""
        raise NotImplementedError

    def through(self, function: Callable[[Any], Any], lowest: float | None) -> Any:
        """An increasing function of Python, such as ``math.log``, defined from `lowest` on."""
        raise NotImplementedError

    def __pos__(self) -> Any:
        return self

    def __float__(self) -> float:
        self._refuse("a draw is converted to a float that cannot be traced")

    def __int__(self) -> int:
        self._refuse("a draw is rounded to a whole number")

    __index__ = __trunc__ = __floor__ = __ceil__ = __int__

    def __round__(self, digits: int | None = None) -> Any:
        self._refuse("a draw is rounded")

    def __pow__(self, other: Any) -> Any:
        self._refuse("a power of a draw is no sum of draws")

    __rpow__ = __pow__

    def __str__(self) -> str:
        return "<a draw>" if is_diagnostic() else self._refuse("a draw is written as text")

    def __format__(self, how: str) -> str:
        return str(self)

    __repr__ = __str__

    def __reduce_ex__(self, protocol: Any) -> Any:
        self._refuse("a draw is pickled")

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


def operators(function: Function, by: str = "combined") -> tuple[Function, Function]:
    """A method for an operator with the number on its left, and one with it on its right."""
    ask = operator.attrgetter(by)
    return (
        lambda self, other: ask(self)(other, function),
        lambda self, other: ask(self)(other, lambda right, left: function(left, right)),
    )


class Combined(Traced):
    """A number for which all arithmetic is done in one way."""

    __slots__ = ()

    def combined(self, other: Any, function: Function) -> Any:
        """A function of the number and another one; NotImplemented if that is none."""
        raise NotImplementedError

    __add__, __radd__ = operators(operator.add)
    __sub__, __rsub__ = operators(operator.sub)
    __mul__, __rmul__ = operators(operator.mul)
    __truediv__, __rtruediv__ = operators(operator.truediv)
    __floordiv__, __rfloordiv__ = operators(operator.floordiv)
    __mod__, __rmod__ = operators(operator.mod)
