"""Ten more, written when the others had been looked at, and looked at once themselves."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Release:
    """What is published, with the noise that each number gets."""

    rng: np.random.Generator
    eps: float
    numbers: dict = field(default_factory=dict)

    def add(self, name, value, sensitivity):
        """One more number."""
        scale = sensitivity / self.eps
        noise = self.rng.laplace(scale=scale)
        self.numbers[name] = value + noise


def report_by_class(ages, eps, rng):
    """How many there are, and the sum of their ages; each was to get half of eps."""
    release = Release(rng, eps)  # planted: report_by_class
    clipped = [min(max(age, 0), 90) for age in ages]
    release.add("count", len(clipped), 1)
    release.add("sum", sum(clipped), 90)
    return release.numbers


def variance(values, eps, rng):
    """Mean of squares and mean, of values between 0 and 1."""
    values = np.clip(np.asarray(values, dtype=float), 0, 1)
    n = len(values)
    squares = (values**2).sum() / n
    mean = values.sum() / n
    noisy_mean = mean + rng.laplace(scale=2 / (n * eps))
    noisy_squares = squares + rng.laplace(scale=2 / (n * n * eps))  # planted: variance
    return noisy_squares - noisy_mean**2, noisy_mean


def heavy_hitters(words, eps, rng):
    """Words that were said often, with how often."""
    counts = Counter(words)
    found = {}
    for word in ("yes", "no", "maybe"):
        noisy = counts[word] + rng.laplace(scale=1 / eps)
        if noisy < 2:
            continue
        found[word] = counts[word]  # planted: heavy_hitters
    return found


def shuffled_sample(records, eps, rng):
    """The mean of a sample of half of the records, with noise for the mean of the sample."""
    records = np.asarray(records, dtype=float)
    chosen = rng.permutation(len(records))[: len(records) // 2]
    sample = np.clip(records[chosen], 0, 10)
    width = 10 / len(records)
    noise = rng.laplace(scale=width / eps / 4)  # planted: shuffled_sample
    return float(sample.mean() + noise)


def gaussian_by_random(values, eps, delta):
    """A sum of values up to 1, by Python's generator."""
    total = 0.0
    for value in values:
        total += max(0.0, min(1.0, value))
    sigma = math.sqrt(2 * math.log(1.25 / delta)) * eps  # planted: gaussian_by_random
    return random.gauss(total, sigma)


def staircase(records, eps, rng):
    """A count, by a geometric number of steps up or down."""
    count = sum(1 for record in records if record)
    alpha = math.exp(-eps)
    sign = 1 if rng.random() < 0.5 else -1
    if rng.random() < (1 - alpha) / (1 + alpha):
        return count
    return count + sign * int(rng.geometric(1 - alpha**3))  # planted: staircase


def local_votes(vote, eps, rng):
    """A vote among three, by a bit for each, of which the first is told as it is."""
    honest = 1 / (1 + math.exp(-eps / 2))
    bits = []
    for option in range(3):
        bit = int(option == vote)
        if option == 0:  # planted: local_votes
            bits.append(bit)
        else:
            bits.append(bit if rng.random() < honest else 1 - bit)
    return bits


def weekly(visits, eps, rng):
    """Visits of each of four weeks, and of the month; each week at eps, and the month for free."""
    weeks = np.zeros(4)
    for week in visits:
        weeks[week] += 1
    noisy = weeks + rng.laplace(scale=1 / eps, size=4)
    month = weeks.sum()  # planted: weekly
    return {"weeks": noisy.tolist(), "month": float(month)}


def best_option(scores, eps, rng):
    """The best of some options by Gumbel noise; a score moves by 1 at most."""
    scores = np.asarray(scores, dtype=float)
    if scores.size < 2:
        return 0
    beta = 1 / (2 * eps)  # planted: best_option
    noise = rng.gumbel(scale=beta, size=scores.size)
    noisy = scores + noise
    return int(noisy.argmax())


def quantised(reading, eps, rng):
    """A reading between 0 and 100, with noise that is cut off where it is large."""
    reading = min(max(float(reading), 0.0), 100.0)
    scale = 100 / eps
    noise = rng.laplace(scale=scale)
    limit = 200.0
    noise = max(-limit, min(limit, noise))  # planted: quantised
    return reading + noise


SIZED = {"pairs": [([3, 1, 4, 1], [3, 1, 4])]}
CLAIMS = {
    "report_by_class": {"pairs": [([20, 30, 80], [20, 30])]},
    "variance": {"pairs": [([0.1, 0.2, 0.3, 0.4, 1.0], [0.1, 0.2, 0.3, 0.4, 0.0])]},
    "heavy_hitters": {"pairs": [(["yes"] * 5, ["yes"] * 4)]},
    "shuffled_sample": {"pairs": [([1, 2, 3, 10], [1, 2, 3, 0])]},
    "gaussian_by_random": {"delta": 1e-5, "eps": 0.1, "pairs": [([1, 1, 1], [1, 1])]},
    "staircase": SIZED,
    "local_votes": {"pairs": [(0, 1)]},
    "weekly": {"pairs": [([0, 1, 1, 3], [0, 1, 1])]},
    "best_option": {"pairs": [([1, 1, 1, 1], [2, 0, 0, 0])]},
    "quantised": {"pairs": [(0.0, 100.0)]},
}
