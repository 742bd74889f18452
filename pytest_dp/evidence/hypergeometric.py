"""Fisher's exact test far out in the tail: a hypergeometric tail as an upper bound in logarithms.

`P(X >= t)` with `X ~ Hypergeom(2 runs, runs, t + c2)`. Deal 2·runs cards, half of them red, one by
one. Among the first `t + c2` there are at least `t` red ones exactly if at least `t` red ones come
before the `(c2 + 1)`-th black one. So, with `B` the number of red cards before that black one
(negative hypergeometric), the tail is `P(B >= t)`: the law of `B` does not depend on `t`, and it is
log-concave. That keeps the sum short (down to a negligible term) and its remainder within bounds
(ratios of neighbouring terms shrink outwards: a geometric series).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betainc, logsumexp

from pytest_dp.arrays import Floats
from pytest_dp.bisection import first_where

NEGLIGIBLE_LOG = 42.0
"""Terms below exp(-this) times the largest, 6e-19, are bounded, not summed. Larger: longer sums;
smaller: a bound on them that shows in the result."""


def log_tail(t: int, c2: int, runs: int) -> float:
    """Upper bound on `ln P(X >= t)`, tight to about 1e-7; `t` kept hits against `c2`."""
    if t == 0 or c2 == runs:
        return 0.0
    before = _Before(c2, runs)
    largest = max(t, before.mode)
    floor = before.log_pmf(largest) - NEGLIGIBLE_LOG
    if before.log_pmf(t) < floor:
        return 0.0  # t lies so far left of the mode that nothing is missing
    last = first_where(lambda j: before.log_pmf(j + 1) < floor, largest, runs)
    terms = before.window(t, last)
    if last < runs:
        terms = np.append(terms, _geometric(float(terms[-1]), before.step(last)))
    # A bound on the rounding errors of the log factorials.
    rounding = 16 * 2.0**-52 * math.lgamma(2 * runs + 2)
    return min(0.0, float(logsumexp(terms)) + rounding)


def upper_count(c1: int, eps: float, share: float) -> int:
    """The largest t with `P(T >= t) >= share` for `T ~ Bin(c1, exp(-eps))`."""
    keep = math.exp(-eps)
    needed = share * (1 + 1e-9)  # rounded against the test
    if keep == 1.0:
        return c1

    def rarer(t: int) -> bool:
        return float(betainc(t, c1 - t + 1, keep)) < needed

    return first_where(lambda t: rarer(t + 1), 0, c1)


class _Before:
    """The law of `B`, the red cards before the `(black + 1)`-th black one; `black < runs`."""

    def __init__(self, black: int, runs: int) -> None:
        self.black = black
        self.runs = runs
        # The first j with pmf(j + 1) <= pmf(j): linear in j once the squares cancel.
        excess = (black + 1) * (runs + 1) - 2 * runs
        self.mode = min(runs, max(0, -(-excess // max(1, runs - 1))))
        self.log_deals = 2 * math.lgamma(runs + 1) - math.lgamma(2 * runs + 1)

    def log_pmf(self, j: int) -> float:
        black, runs = self.black, self.runs
        earlier = math.lgamma(j + black + 1) - math.lgamma(j + 1) - math.lgamma(black + 1)
        later = (
            math.lgamma(2 * runs - j - black)
            - math.lgamma(runs - j + 1)
            - math.lgamma(runs - black)
        )
        return earlier + later + self.log_deals

    def step(self, j: int) -> float:
        """The logarithm of `pmf(j + 1) / pmf(j)`."""
        black, runs = self.black, self.runs
        return math.log((j + black + 1) * (runs - j) / ((j + 1) * (2 * runs - j - black - 1)))

    def window(self, start: int, last: int) -> Floats:
        """`log_pmf` of start, ..., last."""
        black, runs = self.black, self.runs
        j = np.arange(start, last, dtype=np.float64)
        ratios = (j + (black + 1)) * (runs - j) / ((j + 1) * ((2 * runs - black - 1) - j))
        return np.cumsum(np.concatenate(((self.log_pmf(start),), np.log(ratios))))


def _geometric(last: float, step: float) -> float:
    """Bound, in logarithms, on the terms after `last` if each shrinks by at least `exp(step)`."""
    return last + step - math.log(-math.expm1(step)) if step < 0.0 else math.inf
