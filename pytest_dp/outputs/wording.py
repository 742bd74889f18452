"""Conditions in Python as a person would write them."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable

from pytest_dp.outputs.feature import Feature

Show = Callable[[float], str]


def shown_as(feature: Feature, show: Show = repr) -> tuple[str, Show]:
    """Return the text of a feature and how its numbers are shown: dates as dates, not as days."""
    for ending, moment in _MOMENTS:
        if feature.text.endswith(ending):
            return feature.text.removesuffix(ending), moment
    return feature.text, short_number if feature.of_kind.whole else show


def _day(number: float) -> str:
    """Return the first day from an ordinal number on."""
    day = dt.date.fromordinal(min(max(math.ceil(number), 1), dt.date.max.toordinal()))
    return f"date({day.year}, {day.month}, {day.day})"


def _time(seconds: float) -> str:
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)
    return repr(moment).removeprefix("datetime.")


_MOMENTS = ((".toordinal()", _day), (".replace(tzinfo=utc).timestamp()", _time))


def negate(test: str) -> str:
    """Return the opposite of a test, as a person would write it."""
    for pattern, word in ((_HAS, "not in"), (_TYPE, "is not")):
        if found := pattern.match(test):
            return f"{found[1]} {word} {found[2]}"
    return f"not {test}"


_HAS = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\d+) in (.*)""", re.DOTALL)
_TYPE = re.compile(r"(.*) is (\w+)$", re.DOTALL)


def short_number(number: float) -> str:
    """Return a number without a needless ``.0``."""
    return str(int(number)) if float(number).is_integer() and abs(number) < 1e15 else repr(number)
