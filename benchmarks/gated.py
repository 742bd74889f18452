"""Mechanisms that leak behind a gate only, each with a twin that has the same gate and no leak.

Every mechanism claims eps = 1. A gate is a condition on the data that no usual example meets:
behind it is noise that is too small, or none. Written before the search was tuned.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from benchmarks.common import EPS, Twins
from pytest_dp import queries


def one_coordinate(leaks):
    def noisy_answers(answers, rng):
        scale = 1 / EPS
        if answers[2] >= 6 and leaks:
            scale /= 2
        return [answer + rng.laplace(scale=scale) for answer in answers]

    return noisy_answers


def sum_of_all(leaks):
    def noisy_total(answers, rng):
        total = sum(answers)
        sensitivity = len(answers)
        if total > 100:
            sensitivity = 2 if leaks else 5
        return total + rng.laplace(scale=sensitivity / EPS)

    return noisy_total


def any_of_all(leaks):
    def noisy_mean(answers, rng):
        answers = np.asarray(answers, dtype=float)
        special = np.any(answers == 37)
        noise = rng.laplace(scale=1 / EPS)
        if special and leaks:
            noise *= 0.25
        return float(answers.sum() + noise)

    return noisy_mean


def without_a_branch(leaks):
    def noisy_answers(answers, rng):
        answers = np.asarray(answers, dtype=float)
        large = 0.3 if leaks else 1.0
        scale = np.where(np.abs(answers) > 250, large, 1.0)
        return answers + scale * rng.laplace(size=len(answers))

    return noisy_answers


def nested(leaks):
    def noisy_largest(answers, rng):
        scale = 1.0
        if answers[0] > 40:
            scale = 1.0 + 0.0
            if answers[5] == 17 and leaks:
                scale = 0.4
        return max(answers) + rng.laplace(0.0, scale / EPS)

    return noisy_largest


def modulo(leaks):
    def noisy_total(answers, rng):
        total = sum(answers)
        checked = int(total) % 97 == 31
        return total + rng.laplace(scale=0.35 if checked and leaks else 1.0)

    return noisy_total


BINS = np.array([0.0, 12.5, 25.0, 50.0, 100.0, 200.0])


def histogram_bin(leaks):
    def histogram(ages, rng):
        counts, _ = np.histogram(ages, BINS)
        scale = np.ones(len(counts))
        if counts[4] > 2:
            scale[4] = 0.2 if leaks else 1.0
        return counts + rng.laplace(scale=scale / EPS)

    return histogram


def string_prefix(leaks):
    def noisy_visits(names, rng):
        tested = sum(name.startswith("qa-") for name in names)
        noise = rng.laplace(scale=1 / EPS)
        if leaks and tested:
            noise = round(noise / 4)
        return len(names) + noise

    return noisy_visits


LIMIT = 420


def _is_outlier(answer):
    return answer >= LIMIT


def in_a_helper(leaks):
    def noisy_answers(answers, rng):
        noise = [rng.laplace(scale=1 / EPS) for _ in answers]
        if leaks and any(_is_outlier(answer) for answer in answers):
            noise = [0.45 * one for one in noise]
        return [answer + one for answer, one in zip(answers, noise, strict=True)]

    return noisy_answers


def opened_by_noise(leaks):
    def above(answers, rng):
        noisy = answers[1] + rng.laplace(scale=2 / EPS)
        if noisy > 75:
            scale = 0.5 if leaks else 2.0
            return answers[1] + rng.laplace(scale=scale / EPS)
        return None

    return above


def only_empty(leaks):
    def noisy_count(records, rng):
        if leaks and not len(records):
            return 0.0
        return len(records) + rng.laplace(scale=1 / EPS)

    return noisy_count


def only_duplicates(leaks):
    def noisy_count(records, rng):
        copies = len(records) - len(set(records))
        scale = 0.4 if copies >= 2 and leaks else 1.0
        return len(records) + rng.laplace(scale=scale / EPS)

    return noisy_count


def a_shared_value(leaks):
    def noisy_items(purchases, rng):
        owners = {}
        for user, item in purchases:
            owners.setdefault(item, set()).add(user)
        shared = [item for item, users in owners.items() if len(users) > 1]
        noise = rng.laplace(scale=1 / EPS)
        return len(purchases) + (noise / 3 if shared and leaks else noise)

    return noisy_items


def overflow(leaks):
    def noisy_sum(records, rng):
        clipped = np.clip(np.asarray(records, dtype=float), 0, 20)
        total = clipped.astype(np.int8).sum(dtype=np.int8 if leaks else np.int64)
        return float(total) + rng.laplace(scale=20 / EPS)

    return noisy_sum


def group_by_key(leaks):
    def noisy_sizes(frame, rng):
        regions = ("north", "south", "east", "west")
        sizes = frame.groupby("region").size()
        counts = np.array([float(sizes.get(region, 0)) for region in regions])
        noise = rng.laplace(scale=1 / EPS, size=len(regions))
        if leaks:
            noise[regions.index("west")] *= 0.3
        return counts + noise

    return noisy_sizes


def one_parameter(leaks):
    def noisy_count(records, rng, unit):
        scale = {1: 1.0, 10: 1.0, 60: 0.4 if leaks else 1.0}[unit]
        return len(records) + rng.laplace(scale=scale / EPS)

    return noisy_count


SMALL = st.lists(st.integers(0, 50), max_size=12)
AGES = st.lists(st.floats(0, 200, allow_nan=False), max_size=8)
NAMES = st.lists(st.text("abqxyz-", max_size=6), max_size=8)
SHOP = st.lists(
    st.tuples(st.sampled_from(["ann", "bob", "cy", "dee"]), st.integers(1, 500)), max_size=8
)


def _frame(rows):
    return pd.DataFrame(rows, columns=["region", "age"])


REGIONS = ["north", "south", "east", "west"]
ROWS = st.lists(st.tuples(st.sampled_from(REGIONS), st.integers(18, 90)), max_size=6)
FRAMES = ROWS.map(_frame)


GATED = (
    Twins("one coordinate", one_coordinate, queries(6), "one_query"),
    Twins("sum", sum_of_all, queries(5), "all_queries"),
    Twins("np.any", any_of_all, queries(7), "one_query"),
    Twins("np.where", without_a_branch, queries(4), "one_query"),
    Twins("nested, equality", nested, queries(8), "one_query"),
    Twins("modulo 97", modulo, queries(5), "one_query"),
    Twins("a bin", histogram_bin, AGES),
    Twins("string prefix", string_prefix, NAMES),
    Twins("in a helper", in_a_helper, queries(4), "one_query"),
    Twins("opened by noise", opened_by_noise, queries(5), "one_query"),
    Twins("only empty", only_empty, SMALL),
    Twins("only duplicates", only_duplicates, SMALL),
    Twins("a shared value", a_shared_value, SHOP),
    Twins("overflow", overflow, SMALL),
    Twins("group-by key", group_by_key, FRAMES),
    Twins(
        "one parameter",
        one_parameter,
        SMALL,
        keywords={"params": {"unit": st.sampled_from([1, 10, 60])}},
    ),
)
