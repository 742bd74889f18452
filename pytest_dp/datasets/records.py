"""Records: when two are equal, and which of them matter most."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from itertools import islice
from numbers import Real
from typing import Any

from pytest_dp.datasets.describing import describe
from pytest_dp.datasets.types import type_of


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
    if isinstance(value, dict):
        return (
            "dict",
            frozenset((_content(name), _content(entry)) for name, entry in value.items()),
        )
    data = type_of(value)
    if data:
        records = map(_content, data.records(value))
        kind = (data.name, data.detail(value))
        return (kind, frozenset(records) if data.unique else tuple(records))
    if isinstance(value, tuple):
        return (type(value), *map(_content, value))
    if is_dataclass(value) and not isinstance(value, type):
        parts = (getattr(value, field.name) for field in fields(value))
        return (type(value), *map(_content, parts))
    if value is getattr(sys.modules.get("pandas"), "NA", ...) or not bool(value == value):
        return ("nan",)
    if not any("__eq__" in vars(base) for base in type(value).__mro__[:-1]):
        raise TypeError("equality says nothing about the content")
    hash(value)
    return value  # type: ignore[no-any-return]


def set_order(record: Any) -> tuple[int, Any, str]:
    """By what the records of a set are sorted."""
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
