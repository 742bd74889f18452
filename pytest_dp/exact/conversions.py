"""``float(x)`` of a draw, for which Python itself would need a number at once."""

from __future__ import annotations

from typing import Any

from pytest_dp.exact.lazy import Lazy
from pytest_dp.sampling.shadowing import StandsFor


class _Converting(StandsFor):
    """A stand-in for ``float`` that leaves draws as they are."""

    def __call__(self, *args: Any) -> Any:
        if len(args) == 1 and type(args[0]) is Lazy:
            return args[0].increasing(float)
        return float(*args)


NAMES = {"float": _Converting.of(float)}
"""Stand-ins by the names under which a mechanism finds them."""
