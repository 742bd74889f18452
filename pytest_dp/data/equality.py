"""Equality of values: by types and content (`key`), or as Python compares (`equality_key`).

Inputs are the same only if no mechanism can distinguish them: types and the sign of 0.0 count.
Relations compare records as Python does: 1 in an array of integers equals 1.0 in one of floats.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from pytest_dp.data.describing import describe
from pytest_dp.data.types import type_of


def key(value: Any) -> Hashable:
    """Return a key that is equal only for values of the same types and content; NaN equals NaN."""
    return _key(value, _content)


def equality_key(value: Any) -> Hashable:
    """Return a key, also for lists, that is equal for values that are equal in Python or NaN."""
    return _key(value, _equal_content)


def digest(value: Any) -> bytes:
    """Return a 128-bit hash of `key`, for values that may be large."""
    return blake2b(repr(key(value)).encode("utf-8", "backslashreplace"), digest_size=16).digest()


def _key(value: Any, content: Callable[[Any], Hashable]) -> Hashable:
    """Return `content` of a value; if that raises, its pickle, or its text and address."""
    try:
        return content(value)
    except Exception:  # records are the user's objects: anything may happen in them
        pass
    try:
        return (type(value), pickle.dumps(value))
    except Exception:
        return (type(value), describe(value, 1000), object.__repr__(value))  # its address


def _content(value: Any) -> Hashable:
    """Return the types and the content of a value, as nested tuples."""
    kind = type(value)
    if kind is float:  # most cells are plain, and there may be millions
        return (float, value or repr(value)) if value == value else ("nan",)
    if value is None or kind is str or kind is int:
        return value  # type: ignore[no-any-return]
    if kind in (bool, bytes, complex):
        return (kind, repr(value))
    if kind is tuple:
        return ("tuple", *map(_content, value))
    if kind is dict:
        return ("dict", *((_content(name), _content(entry)) for name, entry in value.items()))
    data = type_of(value)
    if data is not None and kind in data.classes():
        if kind is _array_type() and value.dtype.kind in "biuf":
            return (kind, _content(data.form(value)), value.shape, _bytes(value))
        records = map(_content, data.records(value))
        ordered = sorted(records, key=repr) if data.unique else records
        return (kind, _content(data.form(value)), *ordered)
    if isinstance(value, type):
        return (type, value)
    return (kind, *_state(value))


def _array_type() -> Any:
    """Return the class of arrays; None while NumPy is not loaded."""
    return getattr(sys.modules.get("numpy"), "ndarray", None)


def _bytes(array: Any) -> bytes:
    """Return the numbers of an array as they are in memory, with one form for every NaN."""
    import numpy as np  # as the value is an array, it is loaded

    if array.dtype.kind == "f" and np.isnan(array).any():
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return bytes(array.tobytes())


def _state(value: Any) -> tuple[Hashable, ...]:
    """Return the content of an object by its fields or its pickle; its address if there is none."""
    if is_dataclass(value):  # also of a class that cannot be pickled
        slots = {field.name: getattr(value, field.name) for field in fields(value)}
        return (_content({**slots, **getattr(value, "__dict__", {})}),)
    if hasattr(value, "_fields") and isinstance(value, tuple) and not hasattr(value, "__dict__"):
        return tuple(map(_content, value))  # a named tuple, which may hold sets
    with suppress(Exception):
        return (_pickle_without_memo(value),)
    with suppress(Exception):  # of a class that is defined in a function
        _, *parts = value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        given, items = parts[:2], parts[2:4]  # arguments and state; of subclasses of list or dict
        return tuple(map(_content, [*given, *(list(part) for part in items if part)]))
    return (object.__repr__(value),)  # its address


def _pickle_without_memo(value: Any) -> bytes:
    """Pickle without references to earlier parts: equal objects need not share parts."""
    file = io.BytesIO()
    pickler = pickle.Pickler(file, pickle.HIGHEST_PROTOCOL)
    pickler.fast = True
    pickler.dump(value)
    return file.getvalue()


def _equal_content(value: Any) -> Hashable:
    """Return the content of a value, which is equal for equal values, as nested tuples.

    Raises TypeError for an object without an equality of its own, or without a hash.
    """
    if type(value) is float:  # most cells are plain, and there may be millions
        return value if value == value else ("nan",)
    if value is None or isinstance(value, str | int):
        return value
    if type(value) is tuple:
        return (("tuple", None), tuple(map(_equal_content, value)))
    if isinstance(value, dict):
        items = value.items()
        return ("dict", frozenset((_equal_content(k), _equal_content(v)) for k, v in items))
    data = type_of(value)
    if data:
        records = map(_equal_content, data.records(value))
        kind = (data.name, data.detail(value))
        return (kind, frozenset(records) if data.unique else tuple(records))
    if isinstance(value, tuple):
        return (type(value), *map(_equal_content, value))
    if is_dataclass(value) and not isinstance(value, type):
        parts = (getattr(value, field.name) for field in fields(value))
        return (type(value), *map(_equal_content, parts))
    if value is getattr(sys.modules.get("pandas"), "NA", ...) or not bool(value == value):
        return ("nan",)
    cls: Any = type(value)
    if not _has_equality(cls):
        raise TypeError("equality says nothing about the content")
    hash(value)
    return value  # type: ignore[no-any-return]


def is_missing(value: Any) -> bool:
    """Return whether a value is the NaN or NaT of any library, or the NA of pandas; not None."""
    try:
        return not bool(value == value)
    except Exception:  # such as of pandas.NA, or of an array in a cell
        return type(value).__name__ == "NAType"


@lru_cache(maxsize=1_000)
def _has_equality(cls: Any) -> bool:
    """Return whether a class, or a base other than `object`, defines ``__eq__``."""
    return any("__eq__" in vars(base) for base in cls.__mro__[:-1])
