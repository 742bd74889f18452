"""Tests of what an audit assumes of its samples: independent runs, of a law that is known.

Every test here rests on independent runs. A mechanism that shares noise between draws, or keeps
state from run to run, breaks that, and its counts would prove nothing. Checks of that can only
withhold a verdict, so that they take nothing from its validity.

`scipy.stats` has three of these tests, and would take half a second to load in each audit: they are
written with `scipy.special`, and a test holds them against it.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import bdtrc, chdtrc, gammaln, kolmogorov

from pytest_dp.basics.arrays import Bools, Floats, Ints
from pytest_dp.statistics.statdp_test import log_tail

MAX_GROUPS = 16
"""Groups of runs that are compared. More see what changes often; fewer what changes slowly."""

NOT_IID = 1e-9
"""A p-value below which runs depend on each other. Larger: right mechanisms are refused; smaller:
runs that depend on each other decide."""

MIN_EXPECTED = 4
"""Runs inside, and outside, the event that each group is expected to hold. Larger: fewer groups;
smaller: the chi-squared law is a worse approximation (5 is the usual rule). By hand."""


def same_in_all_chunks(
    hits: Ints, sizes: Ints, max_groups: int = MAX_GROUPS
) -> tuple[float, list[float]]:
    """Test by Pearson's chi-squared that an event is equally likely in all chunks (approximate).

    `hits` and `sizes` are the outputs in the event, and the runs, of each chunk, in the order of
    the runs. With the p-value, which is 1.0 if there are too few hits to tell, come the event's
    frequencies in groups of neighbouring chunks.
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


def all_come_before(last: int, hits: int, runs: int) -> float:
    """Return the probability that none of the `last` runs is a hit, of so many hits in `runs` runs.

    Exact for runs that are exchangeable.
    """
    return math.exp(log_tail(hits, runs - last, 0, last)) if hits <= runs - last else 0.0


def two_samples(hits: tuple[int, int], runs: tuple[int, int]) -> float:
    """Return the two-sided p-value of Fisher's exact test that both frequencies are equal.

    It is twice the smaller tail, and exact for any two samples of runs that are exchangeable.
    """
    first, other = zip(hits, runs, strict=True)
    return min(1.0, 2 * math.exp(min(log_tail(*first, *other), log_tail(*other, *first))))


def same_law(first: Floats, other: Floats) -> float:
    """Test that two samples of numbers have the same law, by Kolmogorov and Smirnov; a p-value.

    It is the limit for large samples, which is larger than the exact one for small samples.
    """
    ends = np.concatenate([first, other])
    ours, theirs = (
        np.searchsorted(np.sort(sample), ends, side="right") / len(sample)
        for sample in (first, other)
    )
    size = len(first) * len(other) / (len(first) + len(other))
    return float(kolmogorov(math.sqrt(size) * np.abs(ours - theirs).max()))


def repeats(values: Ints, groups: Ints) -> float:
    """Test that equal outputs share a group no more often than in independent runs; a p-value.

    Of every value that came at least twice, two outputs are picked at random. Independent runs of
    any one distribution can change places, so those two are in the same group with a probability
    that is known, whatever the values are. The p-value is conservative up to the weak dependence
    between values (approximate).
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


def pairs_agree(inside: Bools) -> float:
    """Return a p-value: runs in a group agree on an event no more often than independent ones.

    Neighbouring runs of a group are paired; `inside` has the shape (groups, runs). Independent runs
    can change places, so that all ways to spread those in the event over the pairs are equally
    likely; in how many so few pairs disagree can be counted. The p-value is exact.
    """
    even = inside[:, : inside.shape[1] // 2 * 2]
    return _disagreements(even[:, ::2].ravel(), even[:, 1::2].ravel())[0]


def runs_depend(inside: Bools, lag: int) -> float:
    """Return whether runs that are `lag` apart are more alike, or less, than independent ones.

    Runs are paired so that each is in one pair; the p-value is two-sided, and exact.
    """
    whole = inside[: len(inside) // (2 * lag) * (2 * lag)].reshape(-1, 2, lag)
    return min(1.0, 2 * min(_disagreements(whole[:, 0].ravel(), whole[:, 1].ravel())))


def _disagreements(first: Bools, second: Bools) -> tuple[float, float]:
    """Return the chances that so few pairs disagree on an event, and that so many do."""
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
    largest that they have under the known one. Its mean is at most 1 if that is true, so it reaches
    1 / a with probability at most a, at any time (Ville's inequality). It is infinite if something
    came that cannot.

    The probabilities are lower bounds and add up to 1 - `residual`, which any outcome may have in
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
