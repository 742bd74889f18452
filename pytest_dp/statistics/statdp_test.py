"""The StatDP test of a claim from one event's counts: p-value and bound on ε.

Ding, Wang, Wang, Zhang, Kifer, "Detecting Violations of Differential Privacy", CCS 2018,
Algorithm 2. Of `n1` and `n2` outputs on two neighbouring inputs, `c1` and `c2` fell into the event.
The null hypothesis is `p1 <= exp(eps) * p2`, for independent `c1 ~ Bin(n1, p1)` and
`c2 ~ Bin(n2, p2)`. The event, the pair and how many runs there are were chosen without these
samples. The paper has as many runs on both inputs, which its test has no need of.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betainc, gammaln, logsumexp

from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.basics.bisection import bracket, first_where

THINNING_SHARE = 0.1
"""Probability with which a thinned count is at least as large as it is taken to be: the quantile of
the thinnings' p-values that counts. The p-value is divided by it: a smaller share takes a better
count, and pays more for it. Fixed, as choosing it by the counts is not valid; by hand."""

NEGLIGIBLE_LOG = 42.0
"""Terms below exp(-this) times the largest, 6e-19, are bounded, not summed. Larger: longer sums;
smaller: a bound on them that shows in the result."""

SMALLEST_FLOAT = 5e-324  # a p-value is never 0
"""In place of a p-value that rounds to 0."""


def p_value(c1: int, n1: int, c2: int, n2: int, eps: float) -> float:
    """Return a one-sided p-value, above 0, of the hypothesis `p1 <= exp(eps) * p2`.

    StatDP keeps each of the `c1` hits with probability exp(-ε), so that under the null hypothesis
    the kept count `T` and `c2` have success probabilities `p1 * exp(-ε) <= p2`. Fisher's exact
    test, a hypergeometric tail, then gives a p-value for every outcome of that thinning. The
    published procedure averages a few of them, which gives no p-value. Here it is ten times their
    10 % quantile over *all* thinnings (Rüger 1978): the tail at the largest `t` with
    `P(T >= t) >= 0.1`. No coin is left. docs/proofs/ruger-p-value.md has the proof.

    Validity is exact for every number of runs. So is the tail, up to an upward allowance for
    rounding (relative 1e-13 at a hundred runs, 5e-8 at half a million). The quantile rule is
    conservative: at the boundary of the claim, fewer than `alpha` of the tests reject. Below about
    1e-308 the p-value loses its digits and stays at 5e-324; `log_p_value` does not.
    """
    return max(math.exp(log_p_value(c1, n1, c2, n2, eps)), SMALLEST_FLOAT)


def log_p_value(c1: int, n1: int, c2: int, n2: int, eps: float) -> float:
    """Return the natural logarithm of `p_value`, for p-values of any smallness."""
    surviving = upper_count(c1, eps)
    return min(0.0, log_tail(surviving, n1, c2, n2) - math.log(THINNING_SHARE))


def largest_rejected_eps(c1: int, n1: int, c2: int, n2: int, alpha: float) -> float:
    """Return a lower confidence bound on ε in nats, below which `p_value` rejects every claim.

    0.0 if not even ε = 0 is rejected. The claim ε itself is rejected at `alpha` if and only if the
    bound reaches ε, up to 1e-6 by which the bound is rounded down.

    Inversion of the test. The p-value never falls as ε grows: fewer hits survive the thinning, and
    `P(B >= T)` is larger for a smaller `T`. So the rejected ε form an interval, and bisection finds
    its end.
    """
    target = math.log(alpha)

    def is_rejected(eps: float) -> bool:
        return log_p_value(c1, n1, c2, n2, eps) <= target

    if not is_rejected(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while is_rejected(high):
        low, high = high, 2 * high
    return bracket(lambda eps: not is_rejected(eps), low, high, width=1e-6)[0]


def log_tail(t: int, n1: int, c2: int, n2: int) -> float:
    """Return an upper bound on `ln P(X >= t)`, ``X ~ Hypergeom(n1 + n2, n1, t + c2)``.

    It is tight to about 1e-7.

    Deal n1 red cards and n2 black ones, one by one. Among the first `t + c2` there are at least `t`
    red ones exactly if at least `t` red ones come before the `(c2 + 1)`-th black one. So, with `B`
    the number of red cards before that black one (negative hypergeometric), the tail is
    ``P(B >= t)``: the law of `B` does not depend on `t`, and it is log-concave. That keeps the sum
    short, down to a negligible term; its remainder is at most that term times their number.
    """
    if t == 0 or c2 == n2:
        return 0.0
    # The first j with P(B = j + 1) <= P(B = j): linear in j once the squares cancel.
    excess = (c2 + 1) * (n1 + 1) - (n1 + n2)
    largest = max(t, min(n1, max(0, -(-excess // max(1, n2 - 1)))))

    def is_negligible(j: int) -> bool:
        return bool(_log_law(j, c2, n1, n2) < _log_law(largest, c2, n1, n2) - NEGLIGIBLE_LOG)

    if is_negligible(t):
        return 0.0  # t lies so far left of the mode that nothing is missing
    last = first_where(lambda j: is_negligible(j + 1), largest, n1)
    terms = _log_law(np.arange(t, last + 1), c2, n1, n2)
    if last < n1:  # no later term is larger than the next one
        terms = np.append(terms, _log_law(last + 1, c2, n1, n2) + math.log(n1 - last))
    # A bound on the rounding errors of the log factorials.
    rounding = 16 * 2.0**-52 * math.lgamma(n1 + n2 + 2)
    return min(0.0, float(logsumexp(terms)) + rounding)


def _log_law(j: int | Ints, black: int, n1: int, n2: int) -> Floats:
    """Return `ln P(B = j)` of the red cards before the `(black + 1)`-th black one; `black < n2`."""
    earlier = gammaln(j + black + 1) - gammaln(np.add(j, 1)) - gammaln(black + 1)
    later = gammaln(n1 + n2 - j - black) - gammaln(n1 - j + 1) - gammaln(n2 - black)
    law: Floats = earlier + later + gammaln(n1 + 1) + gammaln(n2 + 1) - gammaln(n1 + n2 + 1)
    return law


def upper_count(c1: int, eps: float) -> int:
    """Return the largest t with `P(T >= t) >= THINNING_SHARE` for `T ~ Bin(c1, exp(-eps))`."""
    keep = math.exp(-eps)
    needed = THINNING_SHARE * (1 + 1e-9)  # rounded against the test
    if keep == 1.0:
        return c1

    def rarer(t: int) -> bool:
        return float(betainc(t, c1 - t + 1, keep)) < needed

    return first_where(lambda t: rarer(t + 1), 0, c1)
