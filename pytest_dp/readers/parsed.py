"""Texts read as what they are: JSON, tables of values separated by commas, dates, queries of URLs.

What is parsed is taken apart as an output would be, in a table of its own with a row for each
different text. Texts that are numbers are a reading of `text_features`.
"""

from __future__ import annotations

import csv
import datetime as dt
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.outputs.events import Equals, Is
from pytest_dp.outputs.feature import KINDS, Feature, FeatureKind
from pytest_dp.outputs.features import Sample, basic_features, choose_places
from pytest_dp.outputs.leaves import ABSENT, NUMBER
from pytest_dp.outputs.table import Table, tabulate
from pytest_dp.readers.text_features import readings

MIN_SHARE_READ = 0.9
"""Share of the texts that a reader has to understand. Larger: formats with exceptions are missed;
smaller: other texts are read wrongly."""
MAX_FEW_KINDS = 8
"""Different values that are left as texts. More: numbers are taken for names; fewer: names for
numbers."""


class Part(NamedTuple):
    """A quantity of what stands in the texts at a place."""

    place: str
    parser: str
    """A key of `PARSERS`."""
    inner: Any
    """A feature of what is parsed; or a condition on it, which is a test."""


def _container(text: str) -> Any:
    parsed = json.loads(text)
    return parsed if isinstance(parsed, dict | list) else None


def _rows(text: str) -> list[list[str]] | None:
    rows = list(csv.reader(text.splitlines()))
    if not rows or len(rows[0]) < 2 or len({len(row) for row in rows}) > 1:
        return None
    return rows if len(rows) > 1 or any(map(_is_number, rows[0])) else None  # else a sentence


def _is_number(cell: str) -> bool:
    return _try_to_parse(float, cell) is not None


def _date(text: str) -> dt.date | None:
    return dt.date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else None


def _moment(text: str) -> dt.datetime | None:
    return dt.datetime.fromisoformat(text) if re.match(r"\d{4}-\d\d-\d\d[T ]\d\d", text) else None


def _query(text: str) -> dict[str, list[str]] | None:
    return parse_qs(urlsplit(text).query) if re.match(r"\w+://\S*\?", text) else None


PARSERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "json": (_container, "json.loads({})"),
    "date": (_date, "date.fromisoformat({})"),
    "moment": (_moment, "datetime.fromisoformat({})"),
    "query": (_query, "parse_qs(urlsplit({}).query)"),
    "csv": (_rows, "list(csv.reader({}.splitlines()))"),
}
"""How texts are parsed, None or an error for other texts, and how Python does."""
TEXTS = ("str", "bytes")
"""Types of categories that are parsed."""
_NAME = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|\boutput\b""")
"""A text in quotes, or the name of the output."""


def word_parsed(part: Part, text: str) -> str:
    """Reword a text about an output as one about what is parsed from it."""
    return rename_output(text, PARSERS[part.parser][1].format(part.place))


def rename_output(text: str, name: str) -> str:
    """Put another name for the output into a text about it."""
    return _NAME.sub(lambda found: found[1] or name, text)


def parsers_of(place: str, table: Table) -> Iterator[str]:
    """Yield the parser of which most different texts at a place can be read, if there is one."""
    codes = np.unique(table.leaf(place)[1])
    kinds = list(table.levels)
    texts = sum(kinds[code][0] in TEXTS for code in codes.tolist() if code >= 0)
    for parser in PARSERS if texts > 1 else ():
        if (_parse_texts(parser, table)[1][codes] >= 0).sum() > MIN_SHARE_READ * texts:
            yield parser
            return


def inside(parser: str, table: Table) -> Table:
    """Return a table of the parsed texts, with a row for each different text of a table."""
    return _parse_texts(parser, table)[0]


def _parse_texts(parser: str, table: Table) -> tuple[Table, Ints]:
    """Return a table of parsed texts, and its row by code of the text.

    -1 if it cannot be parsed.
    """
    key = "parsed", parser
    if key not in table.readings:
        row = np.full(len(table.levels) + 2, -1)  # the last two are no texts
        parsed: list[Any] = []
        for code, (kind, text) in enumerate(table.levels):
            value = _try_to_parse(PARSERS[parser][0], text) if kind in TEXTS else None
            if value is not None:
                row[code] = len(parsed)
                parsed.append(value)
        table.readings[key] = tabulate(parsed), row
    known: tuple[Table, Ints] = table.readings[key]
    return known


def parse_text(text: str | bytes) -> tuple[Callable[[str], str], Any] | None:
    """Parse a text, and return how its parts are written; None if it is only a text."""
    readers = {"number": (float, "float({})"), **PARSERS}
    for parse, template in readers.values():
        value = _try_to_parse(parse, text)
        if value is not None:
            return template.format, value
    return None


def _try_to_parse(parse: Callable[[str], Any], text: Any) -> Any:
    try:
        return parse(text)
    except (ValueError, TypeError, RecursionError, csv.Error):  # bytes are not all that texts are
        return None


def column(part: Part, table: Table) -> tuple[Floats, Ints]:
    """Return numbers that stand there, and codes: absent where there is none."""
    known, row = _parse_texts(part.parser, table)
    numbers, codes = part.inner.columns(known)
    return _of_outputs(numbers, np.where(codes == NUMBER, NUMBER, ABSENT), part, table, row)


def test_condition(part: Part, table: Table) -> tuple[Floats, Ints]:
    """Return 1 where a condition holds of the parsed text, and 0 where not."""
    parsed, row = _parse_texts(part.parser, table)
    holds = part.inner.mask(parsed).astype(np.float64)
    return _of_outputs(holds, np.full(len(holds), NUMBER), part, table, row)


def _of_outputs(
    numbers: Floats, codes: Ints, part: Part, table: Table, row: Ints
) -> tuple[Floats, Ints]:
    """Return for each output what is known of its text."""
    at = row[table.leaf(part.place)[1]]
    numbers, codes = np.append(numbers, np.nan), np.append(codes, ABSENT)  # -1 is the last
    return numbers[at], codes[at]


_PARSED = ("parsed", "parsed and tested")
"""Kinds of features of what stands in texts: numbers, and tests."""
KINDS.update(
    zip(
        _PARSED,
        (FeatureKind(column), FeatureKind(test_condition, lambda *_: None, whole=True, test=True)),
        strict=True,
    )
)


def parsed_features(sample: Sample) -> list[Feature]:
    """Return features of texts that can be parsed: numbers, texts that recur, other readings."""
    found, table = [], sample.table
    for place in [feature.argument for feature in sample.leaves] if table.levels else ():
        for parser in parsers_of(place, table) if readings(place, table) else ():
            parsed = inside(parser, table)
            about = basic_features(Sample(parsed, None, 0, choose_places(parsed, None, 0)))
            for inner in filter(_is_plain, about):
                for kind, said, what in _parsed_quantities(inner, parsed):
                    part = Part(place, parser, what)
                    found.append(Feature(word_parsed(part, said), kind, part))
    return found


def _is_plain(inner: Feature) -> bool:
    """Return whether a person would ask for this feature of a parsed text first.

    All others are features of the text itself.
    """
    is_number = inner.kind == "reading" and inner.argument.what == "float"
    return is_number or inner.kind in ("leaf", "len", "key", "aspect", *_PARSED)


def _parsed_quantities(inner: Feature, parsed: Table) -> Iterator[tuple[str, str, Any]]:
    """Yield what to ask of a feature of parsed texts: its number, or which category it is."""
    codes = inner.columns(parsed)[1]
    if (codes == NUMBER).any():
        is_test = inner.of_kind.test
        holds = Equals(inner, 1.0) if is_test else inner
        yield _PARSED[is_test], inner.text, holds
    counts = np.bincount(codes[codes >= 0], minlength=len(parsed.levels))
    if inner.of_kind.categories and (counts > 0).sum() <= MAX_FEW_KINDS:
        for level, count in zip(parsed.levels, counts.tolist(), strict=True):
            if 0 < count < len(codes):
                yield _PARSED[True], str(Is(inner, level)), Is(inner, level)
