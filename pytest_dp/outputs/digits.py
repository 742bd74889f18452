"""Texts without the last digits of doubles: ``"3.3000000000000003"`` says ``"3.3"``.

A double that is written out in full has 16 or 17 digits, of which the last ones are errors of
rounding. Which of them come out may depend on the input; see `pytest_dp.outputs.rounding`, which
does the same for numbers. What has more digits was no double, and is left as it is.
"""

from __future__ import annotations

import re

KEPT, DECIMALS = 14, 12
"""Significant digits that are kept of a double, and decimals: what is left of numbers that cancel,
such as ``4.440892098500626e-16``, is 0. Derived from the 15 to 17 digits of a double."""
_IN_FULL = re.compile(r"(?<![\w.])(-?\d+)\.(\d+)(e[-+]?\d+)?(?![\w.])")
SHORTEST = 17
"""Characters of the shortest text with such a number in it. Derived: 16 digits and a point."""


def without_last_digits(text: str) -> str:
    """A text in which each double that is written out in full is written with `KEPT` digits."""
    return _IN_FULL.sub(_shorter, text) if len(text) >= SHORTEST else text


def _shorter(number: re.Match[str]) -> str:
    digits = len((number[1] + number[2]).lstrip("-0"))
    if not 16 <= digits <= 17:
        return number[0]
    rounded = round(float(f"{float(number[0]):.{KEPT}g}"), DECIMALS)
    return repr(rounded + 0.0)  # not -0.0
