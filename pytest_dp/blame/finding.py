"""What was found to hold, before it is told to anybody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_dp.randomness.requests import Site


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that holds, and the line that it is about.

    Attributes
    ----------
    kind : str
        As in `Blame`.
    line : Site
    text : str
    certain : bool
        No claim of any size could be kept with it.
    loss : float
        In the claim's parameter, where it is known.
    """

    kind: str
    line: Site
    text: str
    certain: bool = False
    loss: float = 0.0


def listed(places: Sequence[str]) -> str:
    """``output[0], output[1] and 8 more``."""
    if len(places) <= 2:
        return " and ".join(places)
    return f"{places[0]}, {places[1]} and {len(places) - 2} more"
