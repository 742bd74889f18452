"""Functions of `math` on lazy draws, while a mechanism is enumerated."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pytest_dp.exact.lazy import Lazy

LOWEST: dict[str, float | None] = {
    **dict.fromkeys(("log", "log2", "log10", "sqrt"), 0.0),
    "log1p": -1.0,
    **dict.fromkeys(("exp", "exp2", "expm1", "tanh", "atan", "sinh", "asinh", "cbrt", "erf")),
}
"""Increasing functions, with the start of their domains; None if that is the whole line."""


@contextmanager
def functions_of_draws() -> Iterator[None]:
    """Let functions of `math` take draws; of other arguments they are what they were."""
    before = {name: vars(math)[name] for name in LOWEST if hasattr(math, name)}
    for name, function in before.items():
        setattr(math, name, _taking_draws(function, LOWEST[name]))
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(math, name, function)


def _taking_draws(function: Callable[..., Any], lowest: float | None) -> Callable[..., Any]:
    @functools.wraps(function)
    def apply(x: Any, *base: Any) -> Any:
        if type(x) is not Lazy:
            return function(x, *base)
        return x.through(lambda value: function(value, *base), lowest)

    return apply
