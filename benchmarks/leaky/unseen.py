"""Ten more, written last; nothing was changed for their sake."""

from __future__ import annotations

import math
import random
from collections import defaultdict

import numpy as np


def salaries(rows, eps, rng):
    """Sum of salaries in each department, capped at 100."""
    departments = ("it", "hr")
    sums = dict.fromkeys(departments, 0.0)
    for department, salary in rows:
        if department not in sums:
            continue
        capped = max(salary, 0.0)
        capped = min(capped, 1000.0)  # planted: salaries
        sums[department] += capped
    noisy = {}
    for department in departments:
        noise = rng.laplace(scale=100 / eps)
        noisy[department] = sums[department] + noise
    return noisy


def coin_per_bit(bits, eps, rng):
    """Each bit is kept, or else is a fair coin."""
    bits = np.asarray(bits)
    keep = (math.exp(eps) - 1) / (math.exp(eps) + 1)
    keep = math.sqrt(keep)  # planted: coin_per_bit
    kept = rng.random(len(bits)) < keep
    coins = rng.integers(0, 2, size=len(bits))
    return np.where(kept, bits, coins).tolist()


class Counter:
    """Counts events; noise is drawn when it is made."""

    def __init__(self, rng, eps):
        self.rng = rng
        self.eps = eps
        self.noise = rng.laplace(scale=1 / eps)
        self.count = 0

    def step(self, event):
        """One more event, and the noisy count so far."""
        self.count += event
        return self.count + self.noise  # planted: running_count


def running_count(events, eps, rng):
    """The count after each of some events."""
    counter = Counter(rng, eps)
    told = []
    for event in events:
        told.append(counter.step(event))
    return told


def noisy_average(values, eps, rng):
    """Noisy sum over noisy count, of values between 0 and 4."""
    clipped = [min(max(value, 0), 4) for value in values]
    share = eps / 2
    total = sum(clipped) + rng.laplace(scale=4 / share)
    size = len(values)
    if size > 4:  # planted: noisy_average
        size = size + rng.laplace(scale=1 / share)
    return total / max(size, 1)


def threshold_list(words, eps, delta, rng):
    """Words that enough people said, with noise for each."""
    counts = defaultdict(int)
    for word in words:
        counts[word] += 1
    limit = 1 + math.log(1 / (2 * delta)) / eps
    limit = limit / 10  # planted: threshold_list
    out = {}
    for word in sorted(counts):
        noisy = counts[word] + rng.laplace(scale=1 / eps)
        if noisy > limit:
            out[word] = noisy
    return out


def exponential_pick(scores, eps, rng):
    """One of some options, by weights from their scores, each of which moves by 1 at most."""
    scores = np.asarray(scores, dtype=float)
    weights = np.exp(eps * scores)  # planted: exponential_pick
    total = weights.sum()
    point = rng.random() * total
    running = 0.0
    for option, weight in enumerate(weights):
        running += weight
        if point < running:
            return option
    return len(scores) - 1


def regression(points, eps, rng):
    """Slope through 0, from noisy moments of points within 1."""
    xy = 0.0
    xx = 0.0
    for x, y in points:
        x, y = max(-1, min(1, x)), max(-1, min(1, y))
        xy += x * y
        xx += x * x
    noisy_xy = xy + rng.laplace(scale=2 / (eps / 2))
    noisy_xx = xx + rng.laplace(scale=0.1 / (eps / 2))  # planted: regression
    return {"slope": noisy_xy / max(noisy_xx, 0.5), "xx": noisy_xx}


def discrete_noise(count, eps):
    """A count with whole noise, by coins of `random`."""
    stop = 1 - math.exp(-eps)
    steps = 0
    while random.random() > stop:
        steps += 1
    if random.random() < 0.5:
        steps = -steps
    return count + steps // 2  # planted: discrete_noise


def sums_of_columns(table, rho, rng):
    """Column sums of rows of norm 1 at most, with Gaussian noise."""
    table = np.asarray(table, dtype=float)
    norms = np.abs(table).max(axis=1, keepdims=True)  # planted: sums_of_columns
    table = table / np.maximum(norms, 1.0)
    sums = table.sum(axis=0)
    sigma = math.sqrt(1 / (2 * rho))
    return sums + rng.normal(0, sigma, size=sums.shape)


def first_above(values, eps, rng):
    """The position of the first value above 3, or None."""
    limit = 3 + rng.laplace(scale=2 / eps)
    for position, value in enumerate(values):
        noise = rng.laplace(scale=4 / eps)
        if value + noise > limit:
            return position, value  # planted: first_above
    return None


CLAIMS = {
    "salaries": {"pairs": [([("it", 50), ("hr", 900)], [("it", 50)])]},
    "coin_per_bit": {"pairs": [([1, 0, 1], [0, 0, 1])]},
    "running_count": {"pairs": [([1, 0, 1, 1], [1, 0, 0, 1])]},
    "noisy_average": {"pairs": [([3, 4, 4], [3, 4, 4, 4])]},
    "threshold_list": {"delta": 1e-6, "pairs": [(["a", "a", "b"], ["a", "a"])]},
    "exponential_pick": {"pairs": [([1, 1, 1], [2, 0, 0])]},
    "regression": {"pairs": [([(1, 1), (0.5, 0.5)], [(0.5, 0.5)])]},
    "discrete_noise": {"pairs": [(3, 4)]},
    "sums_of_columns": {"eps": None, "rho": 0.3, "pairs": [([[1, 1, 1, 1]], [[0, 0, 0, 0]])]},
    "first_above": {"pairs": [([1, 5, 2], [2, 4, 1])]},
}
