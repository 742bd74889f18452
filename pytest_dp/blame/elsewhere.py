"""Other inputs of a claim on which nothing is drawn: one change of the code may not be enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pytest_dp.blame.runs import ENDS, Runs
from pytest_dp.datasets import describe, key, kind_of
from pytest_dp.datasets.conversion import length

MAX_INPUTS = 32
"""How many other inputs are run. With fewer, one on which nothing is drawn may be missed."""
SHOWN = 60
"""Characters of the input that is named. With fewer, it may not be recognised."""


def also_without_noise(runs: Runs, inputs: Sequence[Any]) -> str:
    """Return words for the other inputs on which nothing is drawn; empty if there are none.

    Only where nothing is drawn on D or on D' either. The smallest of the inputs is named.
    """
    if all(runs.usual(side, 0).draws for side in (0, 1)):
        return ""
    others = {key(data): data for data in inputs}
    for data in runs.pair:
        others.pop(key(data), None)
    looked_at = sorted(others.values(), key=_size)[:MAX_INPUTS]
    try:
        silent = [d for d in looked_at if not replace(runs, pair=(d, d)).usual(0, 0).draws]
    except ENDS:
        return ""
    if not silent:
        return ""
    empty = " (empty)" if kind_of(silent[0]) and not length(silent[0]) else ""
    return (
        f"; nothing is drawn on {len(silent)} of {len(looked_at)} other inputs either, such as "
        f"{describe(silent[0], SHOWN)}{empty}"
    )


def _size(data: Any) -> int:
    return length(data) if kind_of(data) else 0
