"""Features of texts and other categories: lengths, numbers in them, beginnings.

Texts that hardly ever recur say nothing as categories: each output has its own. What they have in
common still tells, so it is read out of them: how long they are, the numbers that stand in them,
which characters are where, and the words and beginnings that come again and again. The message of
an exception is such a text, and so is the repr of an object that shows what it holds. Whole numbers
beyond what floats hold exactly are categories too, whose last digits are read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.outputs.feature import (
    KINDS,
    Feature,
    FeatureKind,
    column_of_argument,
    numeric,
    true_or_false,
)
from pytest_dp.outputs.features import Sample
from pytest_dp.outputs.raised import Raised
from pytest_dp.outputs.table import Table

MAX_CHARACTERS = 32
"""First characters of a text that are features. More learn noise by heart; fewer miss some that
leak."""
MAX_WORDS = 64
"""Words of a kind, or categories, that are features. More learn noise by heart; fewer miss some
that leak."""
SAMPLED_TEXTS = 2_000
"""Texts by which features are chosen. More take longer; fewer miss rare ones."""
MAX_NUMBERS = 6
"""Numbers in a text that are features. More learn noise by heart; fewer miss the one that leaks."""
MIN_SHARE = 0.01
"""Share of the outputs with a word or beginning. Larger misses rare ones; smaller learns noise by
heart."""
MAX_FEATURES = 16
"""Features of a group that stay. More learn noise by heart; fewer miss what separates inputs."""

ESSENTIAL = ("len", "float", "numbers", "number", "modulo", "is")
"""Readings that come first, and have a limit of their own."""

NUMBERS_IN = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WORD = re.compile(r"[^\W\d_]{3,}")  # single characters are looked at anyway

Content = Any
"""The text of a category; of a huge whole number, the number."""
_Reader = Callable[[Content, Any], float]


@dataclass(frozen=True, slots=True)
class Reading:
    """A number that is read out of the text, or other category, at a place."""

    place: str
    family: str
    """The categories that are read, a key of `_WRITTEN`."""
    what: str
    """The number that is read, a key of `READERS`."""
    argument: str | int = 0

    def values(self, table: Table) -> Floats:
        """Return the number for every output, shape (n,); NaN for categories of other families.

        Caches the numbers of all categories in `table.readings`.
        """
        key = self.family, self.what, self.argument
        if key not in table.readings:
            read = np.full(len(table.levels) + 2, np.nan)  # the last two are for no category
            for code, content in enumerate(_contents_by_code(table, self.family)):
                if content is not None:
                    read[code] = READERS[self.what][0](content, self.argument)
            table.readings[key] = read
        values: Floats = table.readings[key][table.leaf(self.place)[1]]
        return values

    @property
    def is_test(self) -> bool:
        """True if all values are 0 and 1, for false and true."""
        return self.what in ("is", "has", "starts")

    @property
    def is_essential(self) -> bool:
        """True if other readings do not compete with this one: see `ESSENTIAL`."""
        return self.what in ESSENTIAL

    def __str__(self) -> str:
        argument: Any = self.argument
        if self.family == "bytes" and isinstance(argument, str):
            argument = argument.encode("latin-1")
        if self.family == "bytes" and self.what == "character":
            return f"{self.place}[{argument}]"
        return READERS[self.what][1].format(_WRITTEN[self.family].format(self.place), argument)


def _contents_by_code(table: Table, family: str) -> list[Content | None]:
    """Return the contents of a family's categories, by code; None for all others. Caches them."""
    if family not in table.readings:
        table.readings[family] = [_content_of(family, *category) for category in table.levels]
    contents: list[Content | None] = table.readings[family]
    return contents


def _content_of(family: str, kind: str, value: Any) -> Content | None:
    """Return the content of a category for a family; None if the category is of another one."""
    match family:
        case "str" | "int":
            return value if kind == family else None
        case "bytes":
            return value.decode("latin-1") if isinstance(value, bytes) else None
        case "kind":
            return value.kind if isinstance(value, Raised) else None
        case "message":
            return value.message if isinstance(value, Raised) else None
        case _:
            return (value or None) if kind != "str" and isinstance(value, str) else None


