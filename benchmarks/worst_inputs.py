"""Twenty mechanisms whose noise is too small by a factor that only extreme inputs show.

Each has the strategy of its inputs, and how far its answer moves at most between neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st


class Worst(NamedTuple):
    """An answer without noise, its inputs, and the distance between its answers at most."""

    name: str
    answer: Callable[[Any], Any]
    inputs: Any
    farthest: float
    neighbors: str = "add_remove_one"

    def mechanism(self) -> Callable[..., Any]:
        """The answer with noise that is enough for half of this distance."""
        answered, scale = self.answer, self.farthest / 2

        def noisy(data, rng):
            answer = answered(data)
            if isinstance(answer, list):
                return [each + rng.laplace(scale=scale) for each in answer]
            return answer + rng.laplace(scale=scale)

        return noisy

    def moves(self, d1: Any, d2: Any) -> float:
        """How far its answers on two inputs are apart."""
        return float(np.abs(np.subtract(self.answer(d1), self.answer(d2))).sum())


def lists(low, high, least=0, most=5):
    return st.lists(st.integers(low, high), min_size=least, max_size=most)


def rows(*columns, least=0):
    return st.lists(st.tuples(*columns), min_size=least, max_size=5)


AGE, PRICE, COUNT = st.integers(0, 120), st.integers(0, 1_000), st.integers(0, 12)
FLOATS = st.lists(st.floats(-3, 250), min_size=1, max_size=5)
KINDS = {0: 1, 1: 5, 2: 2}


def clipped(low, high):
    return lambda data: sum(min(max(x, low), high) for x in data)


def steep(x):
    return 3 * x if x > 990 else x / 10


def histogram(data):
    return [float(sum(low <= x < low + 40 for x in data)) for low in (0, 40, 80, 120)]


def owed(data):
    return sum(5 * count - price for price, count in data)


def by_kind(data):
    return sum(KINDS[kind] * x for kind, x in data)


def clipped_by_numpy(data):
    return np.clip(np.asarray(data), 0, 640).sum()


def second(data):
    return sorted(data)[-2]


def peaks(data):
    return [max(data, default=0), -min(data, default=0)]


WORST = (
    Worst("sum without a clip", sum, lists(0, 730), 730),
    Worst("sum clipped too late", clipped(0, 500), lists(0, 777), 500),
    Worst("clipped below only", lambda data: sum(max(x, 18) for x in data), lists(0, 120), 120),
    Worst("both ends", clipped(-50, 90), lists(-80, 100), 140, "replace_one"),
    Worst("negative", sum, lists(-940, 10), 940),
    Worst("mean", lambda data: sum(data) / len(data), lists(0, 300, 3, 3), 100, "replace_one"),
    Worst("floats", lambda data: sum(data), FLOATS, 250),
    Worst("price times count", owed, rows(PRICE, COUNT), 1_000),
    Worst("weights", lambda data: sum(3 * a + 0.5 * p for a, p in data), rows(AGE, PRICE), 860),
    Worst("largest", lambda data: max(data, default=0), lists(0, 5_000), 5_000),
    Worst("range", lambda data: max(data) - min(data), lists(10, 410, 2), 400),
    Worst("two answers", lambda data: [sum(data), len(data)], lists(0, 99), 100),
    Worst("two peaks", peaks, lists(-60, 70), 260, "replace_one"),
    Worst("steep at the end", lambda data: sum(map(steep, data)), lists(0, 1_000), 3_000),
    Worst("bonus", lambda data: sum(x + 100 * (x >= 118) for x in data), lists(0, 120), 220),
    Worst("absolute", lambda data: sum(abs(x - 40) for x in data), lists(0, 400), 360),
    Worst(
        "by kind",
        lambda data: sum(KINDS[k] * x for k, x in data),
        rows(st.integers(0, 2), AGE),
        600,
    ),
    Worst("numpy", clipped_by_numpy, lists(0, 888), 640),
    Worst("histogram", histogram, lists(0, 159, 1), 2, "replace_one"),
    Worst("second largest", second, lists(0, 2_000, 3), 2_000, "replace_one"),
)
