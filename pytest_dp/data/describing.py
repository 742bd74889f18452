"""Values as text, type by type; datasets and other inputs on one line.

`Visitor` writes values. Its subclasses are `Describer` for people, `python_source.SourceWriter` for
Python, and `records.identity.Canonical` for texts that are equal in every process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar

from pytest_dp.basics.errors import note_fault
from pytest_dp.basics.reprs import plural, repr_of, safe_repr
from pytest_dp.data.types import DataType, type_of

MAX_DEPTH = 5
"""Levels of containers that are shown. More: texts are longer; fewer: what differs is not seen."""
MAX_LEVELS = 20
"""Levels of containers that are written, as some hold themselves. Fewer hide deeper values."""
PLAIN = (type(None), bool, int, float, complex, str, bytes)


def describe(value: Any, width: int = 60) -> str:
    """Return a dataset, or any other object, on one line of at most `width` characters.

    A dataset that does not fit is shown by its first records, its last one and its length: ``[0, 1,
    2, ... 999] (1,000 records)``. Never raises. A `width` below 20 counts as 20.
    """
    return Describer(max(width, 20)).text(value)


def describe_record(record: Any, width: int = 60) -> str:
    """Return one record, whose parts are not records, on one line: ``[0, 1, 2, 3...]``."""
    return Describer(max(width, 20)).text(record, depth=1)


def describe_whole(value: Any, width: int) -> str | None:
    """Return all of a value on one line; None if it needs more than `width` characters."""
    text = describe(value, 10 * width)  # what leaves anything out is about as long as it may be
    return text if len(text) <= width else None


def shorten(text: str, width: int) -> str:
    """Cut a text to at most `width` characters: its start, dots, and its end."""
    if len(text) <= width:
        return text
    tail = max(width - 3, 0) // 3
    return text[: max(width - 3 - tail, 0)] + "..." + (text[-tail:] if tail else "")


class Visitor:
    """Writes a value by its type; `depth` is the number of containers around it."""

    kinds: ClassVar[tuple[tuple[Any, Callable[[Any, Any, int], str]], ...]] = ()
    """Further types, each with how a value of it is written; they go before all others."""

    def text(self, value: Any, depth: int = 0) -> str:
        """Return a value of any type as text.

        Levels after `MAX_LEVELS` are written by `too_deep`, objects of other types by `other`.
        """
        if type(value) in PLAIN:
            return self.plain(value)
        if depth > MAX_LEVELS:
            return self.too_deep(value)
        for kinds, write in self.kinds:
            if isinstance(value, kinds):
                return write(self, value, depth + 1)
        for kinds, name in _CONTAINERS:
            if isinstance(value, kinds):
                return str(getattr(self, name)(value, depth + 1))
        data = type_of(value)
        if data is not None:
            return self.dataset(value, data, depth + 1)
        if is_dataclass(value) and not isinstance(value, type):
            given = {field.name: getattr(value, field.name) for field in fields(value)}
            return self.record(value, given, depth + 1)
        return self.other(value, depth + 1)

    def plain(self, value: Any) -> str:
        """Return a number, a text, bytes or None as its repr."""
        return repr(value)

    def too_deep(self, value: Any) -> str:  # noqa: ARG002  such as a list that contains itself
        """Return the text of a value more than `MAX_LEVELS` deep."""
        return "..."

    def join_texts(self, texts: Iterable[str]) -> str:
        return ", ".join(texts)

    def join_values(self, values: Iterable[Any], depth: int) -> str:
        """Return values as texts, joined by commas."""
        return self.join_texts(self.text(value, depth) for value in values)

    def join_named(self, values: Mapping[str, Any], depth: int) -> str:
        """Return named values as ``name=text``, joined by commas."""
        return self.join_texts(
            f"{name}={self.text(value, depth)}" for name, value in values.items()
        )

    def as_list(self, value: Any, depth: int) -> str:
        return f"[{self.join_values(value, depth)}]"

    def as_tuple(self, value: Any, depth: int) -> str:
        return f"({self.join_values(value, depth)}{',' if len(value) == 1 else ''})"

    def as_set(self, value: Any, depth: int) -> str:
        """Return a set as text, sorted, as its order of iteration differs between processes."""
        return f"{{{self.join_texts(sorted(self.text(item, depth) for item in value))}}}"

    def as_dict(self, value: Any, depth: int) -> str:
        items = value.items()
        texts = (f"{self.text(key, depth)}: {self.text(item, depth)}" for key, item in items)
        return f"{{{self.join_texts(texts)}}}"

    def dataset(self, value: Any, data: DataType, depth: int) -> str:  # noqa: ARG002
        """Return a dataset as text; by default, as `other` does."""
        return self.other(value, depth)

    def record(self, value: Any, given: Mapping[str, Any], depth: int) -> str:
        """Return a dataclass as text, by its values in `given`."""
        return f"{self.name(type(value))}({self.join_named(given, depth)})"

    def name(self, kind: type) -> str:
        return kind.__name__

    def other(self, value: Any, depth: int) -> str:  # noqa: ARG002
        """Return an object of any other type as its repr, without addresses."""
        return safe_repr(value)


_CONTAINERS: tuple[tuple[Any, str], ...] = (
    (list, "as_list"),
    (tuple, "as_tuple"),
    ((set, frozenset), "as_set"),
    (dict, "as_dict"),
)


class Describer(Visitor):
    """Writes a value for people, in at most `width` characters; raises no error of the value."""

    def __init__(self, width: int) -> None:
        self.width = width

    def text(self, value: Any, depth: int = 0) -> str:
        try:
            data = type_of(value)
            shown = data is not None and data.brackets != ("", "")
            text = self.dataset(value, data, depth) if data and shown else self._other(value, depth)
            if "\n" in text:
                text = " ".join(text.split())
            return shorten(text, self.width)
        except Exception as error:  # a report must not fail on a broken __repr__
            note_fault(error, "describing a value")
            return shorten(f"<{type(value).__name__}>", self.width)

    def join_texts(self, texts: Iterable[str]) -> str:
        """Join texts with commas, and stop once they are wider than the limit."""
        joined = ""
        for text in texts:
            joined += f", {text}" if joined else text
            if len(joined) > self.width:
                break
        return joined

    def _other(self, value: Any, depth: int) -> str:
        """Return the repr of an object; a long dict by short texts of its first entries."""
        if type(value) is not dict or not value or depth > MAX_DEPTH:
            return repr_of(value)
        text = self.as_dict(value, depth + 1)
        if len(text) <= self.width:
            return text
        part = Describer(max(self.width // len(value) // 2, 10))
        items = value.items()
        entries = (f"{part.text(k, depth + 1)}: {part.text(v, depth + 1)}" for k, v in items)
        return f"{{{self.join_texts(entries)}}}"

    def dataset(self, value: Any, data: DataType, depth: int) -> str:
        """Return a dataset in full if it fits; else first records, the last one and the length."""
        n, (opening, closing) = data.length(value), data.brackets
        if depth > MAX_DEPTH:  # such as a list that contains itself
            return f"{opening}...{closing}"
        names = data.columns(value)
        if not n and names is None and data.name in ("array", "set", "frozenset"):
            return repr(value)
        if n <= self.width:
            text, bracket = self._in_full(value, data, depth)
            if len(text) <= self.width:
                return text
            if depth:
                return f"{text[: self.width - 3 - len(bracket)]}...{bracket}"
        if names is not None:
            opening, closing = _table_brackets(data)
            opening = f"{opening}{shorten(', '.join(map(str, names)), self.width // 3)}: "
        note = "" if depth else f" ({plural(n, 'record')})"
        room = self.width - len(opening + closing + note) - len("... ")
        part = Describer(max((room - len(", ")) // 2, 3))  # so that the first and the last one fit
        ahead, end = _first_and_last(value, data, n, self.width)
        last = "".join(part.text(record, depth + 1) for record in end)
        texts = (part.text(record, depth + 1) for record in ahead)
        shown = _as_many_as_fit(texts, room - len(last))
        skipped = "... " if len(shown) < n - 1 else ""
        text = f"{opening}{''.join(f'{text}, ' for text in shown)}{skipped}{last}{closing}"
        return shorten(text, self.width - len(note)) + note

    def _in_full(self, value: Any, data: DataType, depth: int) -> tuple[str, str]:
        """Return all records of a small dataset as text, and the bracket that closes them."""
        names, (opening, closing) = data.columns(value), data.brackets
        inside: Iterator[str]
        if names is not None:
            opening, closing = data.small_brackets or _table_brackets(data)
            opening, closing = f"{opening}{{", f"}}{closing}"
            columns = zip(names, data.cells(value) or [[] for _ in names], strict=True)
            inside = (": ".join(self.text(part, depth + 1) for part in item) for item in columns)
        else:
            inside = (self.text(record, depth + 1) for record in data.records(value))
        comma = "," if data.name == "tuple" and data.length(value) == 1 else ""
        return f"{opening}{self.join_texts(inside)}{comma}{closing}", closing


def _first_and_last(value: Any, data: DataType, n: int, limit: int) -> tuple[list[Any], list[Any]]:
    """Return the first of `n` records, at most `limit` and never all, and the last in a list."""
    if data.unique:
        records = data.records(value)
        return records[: min(limit, n - 1)], records[-1:]
    # Only these records are converted: there may be millions.
    rows = data.join_rows([value])
    head = data.records(data.take_rows(rows, range(min(limit, max(n - 1, 0)))))
    return head, data.records(data.take_rows(rows, [n - 1] if n else []))


def _as_many_as_fit(texts: Iterable[str], room: int) -> list[str]:
    """Return the first texts that, each with a comma, have at most `room` characters together."""
    shown: list[str] = []
    for text in texts:
        room -= len(text) + len(", ")
        if room < 0:
            break
        shown.append(text)
    return shown


def _table_brackets(data: DataType) -> tuple[str, str]:
    """Return the brackets of a table around its columns, without the inner ``[`` and ``]``."""
    opening, closing = data.brackets
    return opening.removesuffix("["), closing.removeprefix("]")
