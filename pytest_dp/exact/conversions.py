"""``float(x)`` of a draw, which Python would ask for a number at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from pytest_dp.exact.lazy import Lazy


class _Converting(type):
    """Stands for `float`: draws stay draws, all else is as it was."""

    def __call__(cls, *args: Any) -> Any:
        if len(args) == 1 and type(args[0]) is Lazy:
            return args[0].increasing(float)
        return float(*args)

    def __instancecheck__(cls, thing: Any) -> bool:
        return isinstance(thing, float)

    def __subclasscheck__(cls, other: type) -> bool:
        return other is cls or issubclass(other, float)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is float

    def __hash__(cls) -> int:
        return hash(float)

    def __getattr__(cls, name: str) -> Any:
        return getattr(float, name)


NAMES = {"float": _Converting("float", (), {"dtype": np.dtype(float)})}
"""What the functions of a mechanism find under these names."""
