"""The expectation behind the StatDP p-value, computed as an upper bound instead of drawn.

StatDP thins the first count, `T ~ Bin(c1, q)`, and takes the hypergeometric tail `P(X >= T)` with
`X ~ Hypergeom(2 runs, runs, T + c2)`. Deal 2·runs cards, half of them red, one by one. Among the
first `T + c2` there are at least `T` red ones exactly if at least `T` red ones come before the
`(c2 + 1)`-th black one. So, with `B` the number of red cards before that black one (negative
hypergeometric, and free of `T`), the tail is `P(B >= T)`, and its mean over the thinning is

    P(B >= T) = sum over t of P(T = t) · P(B >= t),     T and B independent.

Both laws are log-concave, so the summand is, too. That keeps the sum short (a window around its
peak) and the rest within bounds (ratios of neighbouring terms shrink outwards: geometric series).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from pytest_dp.evidence._search import first_where

# Terms below exp(-DROP) times the peak are bounded, not summed: 6e-19 each, of about 1e4.
DROP = 42.0


def log_mean_tail(c1: int, c2: int, runs: int, eps: float) -> float:
    """Upper bound on `ln P(B >= T)` for `T ~ Bin(c1, exp(-eps))`, tight to about 1e-7."""
    if c1 == 0 or c2 == runs:
        return 0.0
    before = _Before(c2, runs)
    thinned = Thinned(c1, eps)

    # An envelope of the summand, concave: P(B >= t) is flat up to the mode of B and then falls as
    # its density does. It only places the window [low, high] of t; nothing rests on its accuracy.
    def height(t: int) -> float:
        return thinned.log_pmf(t) + before.log_pmf(max(t, before.mode))

    peak = first_where(lambda t: thinned.step(t) + before.fall(t) <= 0.0, 0, c1)
    floor = height(peak) - DROP
    low = first_where(lambda t: height(t) >= floor, 0, peak)
    high = first_where(lambda t: height(t + 1) < floor, peak, c1)

    # Every P(B >= t) contains what lies beyond the right end of B's window [first, last], so that
    # end is measured from where T's density is highest.
    right = max(min(thinned.mode, high), before.mode)
    floor = before.log_pmf(right) - DROP
    last = max(high, first_where(lambda j: before.log_pmf(j + 1) < floor, right, runs))
    first = low
    if low < before.mode:
        floor = before.log_pmf(before.mode) - DROP
        first = first_where(lambda j: before.log_pmf(j) >= floor, low, before.mode)
    if first > high:
        return 0.0

    parts = before.window(first, last)
    if last < runs:
        parts = np.append(parts, _geometric(float(parts[-1]), before.step(last)))
    tails = np.minimum(np.logaddexp.accumulate(parts[::-1])[::-1], 0.0)  # [i]: ln P(B >= first + i)
    terms = thinned.window(low, high)
    terms[first - low :] += tails[: high + 1 - first]  # further left, 1 bounds P(B >= t)

    total = [float(logsumexp(terms))]
    if low > 0:
        # P(B >= low - 1) / P(B >= low); the 1e-9 is for the remainder in the denominator.
        growth = math.log1p(math.exp(before.log_pmf(low - 1) - tails[0])) if low == first else 0.0
        below = _geometric(float(terms[0]), growth + 1e-9 - thinned.step(low - 1))
        total.append(min(below, math.log(low) + thinned.log_pmf(low)))  # low <= mode of T
    if high < c1:
        beyond = float(tails[high + 1 - first])
        above = _geometric(float(terms[-1]), thinned.step(high) + beyond - tails[high - first])
        total.append(min(above, beyond))
    # What the log factorials may have lost to rounding, as a multiple of their size.
    rounding = 16 * 2.0**-52 * math.lgamma(2 * runs + 2)
    return min(0.0, float(logsumexp(total)) + rounding)


class Thinned:
    """The law of `T ~ Bin(count, exp(-eps))`."""

    def __init__(self, count: int, eps: float) -> None:
        self.count = count
        self.log_keep = -eps
        # eps = 0 drops nothing: e^-800 stands in for the chance 0, far below any rounding.
        self.log_drop = math.log(-math.expm1(-eps)) if eps > 0 else -800.0
        self.log_odds = self.log_keep - self.log_drop
        self.mode = min(count, math.floor((count + 1) * math.exp(self.log_keep)))

    def log_pmf(self, t: int) -> float:
        ways = math.lgamma(self.count + 1) - math.lgamma(t + 1) - math.lgamma(self.count - t + 1)
        return ways + t * self.log_keep + (self.count - t) * self.log_drop

    def step(self, t: int) -> float:
        """The logarithm of `pmf(t + 1) / pmf(t)`."""
        return math.log((self.count - t) / (t + 1)) + self.log_odds

    def window(self, low: int, high: int) -> NDArray[np.float64]:
        """`log_pmf` of low, ..., high."""
        t = np.arange(low, high, dtype=np.float64)
        return _running(self.log_pmf(low), np.log((self.count - t) / (t + 1)) + self.log_odds)


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

    def fall(self, j: int) -> float:
        """How the envelope of the tail changes from j to j + 1."""
        return self.step(j) if j >= self.mode else 0.0

    def window(self, first: int, last: int) -> NDArray[np.float64]:
        """`log_pmf` of first, ..., last."""
        black, runs = self.black, self.runs
        j = np.arange(first, last, dtype=np.float64)
        ratios = (j + (black + 1)) * (runs - j) / ((j + 1) * ((2 * runs - black - 1) - j))
        return _running(self.log_pmf(first), np.log(ratios))


def _running(start: float, steps: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.cumsum(np.concatenate(((start,), steps)))


def _geometric(last: float, step: float) -> float:
    """Bound, in logarithms, on the terms after `last` if each shrinks by at least `exp(step)`."""
    return last + step - math.log(-math.expm1(step)) if step < 0.0 else math.inf
