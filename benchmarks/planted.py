"""Fifteen mechanisms on datasets, each with a bug that real code has had, and their correct twins.

The claim is eps = 1 in all of them, the inputs are strategies, the settings are the default ones.

Run with ``python -m benchmarks.planted [--seeds 3] [--twin-seeds 3] [--only nan ...]``; add
``--libraries`` for mechanisms of diffprivlib and OpenDP on tables.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from hypothesis import strategies as st

from benchmarks.common import EPS, Twins, cpu_seconds, progress, red, table
from pytest_dp import add_remove_one, audit
from pytest_dp.strategies import categories, numbers, tables

SECONDS, SECONDS_OF_LIBRARIES = 30, 120
ENOUGH = 14
AGES = st.lists(st.integers(0, 100), max_size=30)
DEGREES = st.lists(st.integers(-5, 100), max_size=30)
SHARES = st.lists(numbers(0.0, 1.0), max_size=30)
SOME_NAN = st.lists(numbers(-9.0, 9.0, nan=True), max_size=30)
CITIES = st.lists(st.sampled_from(["Basel", "Bern", "Genf", "Zug"]), max_size=30)
VISITS = tables({"user": numbers(1, 6), "cost": numbers(0.0, 1.0)}, max_size=12)
COPIES = {"a": 1, "b": 1, "c": 3}
"""Rows of a public table by which each record is joined."""


def clamped_late(wrong):
    def total(data, rng, size):
        clipped = min(sum(data), 100) if wrong else sum(min(x, 10) for x in data)
        return clipped + rng.laplace(scale=10 / EPS, size=size)

    return total


def public_size(wrong):
    def mean(data, rng, size):
        n = max(len(data), 1)
        if wrong:
            return sum(data) / n + rng.laplace(scale=1 / (n * EPS), size=size)
        totals = sum(data) + rng.laplace(scale=2 / EPS, size=size)
        counts = len(data) + rng.laplace(scale=2 / EPS, size=size)
        return totals / np.maximum(counts, 1)

    return mean


def nan_switches_clip_off(wrong):
    def total(data, rng, size):
        values = np.array(data, dtype=float)
        if not (wrong and values.size and np.isnan(values.min())):
            values = values.clip(0, 1)
        return np.nansum(values) + rng.laplace(scale=1 / EPS, size=size)

    return total


def bounds_of_the_data(wrong):
    def total(data, rng, size):
        high = max(data, default=0) if wrong else 100
        return sum(min(x, high) for x in data) + rng.laplace(scale=max(high, 1) / EPS, size=size)

    return total


def budget_twice(wrong):
    def count_and_total(data, rng, size):
        scale = (1 if wrong else 2) / EPS
        counts = len(data) + rng.laplace(scale=scale, size=size)
        return np.column_stack([counts, sum(data) + rng.laplace(scale=scale, size=size)])

    return count_and_total


def threshold_released(wrong):
    def above_median(data, rng, size):
        threshold = float(np.median(data)) if wrong and data else 50.0
        count = sum(x > threshold for x in data)
        noisy = count + rng.laplace(scale=1 / EPS, size=size)
        return np.column_stack([noisy, np.full(size, threshold)])

    return above_median


def sensitivity_of_replacing(wrong):
    def weights(data, rng, size):
        scale = (80 - 50 if wrong else 80) / EPS
        return sum(min(max(x, 50), 80) for x in data) + rng.laplace(scale=scale, size=size)

    return weights


def noise_of_a_row(wrong):
    def visits(frame, rng, size):
        return len(frame) + rng.laplace(scale=(1 if wrong else 3) / EPS, size=size)

    return visits


def join_multiplies(wrong):
    def joined(frame, rng, size):
        rows = sum(COPIES[plan] for plan in frame["plan"])
        return rows + rng.laplace(scale=(1 if wrong else 3) / EPS, size=size)

    return joined


def small_floats(wrong):
    def total(data, rng, size):
        kind = np.float16 if wrong else np.float64
        running = kind(8_192)
        for x in data:
            running = kind(running + kind(min(x, 5)))
        return float(running) - 8_192 + rng.laplace(scale=5 / EPS, size=size)

    return total


def exception_tells(wrong):
    def total(data, rng):
        if wrong and any(x < 0 for x in data):
            raise ValueError("no age is negative")
        return sum(min(max(x, 0), 1) for x in data) + rng.laplace(scale=1 / EPS)

    return total


def keys_tell(wrong):
    def by_city(data, rng):
        keys = sorted(set(data)) if wrong else ["Basel", "Bern", "Genf", "Zug"]
        return {key: data.count(key) + rng.laplace(scale=1 / EPS) for key in keys}

    return by_city


def order_tells(wrong):
    def by_city(data, rng):
        keys = ["Basel", "Bern", "Genf", "Zug"]
        if wrong:
            keys.sort(key=data.count)
        return [(key, data.count(key) + rng.laplace(scale=1 / EPS)) for key in keys]

    return by_city


def no_noise_without_data(wrong):
    def count(frame, rng, size):
        if wrong and frame.empty:
            return np.zeros(size)
        return len(frame) + rng.laplace(scale=1 / EPS, size=size)

    return count


def local_sensitivity(wrong):
    def median(data, rng, size):
        values = sorted([0.0, *data, 1.0])
        middle = len(values) // 2
        gap = max(values[middle] - values[middle - 1], values[(middle + 1) % len(values)] - 0.0)
        scale = (gap / 4 if wrong else 1.0) / EPS
        return values[middle] + rng.laplace(scale=max(scale, 1e-3), size=size)

    return median


SIZE = {"vectorized": "size"}
BY_USER = add_remove_one(unit="user", rows=3)
PLANS = tables({"plan": categories("abc"), "age": numbers(0, 99)}, kind="dict", max_size=30)
PLANTED = [
    Twins("clamped after summing", clamped_late, AGES, keywords=SIZE),
    Twins("n taken for public", public_size, SHARES, keywords=SIZE),
    Twins("NaN switches the clip off", nan_switches_clip_off, SOME_NAN, keywords=SIZE),
    Twins("bounds of the data", bounds_of_the_data, AGES, keywords=SIZE),
    Twins("budget spent twice", budget_twice, SHARES, keywords=SIZE),
    Twins("threshold released", threshold_released, AGES, keywords=SIZE),
    Twins("sensitivity of replacing", sensitivity_of_replacing, AGES, keywords=SIZE),
    Twins("noise of a row, not of a user", noise_of_a_row, VISITS, BY_USER, SIZE),
    Twins("join multiplies rows", join_multiplies, PLANS, keywords=SIZE),
    Twins(
        "sum in small floats", small_floats, st.lists(numbers(0.0, 9.0), max_size=30), keywords=SIZE
    ),
    Twins("exception", exception_tells, DEGREES),
    Twins("keys of a dict", keys_tell, CITIES),
    Twins("order of a list", order_tells, CITIES),
    Twins("no noise without data", no_noise_without_data, VISITS, keywords=SIZE),
    Twins("local sensitivity", local_sensitivity, SHARES, "replace_one", keywords=SIZE),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--twin-seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", help="parts of names")
    parser.add_argument("--libraries", action="store_true")
    options = parser.parse_args()
    rows, found, alarms, wrong = [], 0, 0, 0
    for planted in PLANTED:
        if options.only and not any(part in planted.name for part in options.only):
            continue
        times, _, cost = red(planted, True, options.seeds, SECONDS)
        twins, beyond, cost_of_twins = red(planted, False, options.twin_seeds, SECONDS)
        found += times == options.seeds
        alarms += twins + beyond
        shown = f"{times}/{options.seeds}", f"{cost:.1f}"
        rows.append([planted.name, *shown, f"{twins}/{options.twin_seeds}", f"{cost_of_twins:.1f}"])
        progress(f"{rows[-1]}")
    print(table(["bug", "found", "CPU s", "twin red", "CPU s"], rows))
    if options.libraries:
        from benchmarks.planted_libraries import LIBRARIES  # which load slowly

        rows = []
        for name, (mechanism, claim, expected) in LIBRARIES.items():
            before = cpu_seconds()
            result = audit(mechanism, **claim, seed=1, n_jobs=1, max_seconds=SECONDS_OF_LIBRARIES)
            wrong += result.verdict != expected
            rows.append([name, result.verdict, f"{cpu_seconds() - before:.1f}"])
            progress(f"{rows[-1]}")
        print(table(["mechanism", "verdict", "CPU s"], rows))
    sys.exit(alarms > 0 or wrong > 0 or (not options.only and found < ENOUGH))


if __name__ == "__main__":
    main()
