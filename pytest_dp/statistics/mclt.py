"""How well pairs of outputs with the same random numbers tell a loss: an approximate interval.

Of an event that occurs with probability p on D and q on D', the two shares of runs are about
normal, and where random numbers are shared, they err together. What is left is the error of their
ratio. Nothing is decided by it: it holds for many runs only, and not for events that were chosen by
the runs that are counted.

Source: Bichsel, Gehr, Drachsler-Cohen, Tsankov, Vechev, "DP-Finder", CCS 2018, Section 4.5 (M-CLT);
the ratio of two normal numbers as in Hinkley, Biometrika 1969.
"""

from __future__ import annotations

import math

from scipy.special import ndtr

from pytest_dp.basics.bisection import MAX_EXCESS, smallest


def half_width(p: float, q: float, correlation: float, runs: int, alpha: float) -> float:
    """Return how far the log ratio of two shares may be off, with chance `alpha`.

    Approximate. `p` and `q` are the shares of runs on D and on D', above 0; `correlation` is that
    of the event in the same run on both. In nats; infinite where the runs say nothing.
    """
    if not (0 < p <= 1 and 0 < q <= 1):
        return math.inf
    sigma_p, sigma_q = (math.sqrt(share * (1 - share) / runs) for share in (p, q))
    covariance = correlation * sigma_p * sigma_q
    never = float(ndtr(-q / sigma_q)) if sigma_q else 0.0

    def missed_probability(width: float) -> float:
        """Return the probability of a ratio that is farther off, with that of no ratio at all."""
        tails = 0.0
        for sign in (1, -1):
            ratio = p / q * math.exp(sign * width)
            variance = sigma_p**2 - 2 * ratio * covariance + (ratio * sigma_q) ** 2
            distance = sign * (ratio * q - p)
            tails += float(ndtr(-distance / math.sqrt(variance))) if variance > 0 else 0.0
        return tails + never

    return smallest(lambda width: missed_probability(width) <= alpha, 0.0, alpha, MAX_EXCESS)


def loss(c1: int, c2: int, both: int, runs: int, alpha: float) -> tuple[float, float]:
    """Return the log ratio of two shares of all runs, in nats, and its `half_width`.

    The event held in `c1` runs on D and in `c2` on D', in `both` on either with the same random
    numbers. Of counts of 0, both are infinite; it is NaN if it never held.
    """
    if not (c1 and c2):
        return math.inf if c1 else -math.inf if c2 else math.nan, math.inf
    p, q = c1 / runs, c2 / runs
    spread = math.sqrt(p * (1 - p) * q * (1 - q))
    correlation = (both / runs - p * q) / spread if spread else 0.0
    return math.log(p / q), half_width(p, q, correlation, runs, alpha)
