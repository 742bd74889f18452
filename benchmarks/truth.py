"""Exact output probabilities and true losses of the mechanisms, by closed form or quadrature.

Independent of the samplers in `benchmarks.mechanisms`, so that each checks the other.
"""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import scipy

from benchmarks.mechanisms import bloom_filter, geometric_cumulative


def patterns(n, relation):
    """Pairs of StatDP's Table 1 of length `n`, half-half in both orders; each one way round."""
    ones, half = (1,) * n, n // 2
    pairs = [(ones, (2, *ones[1:])), (ones, (0, *ones[1:]))]
    if relation == "all_queries":
        pairs += [
            (ones, (2,) + (0,) * (n - 1)),
            (ones, (0,) + (2,) * (n - 1)),
            (ones, (0,) * (n - half) + (2,) * half),
            (ones, (2,) * half + (0,) * (n - half)),
            (ones, (2,) * n),
            (ones, (0,) * n),
            ((1,) * half + (0,) * (n - half), (0,) * half + (1,) * (n - half)),
        ]
    return pairs


def loss(probabilities, pairs):
    """Largest |ln P - ln P'| over outcomes and pairs; inf where only one of the two is possible."""
    largest = 0.0
    for d1, d2 in pairs:
        p1, p2 = probabilities(d1), probabilities(d2)
        possible = (p1 > 0) | (p2 > 0)
        with np.errstate(divide="ignore"):
            ratios = np.abs(np.log(p1[possible]) - np.log(p2[possible]))
        largest = max(largest, float(ratios.max()))
    return largest


def _nodes(kinks, scale):
    """Gauss-Legendre nodes and weights on panels between kinks and out to 40 scales."""
    kinks = np.unique(kinks)
    tail = scale * np.geomspace(0.01, 40, 40)
    ends = np.concatenate([kinks[0] - tail[::-1], kinks, kinks[-1] + tail])
    x, w = np.polynomial.legendre.leggauss(16)
    half = np.diff(ends)[:, None] / 2
    return (ends[:-1, None] + half * (1 + x)).ravel(), (half * w).ravel()


def bool_outcomes(n, c):
    """All outputs of a sparse vector of `n` answers that stops after `c` TRUE (never if None)."""
    outcomes = []
    for bits in itertools.product((False, True), repeat=n):
        if c is None or sum(bits) < c:
            outcomes.append(bits)
            continue
        stop = [i for i, bit in enumerate(bits) if bit][c - 1] + 1
        if not any(bits[stop:]):
            outcomes.append(bits[:stop])
    return outcomes


def svt_probabilities(answers, outcomes, threshold, threshold_scale, answer_scale):
    """P(output = outcome) of a sparse vector with one noisy threshold; Algorithms 1, 4, 5, 6.

    Given the threshold's noise, the answers are independent; the noise is integrated out.
    """
    answers = np.asarray(answers, dtype=float)
    kinks = np.concatenate([[0.0], answers - threshold])
    rho, weight = _nodes(kinks, max(threshold_scale, answer_scale))
    weight = weight * scipy.stats.laplace.pdf(rho, scale=threshold_scale)
    gap = threshold + rho[None, :] - answers[:, None]
    if answer_scale:
        law = scipy.stats.laplace(scale=answer_scale)
        below, above = law.cdf(gap), law.sf(gap)
    else:
        below, above = (gap > 0).astype(float), (gap <= 0).astype(float)
    return np.array(
        [
            weight @ np.prod([(below, above)[bit][i] for i, bit in enumerate(outcome)], axis=0)
            for outcome in outcomes
        ]
    )


def svt3_probability(answers, k, low, high, eps, threshold, c=1):
    """P(k times FALSE, then a released answer in [low, high]) of Algorithm 3."""
    answers = np.asarray(answers, dtype=float)
    scale = 2 * c / eps
    kinks = np.concatenate([[0.0, low - threshold, high - threshold], answers - threshold])
    rho, weight = _nodes(kinks, max(scale, 2 / eps))
    weight = weight * scipy.stats.laplace.pdf(rho, scale=2 / eps)
    below = scipy.stats.laplace.cdf(threshold + rho[None, :] - answers[:k, None], scale=scale)
    start = np.clip(threshold + rho, low, high)
    law = scipy.stats.laplace(answers[k], scale)
    mass = law.cdf(high) - law.cdf(start)
    return float(weight @ (below.prod(axis=0) * mass))


def noisy_max_probabilities(answers, eps, law=None):
    """P(argmax = j) for additive noise of scale 2/eps, Laplace noise if no law is given."""
    law = law or scipy.stats.laplace
    answers = np.asarray(answers, dtype=float)
    x, weight = _nodes(answers, 2 / eps)
    cdf = law.cdf(x[None, :], answers[:, None], 2 / eps)
    pdf = law.pdf(x[None, :], answers[:, None], 2 / eps)
    others = [np.prod(np.delete(cdf, j, axis=0), axis=0) for j in range(len(answers))]
    return (pdf * others) @ weight


def geometric_probabilities(count, eps, n=5):
    cumulative = geometric_cumulative(count, eps, n)
    return np.diff([0, *cumulative]) / cumulative[-1]


def rappor_bit_probabilities(f, p=0.0, q=1.0):
    """P(reported bit is 1) for a 0 and for a 1 in the Bloom filter."""
    return f / 2 * (p + q) + (1 - f) * p, f / 2 * (p + q) + (1 - f) * q


def rappor_loss(f, p=0.0, q=1.0, values=(0, 1)):
    zero, one = rappor_bit_probabilities(f, p, q)
    differing = int((bloom_filter(values[0]) != bloom_filter(values[1])).sum())
    return differing * max(math.log(one / zero), math.log((1 - zero) / (1 - one)))


@functools.cache
def noisy_max_loss(eps, n=5, exponential=False):
    law = scipy.stats.expon if exponential else scipy.stats.laplace
    pairs = patterns(n, "all_queries")
    return loss(lambda answers: noisy_max_probabilities(answers, eps, law), pairs)


@functools.cache
def svt_loss(algorithm, eps, threshold, n=10):
    """Largest loss of Algorithm 1, 2, 4, 5 or 6 with c = 1 on the StatDP patterns.

    With c = 1, Algorithm 2 is Algorithm 1.
    """
    scales = {1: (2, 4), 2: (2, 4), 4: (4, 4 / 3), 5: (2, 0), 6: (2, 2)}[algorithm]
    outcomes = bool_outcomes(n, None if algorithm in (5, 6) else 1)
    rho, nu = (scale / eps for scale in scales)
    pairs = patterns(n, "all_queries")
    return loss(lambda q: svt_probabilities(q, outcomes, threshold, rho, nu), pairs)
