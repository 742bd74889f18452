"""``float(x)`` and ``int(x)`` of traced numbers, which Python would turn into plain ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from pytest_dp.analytic.values import Affine, Finite


class _Converting(type):
    """Stands for a type of numbers: calls are traced, all else is that of the type."""

    plain: type

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Finite):
            return args[0].map(cls.plain)
        if len(args) == 1 and isinstance(args[0], Affine) and _keeps(cls.plain, args[0]):
            return args[0]
        return cls.plain(*args, **keywords)

    def __instancecheck__(cls, thing: Any) -> bool:
        if isinstance(thing, Affine):
            return thing.is_whole == (cls.plain is int)
        return isinstance(thing, cls.plain)

    def __subclasscheck__(cls, other: type) -> bool:
        return other is cls or issubclass(other, cls.plain)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.plain

    def __hash__(cls) -> int:
        return hash(cls.plain)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.plain, name)


def _keeps(plain: type, value: Affine) -> bool:
    """Whether a conversion leaves a number as it is."""
    return plain is float or value.is_whole


def _standing_for(plain: type) -> Any:
    return _Converting(plain.__name__, (), {"plain": plain, "dtype": np.dtype(plain)})


NAMES = {plain.__name__: _standing_for(plain) for plain in (float, int)}
"""What a mechanism finds under these names."""
