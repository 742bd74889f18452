"""Functions of `math` on lazy draws, while a mechanism is enumerated."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from pytest_dp.exact.lazy import Lazy
from pytest_dp.randomness.modules import Replacements

LOWEST: dict[str, float | None] = {
    **dict.fromkeys(("log", "log2", "log10", "sqrt"), 0.0),
    "log1p": -1.0,
    **dict.fromkeys(("exp", "exp2", "expm1", "tanh", "atan", "sinh", "asinh", "cbrt", "erf")),
}
"""Increasing functions, with the start of their domains; None if that is the whole line."""


@functools.cache
def functions_of_draws() -> Replacements:
    """Functions of `math` that take draws; of other arguments they are what they were."""
    return Replacements(
        (math, name, _taking_draws(vars(math)[name], lowest))
        for name, lowest in LOWEST.items()
        if hasattr(math, name)
    )


def _taking_draws(function: Callable[..., Any], lowest: float | None) -> Callable[..., Any]:
    @functools.wraps(function)
    def apply(x: Any, *base: Any) -> Any:
        if type(x) is not Lazy:
            return function(x, *base)
        return x.through(lambda value: function(value, *base), lowest)

    return apply
