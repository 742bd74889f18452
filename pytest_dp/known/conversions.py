"""Functions of Python and `math` that would turn draws into plain numbers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from pytest_dp.known.affine import Affine
from pytest_dp.known.monotone import INCREASING, LOWEST, is_draw
from pytest_dp.randomness.modules import Replacements
from pytest_dp.sampling.shadowing import StandsFor


@functools.cache
def functions_of_draws() -> Replacements:
    """Functions of `math` that take draws; of other arguments they are what they were."""
    names = {name.replace("arc", "a") for name in INCREASING} | LOWEST.keys() | {"erf"}
    return Replacements(
        (math, name, _taking_draws(vars(math)[name], LOWEST.get(name)))
        for name in sorted(names & vars(math).keys())
    )


def _taking_draws(function: Callable[..., Any], lowest: float | None) -> Callable[..., Any]:
    @functools.wraps(function)
    def apply(x: Any, *base: Any) -> Any:
        if not is_draw(x):
            return function(x, *base)
        return x.through(lambda value: function(value, *base), lowest)

    return apply


class _Converting(StandsFor):
    """A stand-in for ``float`` or ``int``, of which draws are instances."""

    def __instancecheck__(self, value: Any) -> bool:
        if isinstance(value, Affine):
            return value.is_whole == (self.plain is int)
        return super().__instancecheck__(value)


FLOAT, INT = ({kind.__name__: _Converting.of(kind)} for kind in (float, int))
"""Stand-ins by the names under which a mechanism finds them."""
