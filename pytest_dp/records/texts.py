"""Values as text that is the same in every process, on every machine and after formatting code."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from pytest_dp.datasets.types import type_of
from pytest_dp.declaration import Neighbors, Queries, Values
from pytest_dp.keywords import is_strategy
from pytest_dp.limits import DEEP, SHORT_TEXT, THOUSAND
from pytest_dp.records.code import digest, of_names, source_digest
from pytest_dp.reprs import shown

_PLAIN = (type(None), bool, int, float, complex, str, bytes)


def text_of(value: Any) -> str:
    """A value as text: by its content, never by its address; functions by name and source."""
    try:
        return _text(value, 0)
    except Exception:  # values are the user's objects: anything may happen in them
        return f"<{type(value).__name__}>"


def with_code(text: str, value: Any) -> str:
    """The text, and a digest if the value holds code of the project, as strategies may."""
    code = "" if inspect.isroutine(value) or inspect.isclass(value) else of_names(value)
    return f"{brief(text)} #{digest(text + code)}" if code else text


def brief(text: str) -> str:
    """The text, or its beginning and a digest of it all."""
    return text if len(text) <= SHORT_TEXT else f"{text[: SHORT_TEXT - 20]}... #{digest(text)}"


def _text(value: Any, depth: int) -> str:
    if type(value) is float:  # the last digits of what is computed are the machine's
        return repr(float(f"{value:.12g}"))
    if type(value) in _PLAIN or isinstance(value, str | bytes):
        return repr(value)
    if depth > DEEP:
        return "..."
    for kinds, write in _WRITERS:
        if isinstance(value, kinds):
            return str(write(value, depth + 1))
    if inspect.isroutine(value) or inspect.isclass(value):
        code = of_names(value) or source_digest(value)
        return f"{getattr(value, '__qualname__', shown(value))} #{code}"
    data = type_of(value)
    if data is not None:
        columns = _text(data.columns(value), depth + 1)
        records = [_with_missing_values(record) for record in data.records(value)]
        return f"{data.name}({columns}, {_listed(records, depth + 1)})"
    if is_dataclass(value) and not isinstance(value, type):
        given = {field.name: getattr(value, field.name) for field in fields(value)}
        return f"{type(value).__name__}{_named(given, depth + 1)}"
    if getattr(type(value), "__repr__", None) is object.__repr__:
        return f"{type(value).__name__}{_named(getattr(value, '__dict__', {}), depth + 1)}"
    return with_code(shown(value), value) if is_strategy(value) else shown(value)


def _with_missing_values(record: Any) -> Any:
    """A record with None for NaN and the like, which versions of libraries take for each other."""
    if isinstance(record, tuple):
        return tuple(map(_with_missing_values, record))
    try:
        return record if bool(record == record) else None
    except Exception:  # such as pandas.NA, or an array in a cell
        return None if type(record).__name__ == "NAType" else record


def _listed(values: Any, depth: int) -> str:
    if len(values) > THOUSAND:
        return f"[#{digest(shown(values))}] ({len(values):,} in all)"
    return f"[{', '.join(_text(item, depth) for item in values)}]"


def _named(values: Mapping[str, Any], depth: int) -> str:
    return f"({', '.join(f'{name}={_text(item, depth)}' for name, item in values.items())})"


def _tuple(value: Any, depth: int) -> str:
    inside = ", ".join(_text(item, depth) for item in value)
    return f"({inside},)" if len(value) == 1 else f"({inside})"


def _set(value: Any, depth: int) -> str:
    return f"{{{', '.join(sorted(_text(item, depth) for item in value))}}}"


def _dict(value: Any, depth: int) -> str:
    entries = (f"{_text(key, depth)}: {_text(item, depth)}" for key, item in value.items())
    return f"{{{', '.join(entries)}}}"


def _array(value: Any, depth: int) -> str:
    if value.dtype.kind in "biufcSU" and value.size > SHORT_TEXT:
        # a digest of its bytes is quicker
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"array(#{content}, {value.dtype}, {value.shape})"
    return f"array({_text(value.tolist(), depth)}, {value.dtype})"


def _partial(value: Any, depth: int) -> str:
    return f"partial({_text(value.func, depth)}, {_tuple(value.args, depth)}, " + (
        f"{_dict(value.keywords, depth)})"
    )


_WRITERS: tuple[tuple[Any, Any], ...] = (
    (np.generic, lambda value, depth: _text(value.item(), depth)),
    (np.ndarray, _array),
    (list, _listed),
    (tuple, _tuple),
    ((set, frozenset), _set),
    (dict, _dict),
    (Queries, lambda value, depth: f"queries{_tuple(value.lengths, depth)}".replace(",)", ")")),
    (Values, lambda value, depth: f"values({_listed(value.options, depth)})"),
    (Neighbors, lambda value, depth: f"{value.name}{_named(value.said, depth)}"),
    (functools.partial, _partial),
)
