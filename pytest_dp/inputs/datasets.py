"""Datasets: which objects are one, their records, when two records are equal, how they print.

numpy and pandas are never imported here: an array can only be met if its library is loaded.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from itertools import islice
from numbers import Real
from typing import Any

_BRACKETS = {
    "list": ("[", "]"),
    "tuple": ("(", ")"),
    "set": ("{", "}"),
    "frozenset": ("frozenset({", "})"),
    "array": ("array([", "])"),
    "Series": ("Series([", "])"),
}


def kind_of(value: Any) -> tuple[Any, ...]:
    """What sort of dataset this is; empty if it is none.

    Two datasets of one kind can exchange records. The second entry is the shape of a record in an
    array, the columns of a data frame, the name of a series.
    """
    if isinstance(value, list):
        return ("list", None)
    if isinstance(value, tuple):
        # A named tuple is one record.
        return () if hasattr(value, "_fields") else ("tuple", None)
    if isinstance(value, set | frozenset):
        return ("set" if isinstance(value, set) else "frozenset", None)
    numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
    # A module that is only half imported has no classes yet, and so no objects.
    array: Any = getattr(numpy, "ndarray", ())
    frame: Any = getattr(pandas, "DataFrame", ())
    series: Any = getattr(pandas, "Series", ())
    if isinstance(value, array):
        return ("array", value.shape[1:]) if value.ndim else ()
    if isinstance(value, frame):
        return ("DataFrame", tuple(value.columns))
    if isinstance(value, series):
        return ("Series", value.name)
    return ()


def records_of(dataset: Any) -> list[Any]:
    """The records as plain Python objects, in order; those of a set in an order of their own."""
    match kind_of(dataset)[0]:
        case "set" | "frozenset":
            # The order in which a set iterates differs between processes.
            return sorted(dataset, key=_set_order)
        case "DataFrame":
            return list(dataset.itertuples(index=False, name=None))
        case "array" | "Series":
            return list(dataset.tolist())
    return list(dataset)


def is_real(value: object) -> bool:
    """Whether this is a number, NaN apart."""
    return isinstance(value, Real) and bool(value == value)


def key(value: Any) -> Hashable:
    """What is equal for equal records: NaN equals NaN, and lists, dicts and arrays have one too."""
    try:
        return _content(value)
    except Exception:  # records are the user's objects: anything may happen in them
        pass
    try:
        return (type(value), pickle.dumps(value))
    except Exception:
        return (type(value), describe(value, 1000), id(value))


def _content(value: Any) -> Hashable:
    if isinstance(value, str | int) or value is None:
        return value
    kind = kind_of(value)
    if kind:
        records = map(_content, records_of(value))
        return (kind, frozenset(records) if "set" in kind[0] else tuple(records))
    if isinstance(value, tuple):
        return (type(value), *map(_content, value))
    if isinstance(value, dict):
        return (
            "dict",
            frozenset((_content(name), _content(entry)) for name, entry in value.items()),
        )
    if is_dataclass(value) and not isinstance(value, type):
        parts = (getattr(value, field.name) for field in fields(value))
        return (type(value), *map(_content, parts))
    if not bool(value == value):
        return ("nan",)
    if not any("__eq__" in vars(base) for base in type(value).__mro__[:-1]):
        raise TypeError("equality says nothing about the content")
    hash(value)
    return value  # type: ignore[no-any-return]


def _set_order(record: Any) -> tuple[int, Any, str]:
    if is_real(record):
        return (0, record, "")
    return (1, type(record).__name__, describe(record, 1000))


def ends_first(records: list[Any]) -> list[int]:
    """Indices of the smallest, largest, next smallest, ... record, by each numeric column in turn.

    Numbers are one column; NaN and what is no number count as largest. Records without numbers
    keep their order.
    """
    if all(isinstance(record, dict) for record in records):
        table = [tuple(record.values()) for record in records]
    elif all(isinstance(record, list | tuple) for record in records):
        table = records
    else:
        table = [(record,) for record in records]
    orders = []
    for column in islice(zip(*table, strict=False), 16):
        if any(map(is_real, column)):
            sizes = [(0, value) if is_real(value) else (1, 0) for value in column]
            rising = sorted(range(len(sizes)), key=sizes.__getitem__)
            orders.append(
                [rising[-(at + 1) // 2 if at % 2 else at // 2] for at in range(len(sizes))]
            )
    in_turn = (index for batch in zip(*orders, strict=True) for index in batch)
    return list(dict.fromkeys(in_turn)) or list(range(len(records)))


def describe(value: Any, width: int = 60) -> str:
    """A dataset, or any other input, on one line of at most `width` characters.

    What does not fit is shown by its first records, its last one and its length:
    ``[0, 1, 2, ... 999] (1,000 records)``. Never raises, whatever the object does.
    """
    return _described(value, max(width, 20), 0)


def _described(value: Any, width: int, depth: int) -> str:
    try:
        kind = kind_of(value)
        text = _listed(value, kind, width, depth) if kind else repr(value)
        if "\n" in text:
            text = " ".join(text.split())
        return _cut(text, width)
    except Exception:  # a report must not fail on a broken __repr__
        return _cut(f"<{type(value).__name__}>", width)


def _listed(value: Any, kind: tuple[Any, ...], width: int, depth: int) -> str:
    n, name = len(value), kind[0]
    opening, closing = _BRACKETS.get(name, ("DataFrame(", ")"))
    if depth > 5:  # such as a list that contains itself
        return f"{opening}...{closing}"
    if n <= width:
        if name == "DataFrame":
            inside = _columns(value, kind[1], width, depth + 1)
            opening, closing = "DataFrame({", "})"
        elif not n and name in ("array", "set", "frozenset"):
            return repr(value)
        else:
            inside = (_described(record, width, depth + 1) for record in records_of(value))
        comma = "," if name == "tuple" and n == 1 else ""
        text = f"{opening}{_joined(inside, width)}{comma}{closing}"
        if len(text) <= width:
            return text
        if depth:
            return f"{text[: width - 3 - len(closing)]}...{closing}"
    if name == "DataFrame":
        opening, closing = f"DataFrame({_cut(', '.join(map(str, kind[1])), width // 3)}: ", ")"
    if "set" in name:
        value = records_of(value)
    rows = value.iloc if name in ("DataFrame", "Series") else value
    note = "" if depth else f" ({n:,} record{'s' if n != 1 else ''})"
    room = width - len(opening + closing + note) - len("... ")
    part = max((room - len(", ")) // 2, 3)  # so that the first record and the last one fit
    last = _described(records_of(rows[-1:])[0], part, depth + 1) if n else ""
    first = (_described(one, part, depth + 1) for one in records_of(rows[:width])[: max(n - 1, 0)])
    shown = _as_many_as_fit(first, room - len(last))
    skipped = "... " if len(shown) < n - 1 else ""
    text = f"{opening}{''.join(f'{one}, ' for one in shown)}{skipped}{last}{closing}"
    return _cut(text, width - len(note)) + note


def _as_many_as_fit(texts: Iterable[str], room: int) -> list[str]:
    """The first of the texts, as long as there is room for them and a comma after each."""
    shown: list[str] = []
    for text in texts:
        room -= len(text) + len(", ")
        if room < 0:
            break
        shown.append(text)
    return shown


def _columns(frame: Any, names: Iterable[Any], width: int, depth: int) -> Iterator[str]:
    """Each column of a data frame by its name."""
    for at, name in enumerate(names):
        cells = frame.iloc[:, at].tolist()
        yield f"{_described(name, width, depth)}: {_described(cells, width, depth)}"


def _joined(texts: Iterable[str], width: int) -> str:
    """The texts separated by commas; no further than just beyond the width."""
    joined = ""
    for text in texts:
        joined += f", {text}" if joined else text
        if len(joined) > width:
            break
    return joined


def _cut(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    tail = max(width - 3, 0) // 3
    return text[: max(width - 3 - tail, 0)] + "..." + (text[-tail:] if tail else "")
