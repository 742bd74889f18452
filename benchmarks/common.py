"""What the benchmark scripts share: processor time, bets until a claim falls, Markdown tables."""

from __future__ import annotations

import math
import resource
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pytest_dp import audit


def cpu_seconds() -> float:
    """Processor time of this process and of its finished children."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def pairs_taken(mechanism: Callable[..., Any], **keywords: Any) -> tuple[float, float]:
    """Pairs of outputs until the claim was refuted (infinite if it was not), and CPU seconds."""
    before = cpu_seconds()
    fixed = {"vectorized": "size", "max_seconds": 3600, "margin": None, "n_jobs": 1}
    result = audit(mechanism, **fixed, **keywords)
    taken = result.bet_samples / 2 if result.violated else math.inf
    return taken, cpu_seconds() - before


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table, aligned so that it also reads well as it is."""
    cells = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = [
        "| " + " | ".join(cell.ljust(n) for cell, n in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    lines.insert(1, "| " + " | ".join("-" * n for n in widths) + " |")
    return "\n".join(lines)


def count(n: float) -> str:
    """A number of samples, three digits: ``1.23 M``."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n:.0f}"
