"""Twenty functions, as they stand in projects; each had one line changed for the worse."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, defaultdict

import numpy as np

from benchmarks.leaky.noise import Noisy, double_exponential, laplace_vector, spread

AGE_LIMIT = 100
GROUPS = (0, 18, 40, 65, 120)


def clipped_mean(ages, eps, rng):
    """Mean of ages between 0 and 100; how many there are is public."""
    if len(ages) == 0:
        raise ValueError("no ages")
    ages = np.asarray(ages, dtype=float)
    clipped = np.clip(ages, 0, 10 * AGE_LIMIT)  # planted: clipped_mean
    mean = clipped.mean()
    scale = AGE_LIMIT / (len(clipped) * eps)
    noise = rng.laplace(scale=scale)
    return float(mean + noise)


def histogram_of_ages(ages, eps, rng):
    """How many are in each age group; the bug is in the helper."""
    counts = np.zeros(len(GROUPS) - 1)
    for age in ages:
        for i, (low, high) in enumerate(itertools.pairwise(GROUPS)):
            if low <= age < high:
                counts[i] += 1
                break
    noise = laplace_vector(rng, eps, 1.0, len(counts))
    noisy = counts + noise
    return np.maximum(noisy, -1e9)


def noisy_sum_of_class(values, eps, delta, rng):
    """A bounded sum and a count, by an object that adds the noise."""
    noisy = Noisy(rng, eps / 2, delta / 2)
    total = 0.0
    for value in values:
        if value < 0:
            continue
        total += min(value, 1.0)
    count = noisy.answer(len(values), 1.0)
    return noisy.answer(total, 1.0), count


def means_by_group(rows, eps, rng):
    """Mean cost in each of three groups, from a noisy sum and a noisy count."""
    sums = defaultdict(float)
    counts = defaultdict(int)
    for group, cost in rows:
        sums[group] += min(max(cost, 0), 10)
        counts[group] += 1
    report = {}
    for group in ("a", "b", "c"):
        total = sums[group] + rng.laplace(scale=2 * 10 / eps)
        count = counts[group]  # planted: means_by_group
        report[group] = {"total": total, "count": count}
    return report


def noise_before_loop(visits, eps, rng):
    """How often each of four pages was visited, a visit counts once."""
    pages = ("home", "shop", "help", "blog")
    seen = Counter(visits)
    report = {}
    noise = rng.laplace(scale=1 / eps)  # planted: noise_before_loop
    for page in pages:
        count = seen.get(page, 0)
        noisy = count + noise
        report[page] = noisy
    return report


def private_median(values, eps, rng):
    """The exponential mechanism on candidates; one record moves a utility by 1."""
    candidates = np.arange(0, 11)
    values = np.asarray(values)
    utilities = np.empty(len(candidates))
    for i, candidate in enumerate(candidates):
        below = (values < candidate).sum()
        above = (values > candidate).sum()
        utilities[i] = -abs(int(below) - int(above))
    weights = np.exp(3 * eps * (utilities - utilities.max()) / 2)  # planted: private_median
    probabilities = weights / weights.sum()
    return int(rng.choice(candidates, p=probabilities))


class Sampler:
    """A sum with noise, reproducible."""

    def __init__(self, eps, upper):
        self.eps = eps
        self.upper = upper
        self.rng = None

    def prepare(self):
        """A generator of its own."""
        seed = 20_240_101
        self.rng = np.random.default_rng(seed)  # planted: seeded_in_class

    def total(self, values):
        """The sum of values up to the upper bound."""
        total = 0.0
        for value in values:
            total += min(max(value, 0.0), self.upper)
        return total + self.rng.laplace(scale=self.upper / self.eps)


def seeded_in_class(values, eps):
    """A sum of values up to 10."""
    sampler = Sampler(eps, 10.0)
    sampler.prepare()
    return sampler.total(values)


def unary_survey(answer, eps, rng):
    """One bit for each of six answers, told by randomised response at half of eps each."""
    bits = np.zeros(6, dtype=int)
    bits[answer] = 1
    honest = math.exp(eps) / (1 + math.exp(eps))  # planted: unary_survey
    told = []
    for bit in bits:
        if rng.random() < honest:
            told.append(int(bit))
        else:
            told.append(int(1 - bit))
    return told


class Monitor:
    """Alarms by the sparse vector technique, at most one."""

    def __init__(self, limit, eps, rng):
        self.rng = rng
        self.eps = eps
        self.threshold = limit + rng.laplace(scale=2 / eps)
        self.alarms = 0

    def check(self, value):
        """Whether a value is above the limit."""
        noisy = value  # planted: monitor
        if noisy > self.threshold:
            self.alarms += 1
            return True
        return False


def monitor(values, eps, rng):
    """Which of the values is the first above 5."""
    watch = Monitor(5.0, eps, rng)
    seen = []
    for value in values:
        seen.append(watch.check(value))
        if watch.alarms:
            break
    return seen


def one_sided_count(records, eps, rng):
    """How many records are marked, with geometric noise."""
    count = 0
    for record in records:
        if record > 0:
            count += 1
    success = 1 - math.exp(-eps)
    up = int(rng.geometric(success)) - 1
    down = 0  # planted: one_sided_count
    return count + up - down


def rounded_mean(scores, eps, rng):
    """Mean of scores up to 5, for eight people, to be shown with few digits."""
    scores = [min(max(score, 0.0), 5.0) for score in scores]
    n = len(scores)
    mean = math.fsum(scores) / n
    sensitivity = 5.0 / n
    noise = rng.laplace(scale=sensitivity / eps)
    rounded = round(noise, 1)  # planted: rounded_mean
    return mean + rounded


def scaled_by_data(incomes, eps, rng):
    """The sum of incomes, capped."""
    incomes = np.asarray(incomes, dtype=float)
    incomes = incomes[incomes >= 0]
    if incomes.size == 0:
        return 0.0
    capped = np.minimum(incomes, 50.0)
    upper = capped.max()  # planted: scaled_by_data
    scale = upper / eps
    noisy = capped.sum() + rng.laplace(scale=scale)
    return float(noisy)


def small_groups(records, eps, rng):
    """The noisy mean of what few patients paid; nothing where there are too few."""
    paid = []
    for record in records:
        paid.append(min(max(float(record), 0.0), 20.0))
    if len(paid) < 3:  # planted: small_groups
        return None
    total = sum(paid) + rng.laplace(scale=40 / eps)
    count = len(paid) + rng.laplace(scale=2 / eps)
    return total / max(count, 1.0)


def visits_by_user(rows, eps, rng):
    """How many visits there were, three of each user at most."""
    by_user = defaultdict(list)
    for user, seconds in rows:
        by_user[user].append(seconds)
    total = 0
    for user in sorted(by_user):
        visits = by_user[user]
        total += len(visits)  # planted: visits_by_user
    scale = 3 / eps
    return total + rng.laplace(scale=scale)


def quantile_noise(flags, eps):
    """How many flags are set, with Python's own generator."""
    count = 0
    for flag in flags:
        if flag:
            count += 1
    sensitivity = 1.0
    scale = sensitivity / (4 * eps)  # planted: quantile_noise
    noise = double_exponential(scale)
    return count + noise


