"""Names that functions of a copied mechanism find in place of Python's own."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np


class StandsFor(type):
    """Makes classes that stand for a type of numbers: calls are theirs, all else is that of it.

    To be subclassed; instances are made by ``Converting("float", (), {"plain": float, ...})``.
    """

    plain: type

    def __instancecheck__(cls, thing: Any) -> bool:
        return isinstance(thing, cls.plain)

    def __subclasscheck__(cls, other: type) -> bool:
        return other is cls or issubclass(other, cls.plain)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.plain

    def __hash__(cls) -> int:
        return hash(cls.plain)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.plain, name)

    @classmethod
    def of(cls, plain: type) -> Any:
        """What stands for a type, as a dtype of numpy as well."""
        return cls(plain.__name__, (), {"plain": plain, "dtype": np.dtype(plain)})


MAX_FOUND = 500
"""Functions and modules of a mechanism that are looked at."""


def shadow(mechanism: Any, names: Mapping[str, Any]) -> None:
    """Let the functions of a copy, and those they use, find other things under some names.

    Parameters
    ----------
    mechanism : callable
        A copy: whatever is shared with the original, or with a library, is left as it is.
    names : mapping of str
        What they find, unless they have a variable of that name themselves.
    """
    seen: set[int] = set()
    ahead = [mechanism]
    while ahead and len(seen) < MAX_FOUND:
        thing = ahead.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, types.FunctionType) and not _is_shared(thing):
            ahead += thing.__globals__.values()
            for name, value in names.items():
                thing.__globals__.setdefault(name, value)
        ahead += _inside(thing)


def _is_shared(function: types.FunctionType) -> bool:
    module = sys.modules.get(function.__module__ or "")
    return module is not None and vars(module) is function.__globals__


def _inside(thing: Any) -> Iterable[Any]:
    """Functions and classes in a thing, or around it."""
    if isinstance(thing, functools.partial):
        return (thing.func,)
    if isinstance(thing, types.MethodType):
        return thing.__func__, thing.__self__
    if isinstance(thing, types.FunctionType):
        return [cell.cell_contents for cell in thing.__closure__ or () if _is_filled(cell)]
    if isinstance(thing, type | types.ModuleType):
        return () if _is_found(thing) else list(vars(thing).values())
    return (getattr(thing, "__wrapped__", None), type(thing))


def _is_found(thing: type | types.ModuleType) -> bool:
    """Whether a class or a module is what its name stands for, and no copy."""
    if isinstance(thing, types.ModuleType):
        return sys.modules.get(thing.__name__) is thing
    return getattr(sys.modules.get(thing.__module__), thing.__name__, None) is thing


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # not bound yet
        return False
