"""Stand-ins for numbers and truths: each has a value, with which a run goes on, and a z3 formula.

Arrays of stand-ins are arrays of objects, with which numpy does what Python's operators do:
comparisons are decided element by element.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partialmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import z3

from pytest_dp.running.instrumented import StandsFor
from pytest_dp.running.modules import Replacements

if TYPE_CHECKING:  # which reads stand-ins
    from pytest_dp.proposers.trace import Trace

MAX_DEPTH = 5
"""Levels of lists, dicts and arrays in which stand-ins are looked for. Fewer miss inner ones."""
_NUMBERS = (None, float, int, object, "float", "int", np.float64, np.int64)
"""Types of arrays of which objects take the place."""

Operator = Callable[[Any, Any], Any]


def is_stand_in(value: Any) -> bool:
    """Return whether an object is a stand-in; ``isinstance`` sees the type of its value."""
    return issubclass(type(value), StandIn)


def plain_value(value: Any) -> Any:
    """Return the value of a stand-in; another object unchanged."""
    return value.value if is_stand_in(value) else value


def term(value: Any) -> Any:
    """Return a number or a stand-in as a term of z3; None for other objects, NaN and infinities."""
    if is_stand_in(value):
        return value.term
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, int):
        return z3.IntVal(int(value))
    if isinstance(value, float) and math.isfinite(value):
        return z3.RealVal(str(Fraction(repr(value))))
    return None


def number(trace: Trace, value: Any, formula: Any) -> Any:
    """Return a finite number with its formula as a stand-in; other objects unchanged."""
    value = value.item() if isinstance(value, np.generic) else value
    finite = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return Number(trace, value, formula) if finite else value


def _is_any_real(a: Any, b: Any) -> bool:
    """Return whether one of two terms is a real number."""
    return bool(z3.is_real(a) or z3.is_real(b))


def _to_real(a: Any) -> Any:
    """Return a term as a real number of z3."""
    return a if z3.is_real(a) else z3.ToReal(a)


def _quotient(a: Any, b: Any) -> Any:
    """Return the floor of a quotient by a constant above 0; None for any other divisor."""
    if not (z3.is_int_value(b) or z3.is_rational_value(b)) or not z3.is_true(z3.simplify(b > 0)):
        return None
    return z3.ToReal(z3.ToInt(_to_real(a) / _to_real(b))) if _is_any_real(a, b) else a / b


def _remainder(a: Any, b: Any) -> Any:
    """Return the remainder of a division by a constant above 0; None for any other divisor."""
    quotient = _quotient(a, b)
    if quotient is None:
        return None
    return a - b * quotient if _is_any_real(a, b) else a % b


_ARITHMETIC: dict[str, tuple[Operator, Operator]] = {
    "add": (operator.add, operator.add),
    "sub": (operator.sub, operator.sub),
    "mul": (operator.mul, operator.mul),
    "truediv": (operator.truediv, lambda a, b: _to_real(a) / _to_real(b)),
    "floordiv": (operator.floordiv, _quotient),
    "mod": (operator.mod, _remainder),
    "pow": (operator.pow, lambda a, b: a * a if b.eq(z3.IntVal(2)) else None),
}
"""By name, what an operator does with values and with terms; None of terms is no formula."""


class StandIn:
    """A stand-in for a number or a truth: a value and a z3 formula. A pickle is the value alone."""

    __array_priority__ = 1000
    trace: Trace
    value: Any

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.value)

    @property
    def term(self) -> Any:
        """The formula as a number of z3: truths are 0 or 1."""
        raise NotImplementedError

    def to_plain(self, what: str) -> Any:
        """Note in the trace that the formula is lost, for the reason `what`; return the value."""
        self.trace.note(what)
        return self.value

    def combine(self, other: Any, name: str, *, left: bool) -> Any:
        """Return the result of the operator `name`, as a stand-in; plain if it has no formula.

        `left` is whether this stand-in is the left operand. Notes in the trace lost formulas, and
        that divisors are not 0. NotImplemented if the other operand is no number.
        """
        if not _is_number(other):
            return NotImplemented
        by, of_terms = _ARITHMETIC[name]
        values = (self.value, plain_value(other)) if left else (plain_value(other), self.value)
        value, other_term = by(*values), term(other)
        if other_term is None:
            return value
        a, b = (self.term, other_term) if left else (other_term, self.term)
        if name in ("truediv", "floordiv", "mod") and not left:
            self.trace.assume(b != 0)
        formula = of_terms(a, b)
        if formula is None:
            self.trace.note(f"{name} of two stand-ins")
            return value
        return number(self.trace, value, formula)

    def compare_with(self, other: Any, by: Operator) -> Any:
        """Return the truth of a comparison as a stand-in, plain if it has no formula.

        NotImplemented if the other object is no number.
        """
        if not _is_number(other):
            return NotImplemented
        held, other_term = bool(by(self.value, plain_value(other))), term(other)
        if other_term is None or (by in (operator.eq, operator.ne) and other is self):
            return held
        return Truth(self.trace, held, by(self.term, other_term))

    def __neg__(self) -> Any:
        return number(self.trace, -self.value, -self.term)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return number(self.trace, abs(self.value), z3.If(self.term >= 0, self.term, -self.term))

    def __hash__(self) -> int:
        return hash(self.value)

    def __float__(self) -> float:
        return float(self.to_plain("float(...) in compiled code"))

    def __int__(self) -> int:
        return int(self.to_plain("int(...) in compiled code"))

    def __index__(self) -> int:
        return operator.index(self.to_plain("an index"))

    def __repr__(self) -> str:
        return repr(self.value)

    def __format__(self, how: str) -> str:
        return format(self.value, how)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the value, or a function for numpy that makes it plain.

        Raises AttributeError for special names.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        if isinstance(getattr(np, name, None), np.ufunc) and not hasattr(self.value, name):
            return lambda *args: getattr(np, name)(self.to_plain(f"np.{name}"), *args).item()
        return getattr(self.value, name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return plain_value, (self.value,)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


def _is_number(value: Any) -> bool:
    """Return whether an object is a number or a stand-in for one."""
    return isinstance(value, int | float | np.integer | np.floating | np.bool_)


for _name in _ARITHMETIC:
    setattr(StandIn, f"__{_name}__", partialmethod(StandIn.combine, name=_name, left=True))
    setattr(StandIn, f"__r{_name}__", partialmethod(StandIn.combine, name=_name, left=False))
for _by in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
    setattr(StandIn, f"__{_by.__name__}__", partialmethod(StandIn.compare_with, by=_by))


class Number(StandIn):
    """A whole number, or a float, which is a real number in its formula."""

    def __init__(self, trace: Trace, value: Any, formula: Any) -> None:
        self.trace, self.value = trace, value
        self._formula = _to_real(formula) if isinstance(value, float) else formula

    @property
    def term(self) -> Any:
        return self._formula

    def __bool__(self) -> bool:
        return self.trace.note_decision(self._formula != 0, self.value != 0)

    def __converted__(self, kind: type) -> Any:
        """Return the number as float or int, with its formula."""
        return (
            number(self.trace, float(self.value), self._formula)
            if kind is float
            else (self.__trunc__())
        )

    def _round(self, value: Any, to_floor: Callable[[Any], Any]) -> Any:
        """Return a rounded value, with the formula that a function makes of this one's."""
        whole = isinstance(self.value, int)
        return self if whole else number(self.trace, value, to_floor(self._formula))

    def __floor__(self) -> Any:
        return self._round(math.floor(self.value), z3.ToInt)

    def __ceil__(self) -> Any:
        return self._round(math.ceil(self.value), lambda x: -z3.ToInt(-x))

    def __trunc__(self) -> Any:
        towards = lambda x: z3.If(x >= 0, z3.ToInt(x), -z3.ToInt(-x))  # noqa: E731
        return self._round(math.trunc(self.value), towards)

    def __round__(self, digits: int | None = None) -> Any:
        if digits is None:
            return self._round(round(self.value), lambda x: z3.ToInt(x + z3.Q(1, 2)))
        return round(self.to_plain("round(...) to digits"), digits)


