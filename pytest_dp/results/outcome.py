"""What a result and the record that reports are made of both say; a field added here is in both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pytest_dp.results.blame import Blame
from pytest_dp.results.estimate import Estimate
from pytest_dp.results.risk import Risk

Strength = Literal["", "exact", "analytic", "strong", "fair", "weak", "blind"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Outcome:
    """What is told of an audit as it was found; `pytest_dp.results.result.Result` explains it."""

    method: str = ""
    p_value: float | None = None
    e_value: float | None = None
    bet_samples: int | None = None
    samples: int = 0
    seconds: float = 0.0
    may_lose: float | None = None
    rarest: float | None = None
    strongest: str = ""
    max_samples: int | None = None
    max_seconds: float | None = None
    replayable: bool = True
    notes: tuple[str, ...] = ()
    blame: tuple[Blame, ...] = ()
    estimate: Estimate | None = None
    outside: str = ""
    pair_file: str = ""
    risks: tuple[Risk, ...] = ()
