"""Functions of Python and `math` that would turn draws into plain numbers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from pytest_dp.oracles.monotone import INCREASING, LOWEST, is_draw
from pytest_dp.running.modules import Replacements
from pytest_dp.running.shadowing import StandsFor


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


FLOAT, INT = ({kind.__name__: StandsFor.of(kind)} for kind in (float, int))
"""Stand-ins for types by the names under which a mechanism finds them."""
