"""Conditions in Python as a person would write them, and in words, as they follow on "outputs"."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable

from pytest_dp.outputs.feature import Feature

Show = Callable[[float], str]
TEMPLATES: list[str] = []
"""How readers write what they make of a text; each enters its own."""


def shown_as(feature: Feature, show: Show = repr) -> tuple[str, Show]:
    """The text of a feature and how its numbers are shown: dates as dates, not as days."""
    for ending, moment in _MOMENTS:
        if feature.text.endswith(ending):
            return feature.text.removesuffix(ending), moment
    return feature.text, plain if feature.of_kind.whole else show


def _day(number: float) -> str:
    """The first day from an ordinal number on."""
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


def plainly(text: str) -> str:
    """A feature without the words that turn a text into what it is."""
    for template in TEMPLATES:
        text = text.replace(template.format("output"), "output")
    return _FLOAT.sub(r"\1", text)


_FLOAT = re.compile(r"^float\((output[^()]*)\)$")


def about(text: str, what: str, of_all: str = "") -> str:
    """Say what holds of a feature, as it follows on the word "outputs"."""
    text = plainly(text)
    return (of_all or what) if text == "output" else f"with {text} {what}"


def of_test(test: str, holds: bool) -> str:
    """Say that a test holds, or does not, as it follows on the word "outputs"."""
    text = plainly(test)
    if (found := _HAS.match(text)) and found[2] == "output":
        return f"{'with' if holds else 'without'} {found[1]} in them"
    if found := re.match(r"type\((.*)\) is (\w+)$", text):
        return about(found[1], f"{'' if holds else 'not '}of type {found[2]}")
    if found := re.match(r"list\(output\) == \[(.*)\]$", text):
        return f"with keys in {'the order' if holds else 'another order than'} {found[1]}"
    return where(text if holds else negate(text))


_SAID = (
    ("output == ", "equal to "),
    ("output is not ", "other than "),
    ("output is ", "that are "),
    ("raises ", "of runs that raise "),
    ("does not raise ", "of runs that do not raise "),
    ("not raises ", "of runs that do not raise "),
)


def where(condition: str) -> str:
    """A condition in Python as it follows on the word "outputs"."""
    for start, said in _SAID:
        if condition.startswith(start):
            return said + condition.removeprefix(start)
    return f"where {condition}"


def plain(number: float) -> str:
    """A number without a needless ``.0``."""
    return str(int(number)) if float(number).is_integer() and abs(number) < 1e15 else repr(number)