def choose_readings(place: str, table: Table) -> list[Reading]:
    """Return readings of the categories at a place, chosen by a sample of them.

    Empty if at most `MAX_WORDS` categories are different and each came more than 4 times.
    """
    codes = table.leaf(place)[1]
    codes = codes[codes >= 0]
    counts = np.bincount(codes)
    counts = counts[counts > 0]
    if not len(codes) or (
        len(counts) <= MAX_WORDS and counts.min() > 4
    ):  # which then tell all there is
        return []
    chosen: list[Reading] = []
    sample = codes[:: max(1, len(codes) // (SAMPLED_TEXTS))].tolist()
    for family in _WRITTEN:
        known = _contents_by_code(table, family)
        contents = [known[code] for code in sample if known[code] is not None]
        if len(set(contents)) > (family != "kind"):  # one kind of exception tells, too
            wanted = _READ_IN.get(family, readings_of_texts)(contents)
            chosen += [Reading(place, family, *each) for each in wanted]
    return chosen


_Wanted = list[tuple[str, Any]]


def _readings_of_integers(_: list[int]) -> _Wanted:
    """Return readings of whole numbers too large for floats, as kinds and arguments."""
    return [("float", 0), *(("modulo", modulus) for modulus in (2, 10, 1_000, 2**32))]


def _readings_of_kinds(kinds: list[str]) -> _Wanted:
    """Return a reading for each kind of exception."""
    return [("is", kind) for kind in sorted(set(kinds))]


def readings_of_texts(texts: list[str]) -> _Wanted:
    """Return readings for a sample of texts, as kinds (keys of `READERS`) and arguments."""
    wanted: _Wanted = []
    longest = max(map(len, texts))
    if min(map(len, texts)) < longest:
        wanted.append(("len", 0))
    if sum(not np.isnan(_as_float(text, 0)) for text in texts) > len(texts) / 2:
        wanted.append(("float", 0))
    counts = [len(NUMBERS_IN.findall(text)) for text in texts]
    if min(counts) < max(counts):
        wanted.append(("numbers", 0))
    wanted += [("number", i) for i in range(min(max(counts), MAX_NUMBERS))]
    ends = [*range(min(longest, MAX_CHARACTERS)), *range(-min(longest, 4), 0)]
    wanted += [("character", at) for at in ends]
    marks = Counter(mark for text in texts for mark in set(text) if not mark.isdigit())
    wanted += [("count", mark) for mark in _most_common(marks, len(texts))]
    starts = Counter(text[:n] for text in texts for n in (2, 4, 8, 16) if len(text) > n)
    wanted += [("starts", start) for start in _most_common(starts, len(texts))]
    words = Counter(word for text in texts for word in set(_WORD.findall(text)))
    return wanted + [("has", word) for word in _most_common(words, len(texts))]


def _most_common(counts: Counter[str], of: int) -> list[str]:
    """Return the items that at least two texts, and `MIN_SHARE` of `of`, have; commonest first."""
    common = [text for text, n in counts.items() if n >= max(2, MIN_SHARE * of)]
    return sorted(common, key=lambda text: (-counts[text], text))[:MAX_WORDS]


def _as_float(content: Content, _: Any) -> float:
    """Return a text or number as a float; NaN for other texts, infinite if too large."""
    try:
        return float(content)
    except ValueError:
        return np.nan
    except OverflowError:
        return np.inf if content > 0 else -np.inf


def _number_at(text: str, which: int) -> float:
    """Return the number at this position among the numbers in a text; NaN if there are fewer."""
    numbers = NUMBERS_IN.findall(text)
    return float(numbers[which]) if which < len(numbers) else np.nan


def _character_code(text: str, at: int) -> float:
    """Return the code of the character at a position of a text; NaN for shorter texts."""
    return float(ord(text[at])) if -len(text) <= at < len(text) else np.nan


READERS: dict[str, tuple[_Reader, str]] = {
    "len": (lambda text, _: float(len(text)), "len({})"),
    "float": (_as_float, "float({})"),
    "numbers": (lambda text, _: float(len(NUMBERS_IN.findall(text))), "len(numbers({}))"),
    "number": (_number_at, "numbers({})[{}]"),
    "character": (_character_code, "ord({}[{}])"),
    "count": (lambda text, mark: float(text.count(mark)), "{}.count({!r})"),
    "is": (lambda kind, wanted: float(kind == wanted), "raises {1}"),
    "has": (lambda text, word: float(word in text), "{1!r} in {0}"),
    "starts": (lambda text, start: float(text.startswith(start)), "{}.startswith({!r})"),
    "modulo": (lambda number, modulus: float(number % modulus), "{} % {}"),
}
"""Functions that read a number from a content, and their Python code."""
_WRITTEN = {
    "str": "{}",
    "bytes": "{}",
    "kind": "{}",
    "message": "str(error)",
    "repr": "repr({})",
    "int": "{}",
}
"""Python code for the content of each family."""
_READ_IN: dict[str, Callable[[list[Any]], _Wanted]] = {
    "int": _readings_of_integers,
    "kind": _readings_of_kinds,
}
_KINDS = {
    "reading": FeatureKind(numeric(column_of_argument)),
    "reading of characters": FeatureKind(numeric(column_of_argument), ease="hard"),
    "reading that is a test": true_or_false(column_of_argument, cost=0.0),
}
KINDS.update(_KINDS)


def text_features(sample: Sample) -> list[Feature]:
    """Return features read from categories that hardly ever recur, few of each group.

    Groups are the readings in `ESSENTIAL`, tests, and all others: at most `MAX_FEATURES` each.
    """
    essential, tests, others = list[Feature](), list[Feature](), list[Feature]()
    for feature in sample.leaves if sample.table.levels else ():
        for reading in choose_readings(feature.argument, sample.table):
            group = essential if reading.is_essential else tests if reading.is_test else others
            kind = "reading that is a test" if reading.is_test else "reading"
            kind = "reading of characters" if reading.what in ("character", "count") else kind
            group.append(Feature(str(reading), kind, reading))
    return [
        feature
        for group in (essential, tests, others)
        for feature in sample.most_distinguishing(group, MAX_FEATURES)
    ]
