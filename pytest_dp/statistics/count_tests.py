"""Exact tests of counts: of what an audit assumes of its samples, and StatDP's test of a claim.

An audit assumes independent runs, of a law that is known. A mechanism that shares noise between
draws, or keeps state from run to run, breaks that, and its counts would prove nothing. Tests of
these assumptions can only withhold a verdict, so that they take nothing from its validity.

StatDP's test is Algorithm 2 of Ding, Wang, Wang, Zhang, Kifer, "Detecting Violations of
Differential Privacy", CCS 2018. Of `n1` and `n2` outputs on two neighbouring inputs, `c1` and `c2`
fell into an event. The null hypothesis is `p1 <= exp(eps) * p2`, for independent
`c1 ~ Bin(n1, p1)` and `c2 ~ Bin(n2, p2)`. The event, the pair and the numbers of runs were chosen
without these samples. The paper has as many runs on both inputs, which its test has no need of.

`scipy.stats` has three of these tests, and would take half a second to load in each audit: they are
written with `scipy.special`, and a test holds them against it.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import bdtrc, betainc, chdtrc, gammaln, kolmogorov, logsumexp

from pytest_dp.basics.arrays import Bools, Floats, Ints
from pytest_dp.basics.bisection import bracket, first_where

MAX_GROUPS = 16
"""Groups of runs that are compared. More see quick changes; fewer see slow ones."""

NOT_IID = 1e-9
"""A p-value below which runs depend on each other. Larger: right mechanisms are refused; smaller:
dependent runs decide."""

MIN_EXPECTED = 4
"""Runs inside, and outside, the event that each group is expected to hold. Larger: fewer groups;
smaller: a worse chi-squared law (5 is usual). By hand."""

THINNING_SHARE = 0.1
"""Quantile of the thinnings' p-values that counts; the p-value is divided by it. A smaller share
takes a better count, and pays more for it. Fixed, as it must not depend on the counts; by hand."""

NEGLIGIBLE_LOG = 42.0
"""Terms below exp(-this) times the largest, 6e-19, are bounded, not summed. Larger: longer sums;
smaller: the bound shows in the result."""

SMALLEST_FLOAT = 5e-324  # a p-value is never 0
"""In place of a p-value that rounds to 0."""


def p_value_of_equal_chunks(
    hits: Ints, sizes: Ints, max_groups: int = MAX_GROUPS
) -> tuple[float, list[float]]:
    """Return a p-value that an event is equally likely in all chunks, and frequencies in groups.

    Pearson's chi-squared test (approximate), for the `hits` in each chunk of `sizes` runs, in the
    order of the runs. Chunks are merged to at most `max_groups` groups. 1.0 without frequencies if
    there are too few hits, or too few runs without.
    """
    inside, total = int(hits.sum()), int(sizes.sum())
    groups = min(max_groups, len(sizes), min(inside, total - inside) // MIN_EXPECTED)
    if groups < 2:
        return 1.0, []
    ends = np.cumsum(sizes)
    # Groups of about equal size, made of whole chunks.
    chosen = np.unique(np.searchsorted(ends, np.arange(1, groups + 1) / groups * ends[-1] - 0.5))
    last = np.minimum(chosen, len(ends) - 1)
    runs = np.diff(ends[last], prepend=0)
    counts = np.diff(np.cumsum(hits)[last], prepend=0)
    expected = runs * inside / total
    missing = runs - expected
    statistic = float(np.sum((counts - expected) ** 2 * (1 / expected + 1 / missing)))
    return float(chdtrc(len(runs) - 1, statistic)), (counts / runs).tolist()


def chance_all_come_before(last: int, hits: int, runs: int) -> float:
    """Return the probability that no hit is among the last `last` runs, of `hits` in `runs` runs.

    Exact for exchangeable runs. 0.0 if the hits do not fit.
    """
    return math.exp(log_tail(hits, runs - last, 0, last)) if hits <= runs - last else 0.0


def fisher_p_value(hits: tuple[int, int], runs: tuple[int, int]) -> float:
    """Return the two-sided p-value of Fisher's exact test that two frequencies are equal.

    Twice the smaller tail, at most 1; exact for exchangeable runs.
    """
    first, other = zip(hits, runs, strict=True)
    return min(1.0, 2 * math.exp(min(log_tail(*first, *other), log_tail(*other, *first))))


def kolmogorov_smirnov_p_value(first: Floats, other: Floats) -> float:
    """Return the p-value of Kolmogorov's and Smirnov's test that two samples have one law.

    By the limit for large samples, which is conservative for small ones.
    """
    ends = np.concatenate([first, other])
    ours, theirs = (
        np.searchsorted(np.sort(sample), ends, side="right") / len(sample)
        for sample in (first, other)
    )
    size = len(first) * len(other) / (len(first) + len(other))
    return float(kolmogorov(math.sqrt(size) * np.abs(ours - theirs).max()))


def p_value_of_repeats(values: Ints, groups: Ints) -> float:
    """Return a p-value that equal outputs share a group no more often than independent ones.

    `values` and `groups` have the shape (n,). Of every value that came at least twice, two outputs
    are picked at random; independent runs are exchangeable, so that their chance of one group is
    known. The p-value is conservative up to the weak dependence between values (approximate). 1.0
    if no two share a group, or there is one group.
    """
    order = np.random.default_rng(0).permutation(len(values))
    order = order[np.argsort(values[order], kind="stable")]
    value, group = values[order], groups[order]
    starts = np.flatnonzero(np.diff(value, prepend=value[:1] - 1) != 0)
    starts = starts[starts + 1 < len(value)]
    starts = starts[value[starts] == value[starts + 1]]
    together = int((group[starts] == group[starts + 1]).sum())
    sizes = np.bincount(groups).astype(float)
    chance = float((sizes * (sizes - 1)).sum() / max(len(values) * (len(values) - 1), 1))
    if together == 0 or chance >= 1:
        return 1.0
    return float(bdtrc(together - 1, len(starts), chance))


def p_value_of_agreement(inside: Bools) -> float:
    """Return a p-value that runs in a group agree on an event no more often than independent ones.

    `inside` has the shape (groups, runs). Neighbouring runs of a group are paired. Independent runs
    are exchangeable, so that all ways to spread the hits over the pairs are equally likely. Exact.
    """
    even = inside[:, : inside.shape[1] // 2 * 2]
    return _disagreements(even[:, ::2].ravel(), even[:, 1::2].ravel())[0]


def p_value_of_lag(inside: Bools, lag: int) -> float:
    """Return a p-value that runs `lag` apart agree on an event as often as independent ones.

    `inside` has the shape (runs,). Each run is in at most one pair. Two-sided and exact.
    """
    whole = inside[: len(inside) // (2 * lag) * (2 * lag)].reshape(-1, 2, lag)
    return min(1.0, 2 * min(_disagreements(whole[:, 0].ravel(), whole[:, 1].ravel())))


def _disagreements(first: Bools, second: Bools) -> tuple[float, float]:
    """Return the chances that at most, and at least, the counted number of pairs disagree."""
    pairs, hits = len(first), int(first.sum() + second.sum())
    seen = int((first != second).sum())
    disagree = np.arange(hits % 2, min(hits, 2 * pairs - hits) + 1, 2)
    both = (hits - disagree) // 2
    neither = pairs - disagree - both
    ways = (
        gammaln(pairs + 1)
        - gammaln(disagree + 1)
        - gammaln(both + 1)
        - gammaln(neither + 1)
        + disagree * math.log(2)
    )
    every = gammaln(2 * pairs + 1) - gammaln(hits + 1) - gammaln(2 * pairs - hits + 1)
    chances = np.exp(ways - every)
    few, many = chances[disagree <= seen].sum(), chances[disagree >= seen].sum()
    return min(float(few), 1.0), min(float(many), 1.0)


def log_e_value(counts: Ints, probabilities: Floats, outside: int, residual: float) -> float:
    """Return the log e-value against outputs being independent draws of a known distribution.

    The likelihood of the counts under a mixture of all distributions (Dirichlet's), over the
    largest under the known one. Its mean is then at most 1, so that it reaches 1 / a with
    probability at most a at any time (Ville's inequality). Infinite if an impossible outcome came.

    `probabilities` are lower bounds that add up to 1 - `residual`, which any outcome may have in
    addition. `outside` counts outputs that are none of the outcomes.
    """
    seen = np.append(counts, outside).astype(float)
    allowed = np.minimum(np.append(probabilities, 0.0) + residual, 1.0)
    if (seen[allowed == 0] > 0).any():
        return math.inf
    seen, allowed = seen[allowed > 0], allowed[allowed > 0]
    # Half around the known distribution, half uniform: rare outcomes that come count at once.
    prior = (len(allowed) * allowed / allowed.sum() + 1) / 4
    mixed = gammaln(prior.sum()) - gammaln(prior.sum() + seen.sum())
    mixed += float(np.sum(gammaln(prior + seen) - gammaln(prior)))
    return float(mixed - seen @ np.log(allowed))


def statdp_p_value(c1: int, n1: int, c2: int, n2: int, eps: float) -> float:
    """Return a one-sided p-value, above 0, of the hypothesis `p1 <= exp(eps) * p2`.

    StatDP keeps each of the `c1` hits with probability exp(-ε), so that under the null hypothesis
    the kept count `T` and `c2` have success probabilities `p1 * exp(-ε) <= p2`. Fisher's exact
    test, a hypergeometric tail, then gives a p-value for every outcome of that thinning. The
    published procedure averages a few of them, which gives no p-value. Here it is ten times their
    10 % quantile over *all* thinnings (Rüger 1978): the tail at the largest `t` with `P(T >= t) >=
    0.1`. No coin is left. docs/proofs/ruger-p-value.md has the proof.

    Exact for every number of runs, up to an upward allowance for rounding (relative 1e-13 at a
    hundred runs, 5e-8 at half a million), and conservative: at the boundary of the claim, fewer
    than `alpha` of the tests reject. Below about 1e-308 the p-value stays at 5e-324;
    `log_statdp_p_value` does not.
    """
    return max(math.exp(log_statdp_p_value(c1, n1, c2, n2, eps)), SMALLEST_FLOAT)


def log_statdp_p_value(c1: int, n1: int, c2: int, n2: int, eps: float) -> float:
    """Return the natural logarithm of `statdp_p_value`, for p-values of any smallness."""
    surviving = upper_count(c1, eps)
    return min(0.0, log_tail(surviving, n1, c2, n2) - math.log(THINNING_SHARE))


def largest_rejected_eps(c1: int, n1: int, c2: int, n2: int, alpha: float) -> float:
    """Return a lower confidence bound on ε in nats: `statdp_p_value` rejects every ε below it.

    0.0 if not even ε = 0 is rejected. Rounded down by at most 1e-6.

    Inversion of the test. The p-value never falls as ε grows: fewer hits survive the thinning, and
    `P(B >= T)` is larger for a smaller `T`. So the rejected ε form an interval, and bisection finds
    its end.
    """
    target = math.log(alpha)

    def is_rejected(eps: float) -> bool:
        return log_statdp_p_value(c1, n1, c2, n2, eps) <= target

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
    """Return `ln P(B = j)`: j red cards precede the `(black + 1)`-th black one; `black < n2`."""
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
