"""Evidence that adds up over runs of the same audit: e-values that are multiplied.

The e-value of a run, on random numbers of its own, is one given all that was known before. So the
product over runs is one too, and reaches 1 / alpha with probability at most alpha for a claim that
holds, however many runs there are (Ville's inequality over their concatenation).

References
----------
Ramdas, Grünwald, Vovk, Shafer, "Game-theoretic statistics and safe anytime-valid inference",
Statistical Science 2023 (products of e-values, optional continuation).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

ROUNDING = 1e-9
"""Error of a logarithm. Smaller: an e-value that is just enough counts as too small."""


def e_value(log_e_value: float) -> float:
    """Return the e-value of a logarithm; finite also where it is more than floats hold."""
    return math.exp(min(log_e_value, 700.0))


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of one or more runs against a claim."""

    log_e_values: tuple[float, ...] = ()
    """Natural logarithms of the e-values against shares of the claim's parameter
    (`pytest_dp.statistics.ledger.RUNGS`), the claim itself last; empty where there was no run."""
    runs: int = 0
    samples: int = 0
    """How many they bet on."""

    @property
    def log_e_value(self) -> float:
        """Against the claim."""
        return self.log_e_values[-1] if self.log_e_values else 0.0

    def refutes(self, alpha: float) -> bool:
        """Return whether the evidence refutes the claim.

        A sum that rounds to a hair below does, too.
        """
        return self.log_e_value >= -math.log(alpha) - ROUNDING

    def __add__(self, later: Evidence) -> Evidence:
        """Return the evidence of these runs and of others, on random numbers of their own."""
        both = self.log_e_values, later.log_e_values
        total = tuple(map(sum, zip(*both, strict=True))) if all(both) else both[0] or both[1]
        runs, samples = self.runs + later.runs, self.samples + later.samples
        return Evidence(total, runs, samples)
