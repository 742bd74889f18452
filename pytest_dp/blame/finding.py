"""What was found to hold, before it is told to anybody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_dp.blame.families import number
from pytest_dp.blame.runs import ABSENT, Leaf
from pytest_dp.randomness.requests import Site

LONGEST = 30
"""Characters of a part of an output."""


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


def told(leaf: Leaf | None) -> str:
    """What a part of an output is, short."""
    if isinstance(leaf, float):
        return number(leaf)
    if leaf is None or leaf == ABSENT:
        return "not there"
    text = " ".join(str(part) for part in leaf[1:]) or str(leaf[0])
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def together(lines: Sequence[Site]) -> str:
    """``, together with line 3``; empty for none."""
    numbers = sorted({line.line for line in lines})
    which = "line" if len(numbers) == 1 else "lines"
    return f", together with {which} {', '.join(map(str, numbers[:4]))}" if numbers else ""
