"""`between`: an argument of a mechanism that may be any number of a range."""

from __future__ import annotations

from typing import Any


class NumberRange:
    """Any number from one to another; made by `between`."""

    __slots__ = ("high", "low")

    def __init__(self, low: Any, high: Any) -> None:
        self.low, self.high = low, high

    def __repr__(self) -> str:
        return f"between({self.low!r}, {self.high!r})"


def between(low: float, high: float) -> NumberRange:
    """Return a range of numbers for an argument in ``params=``; whole numbers if both ends are.

    The claim is for all of them. The ends are tried first; ``search="symbolic"`` chooses the number
    with the least noise, on which D and D' take different branches most often.

    Parameters
    ----------
    low, high : float
        Finite numbers, the first below the second; otherwise the claim is refused as it is read.

    Returns
    -------
    NumberRange
        For ``params={"threshold": between(0, 10)}``.

    References
    ----------
    Ding et al., "Detecting Violations of Differential Privacy", CCS 2018, section 4: arguments are
    chosen by symbolic execution and MaxSMT.
    """
    return NumberRange(low, high)
