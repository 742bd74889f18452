"""``float(x)`` and ``int(x)`` of traced numbers, which Python would turn into plain ones."""

from __future__ import annotations

from typing import Any

from pytest_dp.analytic.affine import Affine
from pytest_dp.analytic.finite import Finite
from pytest_dp.sampling.shadowing import StandsFor


class _Converting(StandsFor):
    """A stand-in for ``float`` or ``int`` that keeps traced numbers."""

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Finite):
            return args[0].map(self.plain)
        if len(args) == 1 and isinstance(args[0], Affine) and _keeps(self.plain, args[0]):
            return args[0]
        return self.plain(*args, **keywords)

    def __instancecheck__(self, value: Any) -> bool:
        if isinstance(value, Affine):
            return value.is_whole == (self.plain is int)
        return super().__instancecheck__(value)


def _keeps(plain: type, value: Affine) -> bool:
    """Whether a conversion leaves a number as it is."""
    return plain is float or value.is_whole


NAMES = {plain.__name__: _Converting.of(plain) for plain in (float, int)}
"""Stand-ins by the names under which a mechanism finds them."""
