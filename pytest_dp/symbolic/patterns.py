"""Regular expressions of Python as those of z3, as far as it has such."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import z3

from pytest_dp.limits import MANY

_parser: Any = getattr(re, "_parser", None)  # from Python 3.11 on
_TEXT = z3.StringSort()
DIGITS, SPACES = "0123456789", " \t\n\r\f\v"
_CLASSES: dict[str, tuple[tuple[str, str], ...]] = {
    "CATEGORY_DIGIT": (("0", "9"),),
    "CATEGORY_WORD": (("a", "z"), ("A", "Z"), ("0", "9"), ("_", "_")),
    "CATEGORY_SPACE": tuple((c, c) for c in SPACES),
}
"""Ranges of ASCII."""


class PatternError(Exception):
    """z3 has no such regular expression."""


def any_text() -> Any:
    """What every text matches."""
    return z3.Full(z3.ReSort(_TEXT))


def joined(parts: Iterable[Any]) -> Any:
    """One expression after the other."""
    parts = list(parts)
    if len(parts) < 2:
        return parts[0] if parts else z3.Re("")
    return z3.Concat(*parts)


def either(parts: Iterable[Any]) -> Any:
    """Any one of several."""
    parts = list(parts)
    return z3.Union(*parts) if len(parts) > 1 else parts[0]


def folded(text: str) -> Any:
    """What becomes a text of small letters, or of capital ones, by folding its case."""
    return joined(either(z3.Re(form) for form in {c, c.lower(), c.upper()}) for c in text)


@cache
def matching(pattern: str, flags: int, how: str) -> Any:
    """What texts match, by ``"match"``, ``"fullmatch"`` or ``"search"``.

    Raises PatternError if z3 has no such pattern.
    """
    if _parser is None or flags & ~(re.UNICODE | re.IGNORECASE | re.ASCII):
        raise PatternError
    parsed = list(_parser.parse(pattern, flags))
    starts = [str(op) == "AT" and str(arg).startswith("AT_BEGINNING") for op, arg in parsed]
    ends = [str(op) == "AT" and str(arg) in ("AT_END", "AT_END_STRING") for op, arg in parsed]
    is_first, is_last = bool(starts and starts[0]), bool(ends and ends[-1])
    inner = parsed[is_first : len(parsed) - is_last]
    parts = [_Items(bool(flags & re.IGNORECASE)).of(inner)]
    if how == "search" and not is_first:
        parts.insert(0, any_text())
    if how != "fullmatch" and not is_last:
        parts.append(any_text())
    return joined(parts)


class _Items:
    """Makes expressions of what Python's parser makes of a pattern."""

    def __init__(self, folds: bool) -> None:
        self._folds = folds

    def of(self, items: Iterable[Any]) -> Any:
        return joined(self._item(str(op), arg) for op, arg in items)

    def _item(self, op: str, arg: Any) -> Any:
        makers: dict[str, Callable[[Any], Any]] = {
            "LITERAL": self._literal,
            "ANY": lambda _: z3.Intersect(z3.AllChar(z3.ReSort(_TEXT)), z3.Complement(z3.Re("\n"))),
            "IN": self._one_of,
            "NOT_LITERAL": lambda code: self._not(self._literal(code)),
            "BRANCH": lambda branch: either(map(self.of, branch[1])),
            "SUBPATTERN": lambda group: self.of(group[-1]),
            "MAX_REPEAT": self._repeated,
            "MIN_REPEAT": self._repeated,
        }
        if op not in makers:
            raise PatternError
        return makers[op](arg)

    def _literal(self, code: int) -> Any:
        return folded(chr(code)) if self._folds else z3.Re(chr(code))

    def _repeated(self, repeat: Any) -> Any:
        low, high, items = repeat
        inner, endless = self.of(items), str(high) == "MAXREPEAT"
        if low > MANY or (not endless and high > MANY):
            raise PatternError
        if not endless:
            return z3.Loop(inner, low, high) if high else z3.Re("")
        return joined([*[inner] * low, z3.Star(inner)])

    def _one_of(self, members: Any) -> Any:
        negated = bool(members) and str(members[0][0]) == "NEGATE"
        ranges = either(self._member(str(op), arg) for op, arg in members[negated:])
        return self._not(ranges) if negated else ranges

    def _member(self, op: str, arg: Any) -> Any:
        if op == "RANGE":
            ends = [(chr(arg[0]), chr(arg[1]))]
            if self._folds:
                ends += [(a.swapcase(), b.swapcase()) for a, b in ends if a.isalpha()]
            return either(z3.Range(*end) for end in ends)
        if op == "CATEGORY" and str(arg) in _CLASSES:
            return either(z3.Range(*end) for end in _CLASSES[str(arg)])
        if op == "CATEGORY" and (opposite := str(arg).replace("_NOT_", "_")) in _CLASSES:
            return self._not(either(z3.Range(*end) for end in _CLASSES[opposite]))
        return self._item(op, arg)

    def _not(self, one: Any) -> Any:
        return z3.Intersect(z3.AllChar(z3.ReSort(_TEXT)), z3.Complement(one))
