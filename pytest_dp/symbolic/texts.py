"""Stand-ins for texts: strings to all code, with formulas where they are compared and cut."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

import z3

from pytest_dp.symbolic.numbers import Truth, number
from pytest_dp.symbolic.patterns import (
    DIGITS,
    SPACES,
    PatternError,
    any_text,
    either,
    folded,
    joined,
    matching,
)
from pytest_dp.symbolic.stand_ins import Operator, StandIn, plain
from pytest_dp.symbolic.trace import Trace


class Text(StandIn, str):
    """A string with a formula; `folds` is how its case was changed after that, if it was."""

    formula: Any
    folds: Callable[[str], str] | None

    def __hash__(self) -> int:
        self.trace.hashed(self.formula, self.value)
        return str.__hash__(self)

    def __bool__(self) -> bool:
        return self.trace.decide(self.formula != z3.StringVal(""), len(self.value) > 0)

    # Comparisons

    def _truth(self, held: bool, condition: Any) -> Truth:
        return Truth(self.trace, held, condition)

    def _within(self, before: bool, other: str, after: bool) -> Any:
        """The condition of holding a text with anything before it, or after it."""
        if self.folds is not None:
            if self.folds(other) != other:
                return z3.BoolVal(False)
            parts = [any_text()] * before + [folded(other)] + [any_text()] * after
            return z3.InRe(self.formula, joined(parts))
        part, formula = _formula(other), self.formula
        if before and after:
            return z3.Contains(formula, part)
        if before or after:
            return (z3.SuffixOf if before else z3.PrefixOf)(part, formula)
        return formula == part

    def _comparable(self, other: Any) -> bool:
        """Whether there is a formula for comparisons with another text."""
        if isinstance(other, Text) and (self.folds is not None or other.folds is not None):
            self.trace.note("two folded texts")
            return False
        return isinstance(other, str)

    def compared(self, other: Any, by: Operator) -> Any:
        if not isinstance(other, str):
            return NotImplemented
        held = by(self.value, plain(other))
        if other is self or not self._comparable(other):
            return held
        if by in (operator.eq, operator.ne):
            same = self._within(False, other, False)
            return self._truth(held, same if by is operator.eq else z3.Not(same))
        if self.folds is not None:
            return held
        a, b = self.formula, _formula(other)
        if by in (operator.lt, operator.le):
            return self._truth(held, by(a, b))
        return self._truth(held, b < a if by is operator.gt else b <= a)

    def __contains__(self, part: Any) -> Any:
        held = plain(part) in self.value
        return self._truth(held, self._within(True, part, True)) if self._comparable(part) else held

    def startswith(self, prefix: Any, *span: Any) -> Any:
        return self._at_end(prefix, str.startswith(self.value, prefix, *span), span, after=True)

    def endswith(self, suffix: Any, *span: Any) -> Any:
        return self._at_end(suffix, str.endswith(self.value, suffix, *span), span, after=False)

    def _at_end(self, given: Any, held: bool, span: Any, *, after: bool) -> Any:
        options = given if isinstance(given, tuple) else (given,)
        if span or not options or not all(map(self._comparable, options)):
            return held
        conditions = [self._within(not after, option, after) for option in options]
        return self._truth(held, z3.Or(*conditions))

    def matched(self, pattern: re.Pattern[str], how: str) -> Any:
        """What a function of `re` returns."""
        found = getattr(pattern, how)(self.value)
        try:
            flags = pattern.flags | (re.IGNORECASE if self.folds is not None else 0)
            condition = z3.InRe(self.formula, matching(pattern.pattern, flags, how))
        except (PatternError, z3.Z3Exception):
            self.trace.note(f"re.{how} of {pattern.pattern!r}")
            return found
        self.trace.decide(condition, found is not None)
        return found

    def isdigit(self) -> Any:
        return self._of(self.value.isdigit(), [("0", "9")])

    isdecimal = isnumeric = isdigit

    def isalpha(self) -> Any:
        return self._of(self.value.isalpha(), [("a", "z"), ("A", "Z")])

    def isalnum(self) -> Any:
        return self._of(self.value.isalnum(), [("a", "z"), ("A", "Z"), ("0", "9")])

    def _of(self, held: bool, ranges: list[tuple[str, str]]) -> Truth:
        one = either(z3.Range(*ends) for ends in ranges)
        return self._truth(held, z3.InRe(self.formula, z3.Plus(one)))

    # Parts

    def length(self) -> Any:
        """As a stand-in, which ``len`` could not return."""
        return number(self.trace, len(self.value), z3.Length(self.formula))

    def _part(self, value: str, formula: Any) -> Text:
        return text(self.trace, value, formula, self.folds)

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, str):
            return NotImplemented
        if self.folds is not None:
            return self.concrete("a folded text in another") + plain(other)
        return self._part(self.value + plain(other), z3.Concat(self.formula, _formula(other)))

    def __radd__(self, other: Any) -> Any:
        if self.folds is not None:
            return other + self.concrete("a folded text in another")
        return self._part(other + self.value, z3.Concat(_formula(other), self.formula))

    def __getitem__(self, at: Any) -> Any:
        value, length = self.value[at], z3.Length(self.formula)
        if isinstance(at, slice):
            start, stop = at.start or 0, at.stop
            if at.step not in (None, 1):
                return self.concrete("a slice with steps") and value
            first = z3.IntVal(int(start)) if start >= 0 else length + int(start)
            last = length if stop is None else int(stop) if stop >= 0 else length + int(stop)
            return self._part(value, z3.SubString(self.formula, first, last - first))
        at = int(at)
        self.trace.assume(length > at if at >= 0 else length >= -at)
        return self._part(value, z3.SubString(self.formula, at if at >= 0 else length + at, 1))

    def __iter__(self) -> Iterator[Any]:
        self.trace.assume(z3.Length(self.formula) == len(self.value))
        return (self[at] for at in range(len(self.value)))

    def lower(self) -> Any:
        return text(self.trace, self.value.lower(), self.formula, str.lower)

    def casefold(self) -> Any:
        return text(self.trace, self.value.casefold(), self.formula, str.casefold)

    def upper(self) -> Any:
        return text(self.trace, self.value.upper(), self.formula, str.upper)

    def strip(self, characters: str | None = None) -> Any:
        """Followed where it changes nothing."""
        value = self.value.strip(characters)
        if value != self.value:
            return self._lost(value, "strip")
        for character in characters or SPACES[:2]:
            self.trace.assume(z3.Not(z3.PrefixOf(z3.StringVal(character), self.formula)))
            self.trace.assume(z3.Not(z3.SuffixOf(z3.StringVal(character), self.formula)))
        return self

    lstrip = rstrip = strip

    def replace(self, old: str, new: str, *count: Any) -> Any:
        """Followed where it changes nothing."""
        value = self.value.replace(old, new, *count)
        if value != self.value or not old:
            return self._lost(value, "replace")
        self.trace.assume(z3.Not(z3.Contains(self.formula, z3.StringVal(old))))
        return self

    def _lost(self, value: Any, name: str) -> Any:
        self.trace.note(f"str.{name}")
        return value

    def find(self, part: str, *span: Any) -> Any:
        value = self.value.find(part, *span)
        if span or self.folds is not None:
            return self._lost(value, "find")
        return number(self.trace, value, z3.IndexOf(self.formula, _formula(part), 0))

    def __converted__(self, kind: type) -> Any:
        """In another type of Python, such as a number that is written in digits."""
        value = kind(self.value)
        if kind is int and self.value and set(self.value) <= set(DIGITS) and self.folds is None:
            return number(self.trace, value, z3.StrToInt(self.formula))
        return self._lost(value, kind.__name__)


def _lossy(name: str) -> Any:
    def method(self: Text, *args: Any, **keywords: Any) -> Any:
        return getattr(self.concrete(f"str.{name}"), name)(*args, **keywords)

    return method


for _name in ("split", "rsplit", "partition", "count", "title", "splitlines", "encode", "index"):
    setattr(Text, _name, _lossy(_name))


def text(trace: Trace, value: str, formula: Any, folds: Callable[[str], str] | None = None) -> Text:
    """A text as a stand-in."""
    made = Text(value)
    made.trace, made.value, made.formula, made.folds = trace, value, formula, folds
    return made


def _formula(value: str) -> Any:
    return value.formula if isinstance(value, Text) else z3.StringVal(value)