class Truth(StandIn):
    """A condition, which is decided only where the mechanism asks whether it holds."""

    def __init__(self, trace: Trace, held: bool, condition: Any) -> None:
        self.trace, self.value, self.condition = trace, held, condition

    @property
    def term(self) -> Any:
        return z3.If(self.condition, z3.IntVal(1), z3.IntVal(0))

    def __bool__(self) -> bool:
        return self.trace.note_decision(self.condition, self.value)

    def __converted__(self, kind: type) -> Any:
        """Return the truth as float or int, with its formula."""
        return number(self.trace, kind(self.value), self.term)

    def join(self, other: Any, by: Operator, of_terms: Operator) -> Any:
        """Return the result of ``&``, ``|`` or ``^`` as a stand-in; with numbers, plain."""
        if not isinstance(other, bool | np.bool_):
            return by(int(self), other)
        condition = other.condition if isinstance(other, Truth) else z3.BoolVal(bool(other))
        held = by(self.value, bool(plain_value(other)))
        return Truth(self.trace, held, of_terms(self.condition, condition))

    __and__ = partialmethod(join, by=operator.and_, of_terms=z3.And)
    __or__ = partialmethod(join, by=operator.or_, of_terms=z3.Or)
    __xor__ = partialmethod(join, by=operator.xor, of_terms=z3.Xor)
    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Any:
        return Truth(self.trace, not self.value, z3.Not(self.condition))


CONVERSIONS = {"float": StandsFor.of(float), "int": StandsFor.of(int)}
"""Types of Python by their names, as a mechanism finds them, that keep formulas."""


def parts_of_output(data: Any, depth: int = MAX_DEPTH) -> Iterator[Any]:
    """Yield the values inside of lists, tuples, dicts and arrays, down to `depth` levels."""
    if depth and not is_stand_in(data) and isinstance(data, list | tuple | dict | np.ndarray):
        values = data.values() if isinstance(data, dict) else data
        for value in np.ravel(data).tolist() if isinstance(data, np.ndarray) else values:
            yield from parts_of_output(value, depth - 1)
    else:
        yield data


def find_stand_in(data: Any) -> Any:
    """Return the first stand-in inside of an object; None if none is found."""
    if isinstance(data, np.ndarray) and data.dtype != object:
        return None
    return next(filter(is_stand_in, parts_of_output(data)), None)


def plain_values(data: Any) -> Any:
    """Return an object with plain values in place of stand-ins; tuples become lists."""
    if isinstance(data, np.ndarray):
        return np.array([plain_value(value) for value in data.flat]).reshape(data.shape)
    if isinstance(data, list | tuple) and not is_stand_in(data):
        return [plain_values(value) for value in data]
    return plain_value(data)


def _keeping_stand_ins(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function that makes arrays: data with stand-ins gives arrays of objects."""

    @functools.wraps(function)
    def make(data: Any, dtype: Any = None, *args: Any, **keywords: Any) -> Any:
        objects = dtype in _NUMBERS and find_stand_in(data) is not None
        return function(data, object if objects else dtype, *args, **keywords)

    return make


@functools.cache
def arrays_of_stand_ins() -> Replacements:
    """Return functions of numpy that make arrays of objects where stand-ins are among them."""
    names = ("array", "asarray", "asanyarray")
    return Replacements((np, name, _keeping_stand_ins(getattr(np, name))) for name in names)
