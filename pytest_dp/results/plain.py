"""Dataclasses as what JSON has, and back, by their annotations."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
Share = Annotated[float, {"minimum": 0, "maximum": 1}]
"""A probability, and what the JSON Schema says of it."""
MaybeInfinite = Annotated[float, {"type": ["number", "null", "string"]}]
"""A number that may be infinite: null. Negative infinity and NaN are texts."""
_AS_TEXT = {"NaN": math.nan, "-Infinity": -math.inf}
"""Texts for numbers that JSON does not have; infinity is null."""


def finite(value: float | None) -> float | None:
    """Return a finite number, or None, as JSON has no infinity."""
    return None if value is None or not math.isfinite(value) else float(value)


def plain(value: Any) -> Any:
    """Return what JSON gives back: lists for tuples, finite numbers, text that can be encoded."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {plain(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, str):  # a half of a surrogate pair is no character
        return value.encode("utf-8", "backslashreplace").decode()
    if not isinstance(value, float) or math.isfinite(value):
        return float(value) if isinstance(value, float) else value
    return "NaN" if math.isnan(value) else "-Infinity" if value < 0 else None


def from_plain(kind: type[T], value: Any) -> T:
    """Return the value of a kind that `plain` was taken of."""
    return cast("T", _from_plain(kind, value))


def _from_plain(kind: Any, value: Any) -> Any:
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        return kind(
            **{name: _from_plain(hints[name], entry) for name, entry in dict(value).items()}
        )
    origin, parts = get_origin(kind), get_args(kind)
    if origin is UnionType:  # of something and None
        (some,) = (part for part in parts if part is not NoneType)
        return None if value is None else _from_plain(some, value)
    if origin is tuple:
        kinds = parts[:1] * len(value) if parts[1:] == (...,) else parts
        return tuple(_from_plain(*each) for each in zip(kinds, value, strict=True))
    if kind is float:
        return math.inf if value is None else _AS_TEXT.get(value, value)
    return value


_hints = cache(get_type_hints)
