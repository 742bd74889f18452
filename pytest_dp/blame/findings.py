"""Findings: what holds of a line, before the most telling are chosen to be shown."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_dp.randomness.requests import Site


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that holds, and the line that it is about."""

    kind: str
    """As in `Blame`."""
    line: Site
    text: str
    certain: bool = False
    """No claim of any size could be kept with it."""
    loss: float = 0.0
    """In the claim's parameter, where it is known."""
