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
from pytest_dp.readers.text_features import choose_readings

MIN_SHARE_READ = 0.9
"""Share of the texts that a parser has to read. Larger: formats with exceptions are missed;
smaller: other texts are misread."""
MAX_FEW_KINDS = 8
"""Different categories that are features. More: numbers count as names; fewer: names as numbers."""


class Part(NamedTuple):
    """A quantity of the value that a parser reads from the text at a place."""

    place: str
    parser: str
    """A key of `PARSERS`."""
    inner: Any
    """A feature of the parsed value; or a condition on the value, which is a test."""


def _parse_json(text: str) -> Any:
    """Return the dictionary or list in a JSON text; None for other JSON."""
    parsed = json.loads(text)
    return parsed if isinstance(parsed, dict | list) else None


def _parse_csv(text: str) -> list[list[str]] | None:
    """Return the rows of comma-separated values, of one width of at least two.

    None for other texts, and for a single row without a number, which is a sentence.
    """
    rows = list(csv.reader(text.splitlines()))
    if not rows or len(rows[0]) < 2 or len({len(row) for row in rows}) > 1:
        return None
    return rows if len(rows) > 1 or any(map(_is_number, rows[0])) else None  # else a sentence


def _is_number(cell: str) -> bool:
    return _try_to_parse(float, cell) is not None


def _parse_date(text: str) -> dt.date | None:
    """Return the date in a text like ``2020-01-31``; None for other texts."""
    return dt.date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else None


def _parse_moment(text: str) -> dt.datetime | None:
    """Return the date and time in an ISO 8601 text; None for texts without both."""
    return dt.datetime.fromisoformat(text) if re.match(r"\d{4}-\d\d-\d\d[T ]\d\d", text) else None


def _parse_query(text: str) -> dict[str, list[str]] | None:
    """Return a URL's query as lists of values by name; None for texts that are no URL with one."""
    return parse_qs(urlsplit(text).query) if re.match(r"\w+://\S*\?", text) else None


PARSERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "json": (_parse_json, "json.loads({})"),
    "date": (_parse_date, "date.fromisoformat({})"),
    "moment": (_parse_moment, "datetime.fromisoformat({})"),
    "query": (_parse_query, "parse_qs(urlsplit({}).query)"),
    "csv": (_parse_csv, "list(csv.reader({}.splitlines()))"),
}
"""Parsers, which return None or raise for other texts, and the Python code that parses."""
TEXTS = ("str", "bytes")
"""Types of categories that are parsed."""
_NAME = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|\boutput\b""")
"""A text in quotes, or the name of the output."""


def reword_as_parsed(part: Part, text: str) -> str:
    """Return a text about an output, reworded for the value parsed from a part's place."""
    return rename_output(text, PARSERS[part.parser][1].format(part.place))


def rename_output(text: str, name: str) -> str:
    """Return a text in which ``output`` has another name, except inside quotes."""
    return _NAME.sub(lambda found: found[1] or name, text)


def parsers_of(place: str, table: Table) -> Iterator[str]:
    """Yield the first parser that reads nearly all different texts at a place; none otherwise."""
    codes = np.unique(table.leaf(place)[1])
    kinds = list(table.levels)
    texts = sum(kinds[code][0] in TEXTS for code in codes.tolist() if code >= 0)
    for parser in PARSERS if texts > 1 else ():
        if (_parse_texts(parser, table)[1][codes] >= 0).sum() > MIN_SHARE_READ * texts:
            yield parser
            return


def table_of_parsed(parser: str, table: Table) -> Table:
    """Return the table of the values parsed from a table's different texts, one row each."""
    return _parse_texts(parser, table)[0]


def _parse_texts(parser: str, table: Table) -> tuple[Table, Ints]:
    """Return the table of the values parsed from texts, and the row of each code of a text.

    A row is -1 if the text cannot be parsed. Caches both in `readings` of the table of outputs.
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
    """Return how to write the code that parses a text, and the value; numbers come first.

    None if no parser reads the text.
    """
    readers = {"number": (float, "float({})"), **PARSERS}
    for parse, template in readers.values():
        value = _try_to_parse(parse, text)
        if value is not None:
            return template.format, value
    return None


def _try_to_parse(parse: Callable[[str], Any], text: Any) -> Any:
    """Return the value that a parser reads from a text; None if the parser raises."""
    try:
        return parse(text)
    except (ValueError, TypeError, RecursionError, csv.Error):  # bytes are not all that texts are
        return None


def part_column(part: Part, table: Table) -> tuple[Floats, Ints]:
    """Return the numbers of a part in each output, and codes; absent without a number."""
    known, row = _parse_texts(part.parser, table)
    numbers, codes = part.inner.columns(known)
    return _spread_to_outputs(numbers, np.where(codes == NUMBER, NUMBER, ABSENT), part, table, row)


def condition_column(part: Part, table: Table) -> tuple[Floats, Ints]:
    """Return 1 for outputs whose parsed value meets a part's condition, else 0, and codes."""
    parsed, row = _parse_texts(part.parser, table)
    holds = part.inner.mask(parsed).astype(np.float64)
    return _spread_to_outputs(holds, np.full(len(holds), NUMBER), part, table, row)


def _spread_to_outputs(
    numbers: Floats, codes: Ints, part: Part, table: Table, row: Ints
) -> tuple[Floats, Ints]:
    """Return numbers and codes of outputs, given those of parsed values; absent without one.

    `row` has the row of the parsed value, by code of the text.
    """
    at = row[table.leaf(part.place)[1]]
    numbers, codes = np.append(numbers, np.nan), np.append(codes, ABSENT)  # -1 is the last
    return numbers[at], codes[at]


_PARSED = ("parsed", "parsed and tested")
"""Kinds of features of values in texts: numbers, and tests."""
KINDS.update(
    zip(
        _PARSED,
        (
            FeatureKind(part_column),
            FeatureKind(condition_column, lambda *_: None, whole=True, test=True),
        ),
        strict=True,
    )
)


def parsed_features(sample: Sample) -> list[Feature]:
    """Return features of texts that can be parsed: numbers, categories and keys in them."""
    found, table = [], sample.table
    for place in [feature.argument for feature in sample.leaves] if table.levels else ():
        for parser in parsers_of(place, table) if choose_readings(place, table) else ():
            parsed = table_of_parsed(parser, table)
            about = basic_features(Sample(parsed, None, 0, choose_places(parsed, None, 0)))
            for inner in filter(_is_new, about):
                for kind, said, what in _parsed_quantities(inner, parsed):
                    part = Part(place, parser, what)
                    found.append(Feature(reword_as_parsed(part, said), kind, part))
    return found


def _is_new(inner: Feature) -> bool:
    """Return whether a feature of a parsed value says more than the features of its text."""
    is_number = inner.kind == "reading" and inner.argument.what == "float"
    return is_number or inner.kind in ("leaf", "len", "key", "aspect", *_PARSED)


def _parsed_quantities(inner: Feature, parsed: Table) -> Iterator[tuple[str, str, Any]]:
    """Yield kind, text and argument of the features of a quantity of parsed values.

    The quantity, if a number; and tests for categories, if at most `MAX_FEW_KINDS` are different.
    """
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
