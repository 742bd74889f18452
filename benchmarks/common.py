"""What the scripts share: twins with and without a bug, processor time, Markdown tables."""

from __future__ import annotations

import math
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pytest_dp import audit

EPS = 1.0
"""What all twins claim."""


@dataclass(frozen=True, slots=True)
class Twins:
    """A family of two: ``make(True)`` breaks its claim, ``make(False)`` keeps it."""

    name: str
    make: Callable[[bool], Callable[..., Any]]
    inputs: Any
    neighbors: Any = "add_remove_one"
    keywords: Mapping[str, Any] = field(default_factory=dict)

    def claim(self) -> dict[str, Any]:
        inputs = {"inputs": self.inputs, "neighbors": self.neighbors}
        return {"eps": EPS, **inputs, **self.keywords}


def red(twins: Twins, wrong: bool, seeds: int, seconds: float) -> tuple[int, int, float]:
    """How many audits are red, how many others tell of a violation beyond, CPU seconds of each."""
    before, found, told = cpu_seconds(), 0, 0
    for seed in range(seeds):
        mechanism, claim = twins.make(wrong), twins.claim()
        result = audit(mechanism, **claim, seed=seed, n_jobs=1, max_seconds=seconds)
        found += result.violated
        told += not result.violated and result.beyond is not None
    return found, told, (cpu_seconds() - before) / max(seeds, 1)


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


def measured_with() -> str:
    """Date, commit, versions and cores: what a table is worth hangs on them."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    of = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "hypothesis"))
    day = datetime.now(UTC).date()
    where = f"Python {platform.python_version()}, {of}, {os.cpu_count()} cores"
    return f"{day}, commit {commit or 'unknown'}, {where}"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table, aligned so that it also reads well as it is, and what it was made with."""
    cells = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = [
        "| " + " | ".join(cell.ljust(n) for cell, n in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    lines.insert(1, "| " + " | ".join("-" * n for n in widths) + " |")
    return "\n".join([*lines, "", f"({measured_with()})"])


def count(n: float) -> str:
    """A number of samples, three digits: ``1.23 M``."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n:.0f}"
