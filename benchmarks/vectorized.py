"""The mechanisms of `benchmarks.mechanisms`, many outputs a call; first axis samples.

Same names and distributions. Outputs of varying length come as a list of lists.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.mechanisms import bloom_filter, geometric_cumulative


def laplace(answer, eps, rng, size):
    return answer + rng.laplace(scale=1 / eps, size=size)


def laplace_parallel(answer, eps, rng, size, copies=20):
    return answer + rng.laplace(scale=copies / eps, size=(size, copies))


def truncated_geometric(count, eps, rng, size, n=5):
    cumulative = np.array(geometric_cumulative(count, eps, n))
    return np.searchsorted(cumulative, rng.integers(1, cumulative[-1], size=size, endpoint=True))


def histogram(counts, eps, rng, size):
    return np.asarray(counts) + rng.laplace(scale=1 / eps, size=(size, len(counts)))


def histogram_inverted(counts, eps, rng, size):
    return np.asarray(counts) + rng.laplace(scale=eps, size=(size, len(counts)))


def prefix_sum(answers, eps, rng, size):
    return np.cumsum(histogram(answers, eps, rng, size), axis=1)


def noisy_max(answers, eps, rng, size):
    return np.argmax(histogram(answers, eps / 2, rng, size), axis=1)


def noisy_max_value(answers, eps, rng, size):
    return np.max(histogram(answers, eps / 2, rng, size), axis=1)


def noisy_max_exponential(answers, eps, rng, size):
    return np.argmax(_exponential(answers, eps, rng, size), axis=1)


def noisy_max_value_exponential(answers, eps, rng, size):
    return np.max(_exponential(answers, eps, rng, size), axis=1)


def _exponential(answers, eps, rng, size):
    return np.asarray(answers) + rng.exponential(scale=2 / eps, size=(size, len(answers)))


def svt1(answers, eps, threshold, rng, size, c=1):
    above = _above(answers, threshold, 2 / eps, 4 * c / eps, rng, size)[1]
    return _cut_off(above, above, c)


def svt2(answers, eps, threshold, rng, size, c=1):
    noisy = np.asarray(answers) + rng.laplace(scale=4 * c / eps, size=(size, len(answers)))
    above = np.empty(noisy.shape, dtype=bool)
    noisy_threshold = threshold + rng.laplace(scale=2 * c / eps, size=size)
    for i in range(len(answers)):
        above[:, i] = noisy[:, i] >= noisy_threshold
        fresh = threshold + rng.laplace(scale=2 * c / eps, size=size)
        noisy_threshold = np.where(above[:, i], fresh, noisy_threshold)
    return _cut_off(above, above, c)


def svt3(answers, eps, threshold, rng, size, c=1):
    noisy, above = _above(answers, threshold, 2 / eps, 2 * c / eps, rng, size)
    return _cut_off(_where(above, noisy, False), above, c)


def svt4(answers, eps, threshold, rng, size, c=1):
    above = _above(answers, threshold, 4 / eps, 4 / (3 * eps), rng, size)[1]
    return _cut_off(above, above, c)


def svt5(answers, eps, threshold, rng, size):
    return np.asarray(answers) >= threshold + rng.laplace(scale=2 / eps, size=(size, 1))


def svt6(answers, eps, threshold, rng, size):
    return _above(answers, threshold, 2 / eps, 2 / eps, rng, size)[1]


def svt34(answers, eps, threshold, rng, size, c=1):
    third = svt3(answers, eps, threshold, rng, size, c)
    return list(zip(third, svt4(answers, eps, threshold, rng, size, c), strict=True))


def numerical_svt(answers, eps, threshold, rng, size, c=2):
    above = _above(answers, threshold, 3 / eps, 6 * c / eps, rng, size)[1]
    released = np.asarray(answers) + rng.laplace(scale=3 * c / eps, size=above.shape)
    return _cut_off(np.where(above, released, 0.0), above, c)


def _above(answers, threshold, threshold_scale, answer_scale, rng, size):
    noisy_threshold = threshold + rng.laplace(scale=threshold_scale, size=(size, 1))
    noisy = np.asarray(answers) + rng.laplace(scale=answer_scale, size=(size, len(answers)))
    return noisy, noisy >= noisy_threshold


def _where(above, value, otherwise):
    mixed = np.full(above.shape, otherwise, dtype=object)
    mixed[above] = value[above]
    return mixed


def _cut_off(outputs, above, c):
    """Rows up to and including their c-th TRUE."""
    lengths = 1 + (np.cumsum(above[:, :-1], axis=1) < c).sum(axis=1)
    return [row[:n] for row, n in zip(outputs.tolist(), lengths.tolist(), strict=True)]


def one_time_rappor(value, rng, size, f=0.95):
    bits = bloom_filter(value)
    coins = rng.integers(2, size=(size, bits.size))
    return np.where(rng.random((size, bits.size)) < f, coins, bits)


def rappor(value, rng, size, f=0.75, p=0.45, q=0.55):
    permanent = one_time_rappor(value, rng, size, f)
    return (rng.random(permanent.shape) < np.where(permanent == 1, q, p)).astype(np.int64)


def randomized_response(truth, eps, rng, size):
    honest = rng.random(size) < 1 / (1 + math.exp(-eps))
    return np.where(honest, truth, 1 - truth)


def noisy_count(records, eps, rng, size):
    return len(records) + rng.laplace(scale=1 / eps, size=size)


def geometric_count(records, eps, rng, size):
    success = -math.expm1(-eps)
    return len(records) + rng.geometric(success, size=size) - rng.geometric(success, size=size)


def kary_response(truth, eps, rng, size, k=5):
    honest = rng.random(size) < math.exp(eps) / (math.exp(eps) + k - 1)
    other = rng.integers(k - 1, size=size)
    return np.where(honest, truth, other + (other >= truth))


def unary_encoding(truth, eps, rng, size, k=5):
    honest = rng.random((size, k)) < 1 / (1 + math.exp(-eps / 2))
    return np.where(honest, np.arange(k) == truth, np.arange(k) != truth)
