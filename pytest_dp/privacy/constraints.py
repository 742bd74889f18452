"""What a guarantee asks of the outputs on two neighbouring inputs, P and Q, in either order.

Source: Nguyen, Wainwright, Jordan, "Estimating Divergence Functionals and the Likelihood Ratio by
Convex Risk Minimization", IEEE Trans. Inf. Theory 2010 (each is a bound on an f-divergence).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple


class HockeyStick(NamedTuple):
    """P(S) is at most ``exp(eps) Q(S) + delta`` for every event S."""

    eps: float
    delta: float

    def largest_probability(self, q: Any, runs: float = 1.0) -> Any:
        """The largest probability of an event with probability `q` on the other input.

        The same for arrays, and for counts of so many runs.
        """
        return math.exp(self.eps) * q + self.delta * runs


class Renyi(NamedTuple):
    """The Rényi divergence of P from Q is at most `bound`, in nats."""

    order: float
    """At least 1; the divergence of order 1 is the Kullback-Leibler divergence."""
    bound: float
