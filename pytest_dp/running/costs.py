"""Costs of runs of a mechanism, as far as they were measured."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(slots=True)
class RunCosts:
    """The effort and the time of runs."""

    runs: int = 0
    effort: float = 0.0
    """Seconds of a stopwatch's effort."""
    passed: float = 0.0
    """Seconds that have passed."""
    least: float = math.inf
    """The smallest effort of a run, of which runs of a chunk have the average."""

    def add(self, runs: int, effort: float, passed: float) -> None:
        """Add what some runs took together."""
        self.runs += runs
        self.effort += effort
        self.passed += passed
        self.least = min(self.least, effort / max(runs, 1))

    def restart(self) -> None:
        """Forget what runs took together: first calls are slow."""
        self.runs, self.effort, self.passed = 0, 0.0, 0.0

    @property
    def quickest(self) -> float:
        """The smallest effort of a run; 0 before the first."""
        return self.least if math.isfinite(self.least) else 0.0

    @property
    def effort_a_run(self) -> float | None:
        """The average effort of a run; None before the first."""
        return self.effort / self.runs if self.runs else None

    @property
    def time_a_run(self) -> float | None:
        """The average time of a run, with what it waits; None before the first."""
        return self.passed / self.runs if self.runs else None
