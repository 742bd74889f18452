"""Stand-ins for days, by their numbers in the calendar."""

from __future__ import annotations

import datetime as dt
from typing import Any

import z3

from pytest_dp.symbolic.numbers import Truth, number
from pytest_dp.symbolic.stand_ins import Operator, Symbolic, plain
from pytest_dp.symbolic.trace import Trace

_STARTS = [
    dt.date(2001, month, 1).toordinal() - dt.date(2001, 1, 1).toordinal() for month in range(1, 13)
]


def ordinal_of(year: Any, month: Any, day: Any) -> Any:
    """The number of a day in the calendar of Gregory, from 1 on, as `datetime` counts."""
    before = year - 1
    start = z3.IntVal(_STARTS[0])
    for at, days in enumerate(_STARTS[1:], 2):
        start = z3.If(month >= at, z3.IntVal(days), start)
    start += z3.If(z3.And(month > 2, _is_leap(year)), z3.IntVal(1), z3.IntVal(0))
    return 365 * before + before / 4 - before / 100 + before / 400 + start + day


def _is_leap(year: Any) -> Any:
    return z3.And(year % 4 == 0, z3.Or(year % 100 != 0, year % 400 == 0))


def is_day(year: Any, month: Any, day: Any) -> Any:
    """The condition that there is such a day."""
    short = z3.Or(*(month == m for m in (4, 6, 9, 11)))
    last = z3.If(month == 2, z3.If(_is_leap(year), 29, 28), z3.If(short, 30, 31))
    return z3.And(year >= 1, year <= 9999, month >= 1, month <= 12, day >= 1, day <= last)


class Day(Symbolic):
    """A day with formulas for its year, month and day of the month."""

    def __init__(self, trace: Trace, value: dt.date, parts: tuple[Any, Any, Any]) -> None:
        self.trace, self.value, self.parts = trace, value, parts

    @property
    def year(self) -> Any:
        return number(self.trace, self.value.year, self.parts[0])

    @property
    def month(self) -> Any:
        return number(self.trace, self.value.month, self.parts[1])

    @property
    def day(self) -> Any:
        return number(self.trace, self.value.day, self.parts[2])

    def toordinal(self) -> Any:
        return number(self.trace, self.value.toordinal(), ordinal_of(*self.parts))

    def weekday(self) -> Any:
        return (self.toordinal() + 6) % 7

    def isoweekday(self) -> Any:
        return self.weekday() + 1

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, dt.date):
            return Span(self.trace, self.toordinal() - other.toordinal())
        return self.concrete("a day and a time") - other

    def __rsub__(self, other: Any) -> Any:
        return Span(self.trace, other.toordinal() - self.toordinal())

    def __add__(self, other: Any) -> Any:
        return self.concrete("a day and a time") + other

    def compared(self, other: Any, by: Operator) -> Any:
        if not isinstance(other, dt.date):
            return NotImplemented
        keys = [372 * y + 31 * m + d for y, m, d in (self.parts, _parts_of(other))]
        return Truth(self.trace, by(self.value, plain(other)), by(*keys))


def _parts_of(day: Any) -> Any:
    return day.parts if isinstance(day, Day) else (day.year, day.month, day.day)


class Span(Symbolic):
    """The days between two days."""

    def __init__(self, trace: Trace, days: Any) -> None:
        self.trace, self.days = trace, days
        self.value = dt.timedelta(int(getattr(days, "value", days)))

    def total_seconds(self) -> Any:
        return self.days * 86400.0

    def compared(self, other: Any, by: Operator) -> Any:
        return by(self.days, other.days if isinstance(other, Span) else other / dt.timedelta(1))
