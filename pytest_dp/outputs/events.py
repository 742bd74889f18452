"""Events: sets of outputs that a person can read, as conditions on features."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Bools
from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.leaves import ABSENT, NUMBER, Category, category_text
from pytest_dp.outputs.raised import Raised
from pytest_dp.outputs.rounding import WholeOutputs
from pytest_dp.outputs.table import Table, tabulate


@dataclass(frozen=True, slots=True)
class Between:
    """A half-line or interval of a feature, ``low <= feature < high``; None for an open end.

    Numbers closer to an end than `tolerance` count as equal to it. Categories are outside.
    """

    feature: Feature
    low: float | None = None
    high: float | None = None
    tolerance: float = 0.0

    def mask(self, table: Table) -> Bools:
        """Return which outputs the condition holds for, shape (n,)."""
        numbers, codes = self.feature.columns(table)
        inside: Bools = codes == NUMBER
        with np.errstate(invalid="ignore"):
            if self.low is not None:
                inside &= numbers >= self.low - self.tolerance
            if self.high is not None:
                inside &= numbers < self.high - self.tolerance
        return inside

    def __str__(self) -> str:
        text, show = text_and_writer(self.feature)
        if self.high is None:
            return f"{text} >= {show(self.low or 0.0)}"
        if self.low is None:
            return f"{text} < {show(self.high)}"
        return f"{show(self.low)} <= {text} < {show(self.high)}"


@dataclass(frozen=True, slots=True)
class Equals:
    """A single number of a feature, up to `tolerance`; NaN equals NaN."""

    feature: Feature
    value: float
    tolerance: float = 0.0

    def mask(self, table: Table) -> Bools:
        """Return which outputs the condition holds for, shape (n,)."""
        numbers, codes = self.feature.columns(table)
        low, high = self.value - self.tolerance, self.value + self.tolerance
        with np.errstate(invalid="ignore"):
            same: Bools = (numbers >= low) & (numbers <= high)
        if np.isnan(self.value):
            same = np.isnan(numbers)
        same &= codes == NUMBER
        return same

    def __str__(self) -> str:
        if np.isnan(self.value):
            return f"isnan({self.feature.text})"
        if self.feature.of_kind.test:
            return self.feature.text if self.value else f"not {self.feature.text}"
        text, show = text_and_writer(self.feature, short_number)
        return f"{text} == {show(self.value)}"


@dataclass(frozen=True, slots=True)
class Is:
    """A category of a feature, or all other categories and numbers if `negated`."""

    feature: Feature
    category: Category
    negated: bool = False

    def mask(self, table: Table) -> Bools:
        """Return which outputs the condition holds for, shape (n,)."""
        codes = self.feature.columns(table)[1]
        same: Bools = codes == table.levels.get(self.category, ABSENT - 1)
        return (codes != ABSENT) & ~same if self.negated else same

    def __str__(self) -> str:
        kind, value = self.category
        if isinstance(value, Raised):
            return f"does not raise {value.kind}" if self.negated else repr(value)
        if value is None:
            return f"{self.feature.text} is {'not ' if self.negated else ''}None"
        if kind != "str" and isinstance(value, str) and not value:
            return f"type({self.feature.text}) is {'not ' if self.negated else ''}{kind}"
        return (
            f"{self.feature.text} {'!=' if self.negated else '=='} {category_text(self.category)}"
        )


@dataclass(frozen=True, slots=True)
class OneOf:
    """A set of whole outputs, recognised by hashes."""

    outcomes: WholeOutputs
    texts: tuple[str, ...]
    """How Python would print each output."""
    by_repr: bool = False
    """Whether the text compares reprs, since ``==`` holds for outputs of other types too."""

    def mask(self, table: Table) -> Bools:
        """Return which outputs the condition holds for, shape (n,)."""
        return self.outcomes.mask(table)

    def __str__(self) -> str:
        if self.by_repr:
            return f"repr(output) in {list(self.texts)!r}"
        if len(self.texts) > 1:
            return f"output in [{', '.join(self.texts)}]"
        (text,) = self.texts
        if text.startswith("raises "):
            return text
        if text == "nan":
            return "isnan(output)"
        return f"output {'is' if text == 'None' else '=='} {text}"


Condition = Between | Equals | Is | OneOf


@dataclass(frozen=True, slots=True)
class Event:
    """A set of outputs for which all conditions hold.

    ``event(output)`` returns whether one output is in the event; ``str(event)`` is readable.
    """

    conditions: tuple[Condition, ...]

    def mask(self, table: Table) -> Bools:
        """Return which outputs are in the event, shape (n,)."""
        all_of: Bools = np.logical_and.reduce([c.mask(table) for c in self.conditions])
        return all_of

    def __call__(self, output: Any) -> bool:
        return bool(self.mask(tabulate([output]))[0])

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions))

    __repr__ = __str__


def text_and_writer(
    feature: Feature, show: Callable[[float], str] = repr
) -> tuple[str, Callable[[float], str]]:
    """Return the text of a feature, and a function that writes its numbers, by default `show`.

    Dates are written as dates, whole numbers without ``.0``.
    """
    for ending, moment in ((_OF_DATES, _day), (_OF_TIMES, _time)):
        if feature.text.endswith(ending):
            return feature.text.removesuffix(ending), moment
    return feature.text, short_number if feature.of_kind.whole else show


_OF_DATES, _OF_TIMES = ".toordinal()", ".replace(tzinfo=utc).timestamp()"
"""Endings of the texts of features of dates and times; see `containers`."""


def _day(number: float) -> str:
    """Return the first day on or after a proleptic ordinal, as Python code."""
    day = dt.date.fromordinal(min(max(math.ceil(number), 1), dt.date.max.toordinal()))
    return f"date({day.year}, {day.month}, {day.day})"


def _time(seconds: float) -> str:
    """Return a time in seconds since 1970 as Python code; raises OverflowError out of range."""
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)
    return repr(moment).removeprefix("datetime.")


def short_number(number: float) -> str:
    """Return a number as text, whole numbers below 1e15 without ``.0``."""
    return str(int(number)) if float(number).is_integer() and abs(number) < 1e15 else repr(number)
