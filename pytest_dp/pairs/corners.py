"""Choices of a strategy at which code goes wrong: odd numbers, texts and days, and near ones."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from random import Random
from typing import Any

ODD_DAYS = (2, 29), (2, 29), (12, 31), (1, 1), (2, 28)
"""Months and days at which code goes wrong that counts with dates, the oddest twice."""
ODD_DAYS_SHARE = 0.2
"""Share of dates that become such a day."""


def corners(kind: type) -> list[Any]:
    """Return numbers and texts at which code goes wrong; a strategy may not allow some of them."""
    if kind is int:
        return [0, 1, 10**6, -(10**6), 2**31 - 1, -(2**31)]
    if kind is float:
        inf, largest = math.inf, sys.float_info.max
        return [0.0, -0.0, inf, -inf, math.nan, 1e6, -1e6, largest, -largest]
    return [kind()]


def odd_days(choices: Sequence[Any], random: Random) -> dict[int, int]:
    """Return numbers, by their places, that make some dates among the choices odd ones.

    A date is what strategies draw as one: a year, a month and a day in a row.
    """
    found: dict[int, int] = {}
    for at in range(len(choices) - 2):
        date = choices[at : at + 3]
        if all(type(number) is int for number in date):
            year, month, day = date
            is_date = 31 < year <= 9_999 and 0 < month <= 12 and 0 < day <= 31
            if is_date and random.random() < ODD_DAYS_SHARE:
                month, day = random.choice(ODD_DAYS)
                leap = year - year % 4 + random.choice((0, 4))
                odd = (leap if day == 29 else year), month, day
                found |= zip(range(at, at + 3), odd, strict=True)
    return found


def options_beside(choice: Any, constants: Sequence[Any] = ()) -> list[Any]:
    """Return other choices of the same kind: near ones, corners and constants."""
    kind = type(choice)
    if kind is bool:
        return [not choice]
    near: list[Any] = []
    if kind in (int, float) and math.isfinite(choice):
        near = [choice + 1, choice - 1, 2 * choice, -choice, choice + choice / 10]
    options = [constant for constant in constants if type(constant) is kind]
    options += [kind(value) for value in near if kind is float or value == int(value)]
    return options + corners(kind)
