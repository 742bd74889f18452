"""Names that functions of a copied mechanism find in place of Python's own."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pytest_dp.basics.reach import is_bound

MAX_OBJECTS = 500
"""Objects that are looked through for generators. More take longer; fewer miss some."""


class StandsFor(type):
    """Makes classes that stand for a type of numbers: what has `__converted__` says how it is.

    Instances are made by `of`. All but calls of them is that of the type.
    """

    plain: type

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        if len(args) == 1 and hasattr(type(args[0]), "__converted__"):
            return args[0].__converted__(cls.plain)
        return cls.plain(*args, **keywords)

    def __instancecheck__(cls, obj: Any) -> bool:
        return isinstance(obj, cls.plain)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls or issubclass(subclass, cls.plain)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.plain

    def __hash__(cls) -> int:
        return hash(cls.plain)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.plain, name)

    @classmethod
    def of(cls, plain: type) -> Any:
        """Make a stand-in for a type, which is also a dtype of numpy."""
        return cls(plain.__name__, (), {"plain": plain, "dtype": np.dtype(plain)})


def shadow(mechanism: Any, names: Mapping[str, Any]) -> None:
    """Let the functions of a copy, and those they use, find other objects under some names.

    They find them unless they have a variable of that name themselves. Whatever the copy shares
    with the original, or with a library, is left as it is.
    """
    for function in functions_of(mechanism):
        for name, value in names.items():
            function.__globals__.setdefault(name, value)


def functions_of(mechanism: Any) -> list[types.FunctionType]:
    """The functions of a copy, and those they use, without those that it shares."""
    found: list[types.FunctionType] = []
    seen: set[int] = set()
    ahead = [mechanism]
    while ahead and len(seen) < MAX_OBJECTS:
        obj = ahead.pop()
        if id(obj) in seen:
            continue
        seen.add(id(obj))
        if isinstance(obj, types.FunctionType) and not _is_shared(obj):
            ahead += obj.__globals__.values()
            found.append(obj)
        ahead += _inside(obj)
    return found


def _is_shared(function: types.FunctionType) -> bool:
    module = sys.modules.get(function.__module__ or "")
    return module is not None and vars(module) is function.__globals__


def _inside(obj: Any) -> Iterable[Any]:
    """Functions and classes in an object, or around it."""
    if isinstance(obj, functools.partial):
        return (obj.func,)
    if isinstance(obj, types.MethodType):
        return obj.__func__, obj.__self__
    if isinstance(obj, types.FunctionType):
        return [cell.cell_contents for cell in obj.__closure__ or () if is_bound(cell)]
    if isinstance(obj, type | types.ModuleType):
        return () if _is_original(obj) else list(vars(obj).values())
    return (getattr(obj, "__wrapped__", None), type(obj))


def _is_original(obj: type | types.ModuleType) -> bool:
    """Return whether a class or a module is the object that its name refers to, not a copy."""
    if isinstance(obj, types.ModuleType):
        return sys.modules.get(obj.__name__) is obj
    return getattr(sys.modules.get(obj.__module__), obj.__name__, None) is obj
