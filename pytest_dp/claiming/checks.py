"""Checks of values that several keywords share, each saying what is allowed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from numbers import Integral, Real
from typing import Any

from pytest_dp.basics.errors import did_you_mean, invalid

Check = Callable[[str, Any], Any]
"""From the name of a field and what is given for it to its value, or a `ClaimError`."""


def number_between(low: float, high: float, allowed: str) -> Check:
    """Return a number strictly between two others."""

    def check(name: str, value: Any) -> float:
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not number or not low < value < high:
            raise invalid(name, value, f"Allowed: {allowed}.")
        return float(value)

    return check


def probability_check(example: str) -> Check:
    """Return a number strictly between 0 and 1."""
    return number_between(0, 1, f"a probability between 0 and 1, such as {example}")


def read_whole_number(
    name: str, value: Any, allowed: str = " above 0, such as 3", least: int = 1
) -> int:
    """Return a whole number."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise invalid(name, value, f"Allowed: a whole number{allowed}.")
    return int(value)


def read_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """Return one of several words."""
    if not isinstance(value, str) or value not in choices:
        hint = did_you_mean(value.lower(), choices) if isinstance(value, str) else ""
        raise invalid(name, value, f"Valid choices: {', '.join(map(repr, choices))}.{hint}")
    return value


def function(allowed: str) -> Check:
    """Return a check that a value can be called."""

    def check(name: str, value: Any) -> Any:
        if not callable(value):
            raise invalid(name, value, f"Allowed: a function {allowed}.")
        return value

    return check


def is_strategy(value: object) -> bool:
    """Return whether a value is a Hypothesis strategy; none is if Hypothesis is not loaded."""
    strategy = getattr(sys.modules.get("hypothesis.strategies"), "SearchStrategy", ())
    return isinstance(value, strategy)


def flag(name: str, value: Any) -> bool:
    """Return the value if it is True or False; raise ClaimError otherwise."""
    if not isinstance(value, bool):
        raise invalid(name, value, "Allowed: True or False.")
    return value