def averaged(values, eps, rng):
    """A count with less spread, by the mean of several noisy ones."""
    count = len([value for value in values if value > 2])
    answers = []
    repeats = 30  # planted: averaged
    for _ in range(repeats):
        noise = rng.laplace(scale=1 / eps)
        answers.append(count + noise)
    return sum(answers) / len(answers)


def one_noise_for_all(counts, eps, rng):
    """Counts of three disjoint wards, vectorised."""
    counts = np.asarray(counts, dtype=float)
    if counts.ndim != 1:
        raise ValueError("one count for each ward")
    scale = 1.0 / eps
    noise = rng.laplace(0.0, scale, size=1)  # planted: one_noise_for_all
    noisy = counts + noise
    return np.clip(noisy, -1000, 1000)


def only_where_some(words, eps, rng):
    """How often each word of a short list was used."""
    vocabulary = ["fever", "cough", "rash"]
    used = Counter(word for word in words if word in vocabulary)
    table = {}
    for word in vocabulary:
        count = used[word]
        if count > 0:  # planted: only_where_some
            count = count + rng.laplace(scale=1 / eps)
        table[word] = count
    return table


def clipped_gradient(gradients, rho, rng):
    """A sum of gradients of norm 1 at most, with Gaussian noise."""
    total = np.zeros(3)
    for gradient in gradients:
        gradient = np.asarray(gradient, dtype=float)
        norm = np.linalg.norm(gradient)
        if norm > 1:
            gradient = gradient / math.sqrt(norm)  # planted: clipped_gradient
        total += gradient
    sigma = 1.0 / math.sqrt(2 * rho)
    noise = rng.normal(0.0, sigma, size=total.shape)
    return total + noise


def tree_of_sums(values, eps, rng):
    """Sums over a tree: the whole, halves and quarters, each level at a share of eps."""
    values = np.asarray(values, dtype=float)
    levels = [values]
    while len(levels[-1]) > 1:
        below = levels[-1]
        pairs = below.reshape(-1, 2)
        levels.append(pairs.sum(axis=1))
    released = []
    for level in levels:
        share = eps  # planted: tree_of_sums
        released.append(spread(rng, share, level))
    return [list(level) for level in released]


def random_choice(truth, eps):
    """The truth with some probability, else any of four answers, by `random`."""
    answers = ("never", "rarely", "often", "always")
    weight = math.exp(eps)
    keep = weight / (weight + len(answers) - 1)
    if random.random() < keep:
        return truth
    others = list(answers)  # planted: random_choice
    position = random.randrange(len(others))
    return others[position]
