"""How hard to look, and how sure to be: defaults, and what overrides them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_dp.claim import Claim


@dataclass(frozen=True, slots=True)
class Settings:
    """What an audit needs to know beside the claim.

    Attributes
    ----------
    alpha : float
        Probability of a false alarm, per claim.
    max_samples : int
        Runs of the mechanism in all.
    max_seconds : float
        Seconds for one audit.
    margin : float
        Times the claim: a loss so large would have been caught when an audit of a claim that stands
        ends. 1.0 is never reached.
    method : str
        The auditor.
    n_jobs : int or None
        Processes; None for as many as there are cores, where that pays.
    seed : int or None
        None derives it from the claim's id and the mechanism's source.
    """

    alpha: float = 1e-6
    max_samples: int = 400_000
    max_seconds: float = 60.0
    margin: float = 1.25
    method: str = "sequential"
    n_jobs: int | None = None
    seed: int | None = None

    def over(self, **given: Any) -> Settings:
        """These settings, with those of `given` that are not None on top."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})


OF_A_CLAIM = ("alpha", "max_samples", "max_seconds", "margin", "method")


def settle(claim: Claim, ini: Mapping[str, Any], command_line: Mapping[str, Any]) -> Settings:
    """Defaults, below the ini file, below the claim, below the command line."""
    written = {name: getattr(claim, name) for name in OF_A_CLAIM}
    return Settings().over(**ini).over(**written).over(**command_line)
