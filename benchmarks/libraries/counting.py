"""Events of a library counted by hand: what pytest-dp says is held against this, and not used."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from scipy.stats import beta

ERROR = 1e-9


def bounds(count: int, runs: int) -> tuple[float, float]:
    """Clopper and Pearson's; all four of a pair hold but for a chance of `ERROR`."""
    low = beta.ppf(ERROR / 4, count, runs - count + 1) if count else 0.0
    high = beta.ppf(1 - ERROR / 4, count + 1, runs - count) if count < runs else 1.0
    return float(low), float(high)


def counted(
    draw: Callable[[Any], Any],
    pair: tuple[Any, Any],
    event: Callable[[Any], bool],
    allowed: Callable[[float], float],
    runs: int = 20_000,
    *,
    why: str,
) -> dict[str, Any]:
    """How often the event holds on either input, and the most that a promise allows on the first.

    `allowed` gives that by the largest probability on the second input. `why` is for the page.
    """
    counts = [sum(bool(event(draw(data))) for _ in range(runs)) for data in pair]
    (least, _), (_, most) = (bounds(count, runs) for count in counts)
    row = {"counts": counts, "runs": runs, "at_least": least, "allowed": allowed(most)}
    return {**row, "why": why, "broken": least > row["allowed"]}


def show(rows: dict[str, dict[str, Any]]) -> None:
    """All rows as JSON, by the names that the claims have in the pack."""
    print(json.dumps(rows, indent=1))
