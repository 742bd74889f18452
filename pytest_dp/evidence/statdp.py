"""The StatDP test of a claim from one event's counts: p-value, bound on ε, power, ranking.

Ding, Wang, Wang, Zhang, Kifer, "Detecting Violations of Differential Privacy", CCS 2018,
Algorithm 2. Of `runs` outputs on each of two neighbouring inputs, `c1` and `c2` fell into the
event. The null hypothesis is `p1 <= exp(eps) * p2`, for independent `c1 ~ Bin(runs, p1)` and
`c2 ~ Bin(runs, p2)`. The event, the pair and `runs` were chosen without these samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from pytest_dp.arrays import Floats
from pytest_dp.bisection import bracket, crossing, first_where, smallest_loss
from pytest_dp.evidence.hypergeometric import log_tail, upper_count
from pytest_dp.evidence.validation import check_count, check_eps, check_level, check_probability

THINNING_SHARE = 0.1
"""Probability with which a thinned count is at least as large as it is taken to be: the quantile of
the thinnings' p-values that counts. The p-value is divided by it: a smaller share takes a better
count, and pays more for it. Fixed, as choosing it by the counts is not valid; by hand."""

SMALLEST_FLOAT = 5e-324  # a p-value is never 0
"""In place of a p-value that rounds to 0."""


def p_value(c1: int, c2: int, runs: int, eps: float) -> float:
    """How surprising the counts are if `p1 <= exp(eps) * p2`: a p-value in one direction, above 0.

    StatDP keeps each of the `c1` hits with probability exp(-ε), so that under the null hypothesis
    the kept count `T` and `c2` have success probabilities `p1 * exp(-ε) <= p2`. Fisher's exact
    test, a hypergeometric tail, then gives a p-value for every outcome of that thinning. The
    published procedure averages a few of them, which gives no p-value. Here it is ten times their
    10 % quantile over *all* thinnings (Rüger 1978): the tail at the largest `t` with
    `P(T >= t) >= 0.1`. No coin is left. docs/proofs/ruger-p-value.md has the proof.

    Validity is exact for every `runs`. So is the tail, up to an upward allowance for rounding
    (relative 1e-13 at a hundred runs, 5e-8 at half a million). The quantile rule is conservative:
    at the boundary of the claim, fewer than `alpha` of the tests reject. Below about 1e-308 the
    p-value loses its digits and stays at 5e-324; `log_p_value` does not.
    """
    return max(math.exp(log_p_value(c1, c2, runs, eps)), SMALLEST_FLOAT)


def log_p_value(c1: int, c2: int, runs: int, eps: float) -> float:
    """Natural logarithm of `p_value`, for p-values of any smallness."""
    check_count("c1", c1, runs)
    check_count("c2", c2, runs)
    check_eps(eps)
    surviving = upper_count(c1, eps, THINNING_SHARE)
    return min(0.0, log_tail(surviving, c2, runs) - math.log(THINNING_SHARE))


def p_value_both(c1: int, c2: int, runs: int, eps: float) -> float:
    """A p-value for the claim in both directions, the event chosen before the counts were seen.

    Twice that of the larger count, at most 1 (Bonferroni). Against the smaller count p is 1, so it
    is not computed: if `T <= c2 <= c1`, the hypergeometric variable, symmetric about
    `(T + c1) / 2`, reaches `T` with probability at least 1/2.
    """
    return max(math.exp(_log_p_both(c1, c2, runs, eps)), SMALLEST_FLOAT)


def eps_lower(c1: int, c2: int, runs: int, alpha: float) -> float:
    """Lower confidence bound on ε in nats: every claim below it is rejected by `p_value_both`.

    0.0 if not even ε = 0 is rejected. The claim ε itself is rejected at `alpha` if and only if the
    bound reaches ε, up to 1e-6 by which the bound is rounded down.

    Inversion of the test. The p-value never falls as ε grows: fewer hits survive the thinning, and
    `P(B >= T)` is larger for a smaller `T`. So the rejected ε form an interval, and bisection finds
    its end.
    """
    check_level("alpha", alpha)
    target = math.log(alpha)

    def rejected(eps: float) -> bool:
        return _log_p_both(c1, c2, runs, eps) <= target

    if not rejected(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while rejected(high):
        low, high = high, 2 * high
    return bracket(lambda eps: not rejected(eps), low, high, width=1e-6)[0]


def score(c1: ArrayLike, c2: ArrayLike, runs: int, eps: float) -> Floats:
    """Rank many events at once by their evidence against the claim.

    Log likelihood ratios `G >= 0` of the observed frequencies against the closest pair that the
    claim allows, 0 where the observed one is allowed. exp(-G) is on the scale of a p-value, but it
    is not one: it ranks candidates, which are then tested on fresh samples.

    The closest allowed pair `(y, exp(-eps) y)` maximises the likelihood on the boundary. Its `y` is
    the smaller root of `2 q y² - (1 + f2 + (1 + f1) q) y + f1 + f2 = 0`, with `q = exp(-eps)` and
    the frequencies `f`; that root never exceeds 1.
    """
    counts1, counts2 = np.asarray(c1), np.asarray(c2)
    if counts1.shape != counts2.shape:
        raise ValueError(f"c1 and c2 must have one shape, not {counts1.shape} and {counts2.shape}.")
    check_count("c1", 0, runs)
    check_eps(eps)
    q = math.exp(-eps)
    result = np.zeros(counts1.shape)
    violating = counts1 * q > counts2
    f1 = counts1[violating] / runs
    f2 = counts2[violating] / runs
    linear = (1 + f2) + (1 + f1) * q
    constant = f1 + f2
    root = 2 * constant / (linear + np.sqrt(np.maximum(linear**2 - 8 * q * constant, 0.0)))
    y = np.minimum(root, 1.0)
    divergence = _cross(f1, y) + _cross(1 - f1, 1 - y)
    divergence += _cross(f2, q * y) + _cross(1 - f2, 1 - q * y)
    result[violating] = runs * np.maximum(divergence, 0.0)
    return result


def power(p1: float, p2: float, runs: int, eps: float, alpha: float) -> float:
    """Probability that `p_value_both` rejects at `alpha` because of too large a `c1`.

    For planning: accurate to about 0.01, not a bound. p1 and p2 are the event's true probabilities.
    """
    _check_plan(p1, p2, runs, eps, alpha)
    weights, limits = _rejections(p1, runs, eps, alpha)
    return _chance(weights, limits, p2, runs)


def runs_for_power(
    p1: float, p2: float, eps: float, alpha: float, power: float = 0.95, limit: int = 10_000_000
) -> int | None:
    """Smallest number of runs on each input that rejects the claim with this power, to about 2 %.

    None if `limit` runs do not reach it, as when the claim holds.
    """
    _check_plan(p1, p2, limit, eps, alpha)
    check_level("power", power)
    if p1 * math.exp(-eps) <= p2:
        return None

    def enough(runs: int) -> bool:
        return _chance(*_rejections(p1, runs, eps, alpha), p2, runs) >= power

    # The search starts where the evidence per run, as in `score`, is enough.
    size = 1_000_000_000
    evidence = float(score(np.array([p1 * size]), np.array([p2 * size]), size, eps)[0]) / size
    low = high = min(limit, max(1, round(1.5 * math.log(2 / alpha) / max(evidence, 1e-12))))
    if enough(high):
        low = math.floor(high / 1.5)
        while low > 1 and enough(low):
            low, high = math.floor(low / 1.5), low
    else:
        while not enough(high):
            if high == limit:
                return None
            low, high = high, min(limit, math.ceil(1.5 * high))
    while high - low > max(1.0, 0.02 * low):
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high


def smallest_eps(p1: float, runs: int, eps: float, alpha: float, power: float = 0.95) -> float:
    """Resolution: the smallest true loss of the event that the test would catch with this power.

    The smallest `e >= eps`, in nats, such that `p2 = p1 * exp(-e)` is rejected with that power;
    `math.inf` if even an event that is impossible on the second input is not.
    """
    _check_plan(p1, 0.0, runs, eps, alpha)
    check_level("power", power)
    weights, limits = _rejections(p1, runs, eps, alpha)
    if _chance(weights, limits, 0.0, runs) < power:
        return math.inf
    return smallest_loss(
        lambda loss: _chance(weights, limits, p1 * math.exp(-loss), runs) >= power, eps
    )


def _log_p_both(c1: int, c2: int, runs: int, eps: float) -> float:
    check_count("c1", c1, runs)  # before they trade places
    check_count("c2", c2, runs)
    return min(0.0, math.log(2.0) + log_p_value(max(c1, c2), min(c1, c2), runs, eps))


def _cross(observed: Floats, expected: Floats) -> Floats:
    """`observed * ln(observed / expected)`, 0 where nothing was observed."""
    tiny = 1e-300
    return observed * np.log(np.maximum(observed, tiny) / np.maximum(expected, tiny))


def _rejections(p1: float, runs: int, eps: float, alpha: float) -> tuple[Floats, Floats]:
    """Each c1 that can lead to a rejection: its probability, and the largest c2 that rejects."""
    nothing = np.zeros(0), np.zeros(0)
    target = math.log(alpha / 2)
    spread = 5 * math.sqrt(runs * p1 * (1 - p1))
    low = max(1, math.floor(runs * p1 - spread - 2))
    high = min(runs, math.ceil(runs * p1 + spread + 10))
    if p1 == 0.0 or log_p_value(high, 0, runs, eps) > target:
        return nothing
    low = first_where(lambda c1: log_p_value(c1, 0, runs, eps) <= target, low, high)
    hits = np.arange(low, high + 1)
    # The limit is nearly linear over 10 standard deviations of c1: a few points are enough.
    points = np.unique(np.linspace(low, high, 11).round().astype(int)) if hits.size > 40 else hits
    limits = np.empty(points.size)
    for i, c1 in enumerate(points.tolist()):
        sd = math.sqrt(c1 * math.exp(-eps) + 1)
        if i < 2:
            guess = c1 * math.exp(-eps) - 1.4 * math.sqrt(-2 * target) * sd
        else:
            guess = 2 * limits[i - 1] - limits[i - 2]
        limits[i] = crossing(_excess(c1, runs, eps, target), c1, guess, 1 + round(sd / 10))
    if points.size < hits.size:
        if hits.size <= 400:  # few enough for the steps of the kept count to show
            surviving = [upper_count(c1, eps, THINNING_SHARE) for c1 in hits.tolist()]
            limits = np.interp(surviving, [surviving[c1 - low] for c1 in points.tolist()], limits)
        else:
            limits = np.interp(hits, points, limits)
    weights = np.diff(bdtr(np.arange(low - 1, high + 1, dtype=float), runs, p1))
    return weights, np.floor(limits)


def _excess(c1: int, runs: int, eps: float, target: float) -> Callable[[int], float]:
    """How far too large c2 is for a rejection; the roots make it nearly linear, like a z-score."""
    return lambda c2: math.sqrt(-target) - math.sqrt(-log_p_value(c1, c2, runs, eps))


def _chance(weights: Floats, limits: Floats, p2: float, runs: int) -> float:
    return float(min(1.0, np.sum(weights * bdtr(limits, runs, p2)))) if weights.size else 0.0


def _check_plan(p1: float, p2: float, runs: int, eps: float, alpha: float) -> None:
    check_probability("p1", p1)
    check_probability("p2", p2)
    check_count("count", 0, runs)
    check_eps(eps)
    check_level("alpha", alpha)
