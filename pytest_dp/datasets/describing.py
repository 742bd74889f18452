"""Datasets and other inputs on one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pytest_dp.datasets.types import DataType, type_of


def describe(value: Any, width: int = 60) -> str:
    """A dataset, or any other input, on one line of at most `width` characters.

    What does not fit is shown by its first records, its last one and its length:
    ``[0, 1, 2, ... 999] (1,000 records)``. Never raises, whatever the object does.
    """
    return _described(value, max(width, 20), 0)


def cut(text: str, width: int) -> str:
    """A text of at most `width` characters: its start and its end."""
    if len(text) <= width:
        return text
    tail = max(width - 3, 0) // 3
    return text[: max(width - 3 - tail, 0)] + "..." + (text[-tail:] if tail else "")


def _described(value: Any, width: int, depth: int) -> str:
    try:
        data = type_of(value)
        shown = data is not None and data.brackets != ("", "")
        text = _listed(value, data, width, depth) if data and shown else repr(value)
        if "\n" in text:
            text = " ".join(text.split())
        return cut(text, width)
    except Exception:  # a report must not fail on a broken __repr__
        return cut(f"<{type(value).__name__}>", width)


def _in_full(value: Any, data: DataType, width: int, depth: int) -> tuple[str, str]:
    """All records of a small dataset, and the bracket that closes them."""
    names, (opening, closing) = data.columns(value), data.brackets
    n = data.length(value)
    if names is not None:
        opening, closing = data.small_brackets or _table_brackets(data)
        opening, closing = f"{opening}{{", f"}}{closing}"
        cells = data.cells(value) or [[] for _ in names]
        inside = _columns(names, cells, width, depth + 1)
    else:
        inside = (_described(record, width, depth + 1) for record in data.records(value))
    comma = "," if data.name == "tuple" and n == 1 else ""
    return f"{opening}{_joined(inside, width)}{comma}{closing}", closing


def _listed(value: Any, data: DataType, width: int, depth: int) -> str:
    n, (opening, closing) = data.length(value), data.brackets
    if depth > 5:  # such as a list that contains itself
        return f"{opening}...{closing}"
    names = data.columns(value)
    if not n and names is None and data.name in ("array", "set", "frozenset"):
        return repr(value)
    if n <= width:
        text, bracket = _in_full(value, data, width, depth)
        if len(text) <= width:
            return text
        if depth:
            return f"{text[: width - 3 - len(bracket)]}...{bracket}"
    if names is not None:
        opening, closing = _table_brackets(data)
        opening = f"{opening}{cut(', '.join(map(str, names)), width // 3)}: "
    note = "" if depth else f" ({n:,} record{'s' if n != 1 else ''})"
    room = width - len(opening + closing + note) - len("... ")
    part = max((room - len(", ")) // 2, 3)  # so that the first record and the last one fit
    ahead, end = _ends(value, data, n, width)
    last = "".join(_described(record, part, depth + 1) for record in end)
    texts = (_described(record, part, depth + 1) for record in ahead)
    shown = _as_many_as_fit(texts, room - len(last))
    skipped = "... " if len(shown) < n - 1 else ""
    text = f"{opening}{''.join(f'{text}, ' for text in shown)}{skipped}{last}{closing}"
    return cut(text, width - len(note)) + note


def _ends(value: Any, data: DataType, n: int, limit: int) -> tuple[list[Any], list[Any]]:
    """The first records, at most `limit`, and the last one."""
    if data.unique:
        records = data.records(value)
        return records[: min(limit, n - 1)], records[-1:]
    # Only these records are converted: there may be millions.
    rows = data.joined([value])
    head = data.records(data.taken(rows, range(min(limit, max(n - 1, 0)))))
    return head, data.records(data.taken(rows, [n - 1] if n else []))


def _as_many_as_fit(texts: Iterable[str], room: int) -> list[str]:
    """The first of the texts, as long as there is room for them and a comma after each."""
    shown: list[str] = []
    for text in texts:
        room -= len(text) + len(", ")
        if room < 0:
            break
        shown.append(text)
    return shown


def _table_brackets(data: DataType) -> tuple[str, str]:
    """Brackets around columns by their names, such as those of a structured array."""
    opening, closing = data.brackets
    return opening.removesuffix("["), closing.removeprefix("]")


def _columns(names: Iterable[Any], columns: Iterable[Any], width: int, depth: int) -> Iterator[str]:
    """Each column of a table by its name."""
    for name, cells in zip(names, columns, strict=True):
        yield f"{_described(name, width, depth)}: {_described(cells, width, depth)}"


def _joined(texts: Iterable[str], width: int) -> str:
    """The texts separated by commas; no further than just beyond the width."""
    joined = ""
    for text in texts:
        joined += f", {text}" if joined else text
        if len(joined) > width:
            break
    return joined
