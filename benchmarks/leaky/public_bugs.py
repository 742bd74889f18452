"""Mistakes of the kinds that public reports tell of, written anew as users write such code.

Each has the line marked that is wrong. Claims are of one pair, which shows the mistake.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter

import numpy as np


class Reader:
    """A rewriter of SQL aggregates."""

    def __init__(self, rows, eps, rng):
        self.rows, self.eps, self.rng = rows, eps, rng

    def count(self):
        return len(self.rows) + self.rng.laplace(scale=1 / self.eps)

    def total(self, bound):
        clipped = sum(min(max(row, 0), bound) for row in self.rows)
        return clipped + self.rng.laplace(scale=1 / self.eps)  # planted: sql_sum


def sql_sum(rows, rng):
    return Reader(rows, 1.0, rng).total(10)


def sql_budget(rows, rng):
    reader = Reader(rows, 1.0, rng)  # planted: sql_budget
    return [reader.count(), reader.count(), reader.count()]


def group_by(rows, rng):
    counts = Counter(rows)
    return {key: counts[key] + rng.laplace(scale=1) for key in sorted(counts)}  # planted: group_by


def small_groups_kept(rows, rng):
    counts = Counter(rows)
    kept = [key for key in sorted(counts) if counts[key] >= 2]  # planted: small_groups_kept
    return {key: counts[key] + rng.laplace(scale=1) for key in kept}


def gradient_step(gradients, rng):
    clipped = [g / max(1.0, abs(g)) for g in gradients]
    total = sum(clipped) + rng.normal(scale=0.5)  # planted: gradient_step
    return total / 8


def clipped_after_the_sum(gradients, rng):
    total = sum(gradients)
    return total + rng.laplace(scale=1)  # planted: clipped_after_the_sum


def batch_size(gradients, rng):
    total = sum(max(-1.0, min(1.0, g)) for g in gradients) + rng.laplace(scale=1)
    return total / len(gradients)  # planted: batch_size


def pate_votes(votes, rng):
    counts = np.bincount(votes, minlength=3)
    return int(np.argmax(counts + rng.laplace(scale=0.2, size=3)))  # planted: pate_votes


def pate_without_noise(votes, rng):
    counts = np.bincount(votes, minlength=3)
    if counts.max() >= 3:  # planted: pate_without_noise
        return int(counts.argmax())
    return int(np.argmax(counts + rng.laplace(scale=2, size=3)))


def marginals(rows, rng):
    noisy = []
    for column in range(3):
        count = sum(row[column] for row in rows)
        noisy.append(count + rng.laplace(scale=1))  # planted: marginals
    return noisy


def bounds_of_data(values, rng):
    low, high = min(values), max(values)
    scale = (high - low) / len(values)
    return sum(values) / len(values) + rng.laplace(scale=scale)  # planted: bounds_of_data


def exponential_selection(scores, rng):
    weights = np.exp(np.asarray(scores, float))  # planted: exponential_selection
    return int(rng.choice(len(scores), p=weights / weights.sum()))


def best_without_noise(scores, rng):
    best = int(np.argmax(scores))  # planted: best_without_noise
    return best, scores[best] + rng.laplace(scale=1)


def sparse_vector(answers, rng):
    limit = 2 + rng.laplace(scale=2)
    for at, answer in enumerate(answers):
        if answer > limit:  # planted: sparse_vector
            return at
    return -1


def threshold_reported(answers, rng):
    noisy = [answer + rng.laplace(scale=1) for answer in answers]  # planted: threshold_reported
    return [value for value in noisy if value > 1]


def local_report(word, rng):
    bits = [int(hashlib.sha256(word.encode()).digest()[0] >> i & 1) for i in range(4)]
    return [bit if rng.random() < 0.9 else 1 - bit for bit in bits]  # planted: local_report


def telemetry(seconds, rng):
    share = min(seconds, 60) / 60
    sent = rng.random() < 0.05 + 0.9 * share  # planted: telemetry
    return int(sent)


def device_and_time(event, rng):
    count = event["count"] + rng.laplace(scale=1)
    return {"hour": event["hour"], "count": count}  # planted: device_and_time


def rounded_noise(values, rng):
    return sum(values) / 3 + round(rng.laplace(scale=3))  # planted: rounded_noise


def one_generator_for_each(values, rng):
    seed = int(rng.integers(2**31))
    noisy = []
    for value in (len(values), sum(values)):
        own = np.random.default_rng(seed)  # planted: one_generator_for_each
        noisy.append(value + own.laplace(scale=20))
    return noisy


def fixed_seed(values, rng):
    own = np.random.default_rng(7)  # planted: fixed_seed
    return len(values) + own.laplace(scale=1)


def secure_mean(values, rng):
    eps_sum, eps_count = 1.0, 1.0
    total = sum(min(value, 5) for value in values) + rng.laplace(scale=5 / eps_sum)
    count = len(values) + rng.laplace(scale=1 / eps_count)  # planted: secure_mean
    return total, count


def quantile(values, rng):
    ordered = sorted(values)
    at = len(ordered) // 2
    return ordered[at] + rng.laplace(scale=1)  # planted: quantile


def log_scale(values, rng):
    noise = math.exp(rng.laplace(scale=0.1))  # planted: log_scale
    return (1 + len(values)) * noise


GROUPS = (["a", "a", "b"], ["a", "a"])
CLAIMS = {
    "sql_sum": {"pairs": [([3, 10], [3])]},
    "sql_budget": {"pairs": [([3, 10], [3])]},
    "group_by": {"pairs": [GROUPS]},
    "small_groups_kept": {"pairs": [(["a", "a", "b", "b"], ["a", "a", "b"])]},
    "gradient_step": {"eps": None, "mu": 1.0, "pairs": [([1.0, 5.0], [1.0])]},
    "clipped_after_the_sum": {"pairs": [([1.0, 5.0], [1.0])]},
    "batch_size": {"pairs": [([1.0, 0.5, 0.2], [1.0, 0.5])]},
    "pate_votes": {"pairs": [([0, 1, 1, 0, 0], [0, 1, 1, 1, 0])]},
    "pate_without_noise": {"pairs": [([0, 1, 1, 1], [0, 1, 1])]},
    "marginals": {"pairs": [([(1, 1, 1), (0, 1, 0)], [(0, 1, 0)])]},
    "bounds_of_data": {"pairs": [([1, 2, 50], [1, 2, 3])]},
    "exponential_selection": {"pairs": [([3, 1, 1], [2, 2, 2])]},
    "best_without_noise": {"pairs": [([3, 4], [4, 3])]},
    "sparse_vector": {"pairs": [([1, 2, 3], [2, 1, 3])]},
    "threshold_reported": {"pairs": [([2, 2, 2], [3, 3, 3])]},
    "local_report": {"pairs": [("home", "shop")]},
    "telemetry": {"pairs": [(0, 60)]},
    "device_and_time": {"pairs": [({"hour": 3, "count": 2}, {"hour": 4, "count": 2})]},
    "rounded_noise": {"pairs": [([1, 2], [1, 3])]},
    "one_generator_for_each": {"pairs": [([3, 4], [3])]},
    "fixed_seed": {"pairs": [([3, 4], [3])]},
    "secure_mean": {"pairs": [([3, 9], [3])]},
    "quantile": {"pairs": [([1, 5, 9], [1, 9, 9])]},
    "log_scale": {"pairs": [([1], [])]},
}
"""Claims of these functions; eps = 1 unless said otherwise."""
