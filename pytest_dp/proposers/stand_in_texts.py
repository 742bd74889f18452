"""Stand-ins for texts: strings to all code, with formulas where they are compared."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import z3

from pytest_dp.proposers.stand_in_numbers import Truth, number
from pytest_dp.proposers.stand_ins import Operator, StandIn, plain_value
from pytest_dp.proposers.trace import Trace


class Text(StandIn, str):
    """A string with a formula, followed by equality, order, prefixes, parts and its length."""

    formula: Any

    def __hash__(self) -> int:
        self.trace.note_lookup(self.formula, self.value)
        return str.__hash__(self)

    def __bool__(self) -> bool:
        return self.trace.note_decision(self.formula != z3.StringVal(""), len(self.value) > 0)

    def _truth(self, held: bool, condition: Any) -> Truth:
        return Truth(self.trace, held, condition)

    def compared(self, other: Any, by: Operator) -> Any:
        """Return the comparison with another text; NotImplemented with anything else."""
        if not isinstance(other, str):
            return NotImplemented
        held = by(self.value, plain_value(other))
        if other is self:
            return held
        a, b = self.formula, _formula(other)
        if by in (operator.gt, operator.ge):  # which z3 has not
            a, b, by = b, a, operator.lt if by is operator.gt else operator.le
        return self._truth(held, by(a, b))

    def __contains__(self, part: Any) -> Any:
        return self._truth(
            plain_value(part) in self.value, z3.Contains(self.formula, _formula(part))
        )

    def startswith(self, prefix: Any, *span: Any) -> Any:
        """Return whether the text begins with a prefix, or one of several."""
        held = str.startswith(self.value, prefix, *span)
        return self._at_end(prefix, held, span, z3.PrefixOf)

    def endswith(self, suffix: Any, *span: Any) -> Any:
        """Return whether the text ends with a suffix, or one of several."""
        held = str.endswith(self.value, suffix, *span)
        return self._at_end(suffix, held, span, z3.SuffixOf)

    def _at_end(self, given: Any, held: bool, span: Any, formula_of: Operator) -> Any:
        options = given if isinstance(given, tuple) else (given,)
        if span or not options:
            return held
        conditions = [formula_of(_formula(option), self.formula) for option in options]
        return self._truth(held, z3.Or(*conditions))

    def length(self) -> Any:
        """Return the length as a stand-in, which ``len`` could not return."""
        return number(self.trace, len(self.value), z3.Length(self.formula))

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, str):
            return NotImplemented
        formula = z3.Concat(self.formula, _formula(other))
        return text(self.trace, self.value + plain_value(other), formula)

    def __radd__(self, other: Any) -> Any:
        return text(self.trace, other + self.value, z3.Concat(_formula(other), self.formula))

    def __getitem__(self, at: Any) -> Any:
        return self.concrete("a part of a text")[at]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.concrete("letters of a text"))

    def __converted__(self, kind: type) -> Any:
        """Return the text in another type of Python, such as a number."""
        return kind(self.concrete(f"str as {kind.__name__}"))


def _lossy(name: str) -> Any:
    def method(self: Text, *args: Any, **keywords: Any) -> Any:
        return getattr(self.concrete(f"str.{name}"), name)(*args, **keywords)

    return method


_PLAIN = (
    *("split", "rsplit", "partition", "count", "title", "splitlines", "encode", "index", "find"),
    *("lower", "upper", "casefold", "strip", "lstrip", "rstrip", "replace"),
    *("isdigit", "isalpha", "isalnum", "isdecimal", "isnumeric"),
)
for _name in _PLAIN:
    setattr(Text, _name, _lossy(_name))


def text(trace: Trace, value: str, formula: Any) -> Text:
    """Return a text as a stand-in."""
    made = Text(value)
    made.trace, made.value, made.formula = trace, value, formula
    return made


def _formula(value: str) -> Any:
    return value.formula if isinstance(value, Text) else z3.StringVal(value)
