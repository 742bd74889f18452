"""Names that functions of a copied mechanism find in place of Python's own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from pytest_dp.basics.reach import functions_of


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
        module = sys.modules.get(function.__module__ or "")
        if module is None or vars(module) is not function.__globals__:
            for name, value in names.items():
                function.__globals__.setdefault(name, value)
