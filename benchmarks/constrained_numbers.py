"""Mechanisms on rows of numbers that keep a constraint, and on data in order.

``make(False)`` keeps its claim exactly inside, ``make(True)`` breaks it there. Each says what holds
inside, over the noise; what breaks the claim beyond; and what the twin loses.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
from bisect import bisect_left
from functools import partial

import numpy as np
import pandas as pd

from benchmarks.constrained_truth import ADD, REPLACE, Constrained, entered

ZOO: list[Constrained] = []
zoo = partial(entered, ZOO)

ONE_HOT = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
MIXED = [(0.5, 0.5, 0.0), (0.2, 0.3, 0.5), (0.0, 0.0, 1.0)]
UNITS = [(1.0, 0.0), (-1.0, 0.0), (0.6, 0.8), (-0.6, -0.8)]
MATRICES = np.array([[[4.0, 0.0], [0.0, 4.0]], [[1.0, 0.5], [0.5, 1.0]], [[16.0, 8.0], [8.0, 5.0]]])
NO_PIVOT = np.array([[[4.0, 0.0], [0.0, 4.0]], [[1.0, 2.0], [2.0, 1.0]]])
BY_THREE = [(1, 0, 1), (0, 1, 1), (1, 1, 0)]
ADULTS = [18, 25, 49, 50, 70, 90]
SIZES = ["S", "M", "L", "XL"]


def _prices(*rows):
    return np.array(list(rows), dtype=[("low", float), ("high", float)])


def _sums(*rows):
    return pd.DataFrame(rows, columns=["a", "b", "total"])


def _at(*hours):
    return [dt.datetime(2024, 1, 1, hour) for hour in hours]


def _visits(*days):
    return pd.DataFrame({"day": days, "visits": [1] * len(days)})


@zoo(ADD, [ONE_HOT, ONE_HOT[:1] * 2], beyond=([(0, 1, 1)], []))
def one_hot_rows(wrong):
    """A row counts once, in one column: 1 / 1. (0, 1, 1) counts twice. Twin: a third of it."""

    def votes(rows, rng):
        scale = 1 / 3 if wrong else 1.0
        return np.sum(np.array(rows).reshape(-1, 3), axis=0) + rng.laplace(scale=scale, size=3)

    return votes


@zoo(
    REPLACE,
    [np.array(ONE_HOT), np.array(ONE_HOT[1:])],
    beyond=(np.array([(1, 1, 1)]), np.array([(0, 0, 0)])),
)
def one_hot_rows_of_an_array(wrong):
    """One column less and one more: 2 / 2. (1, 1, 1) to (0, 0, 0) is 3 / 2. Twin: of adding: 2."""

    def shares(rows, rng):
        return rows.sum(axis=0) + rng.laplace(scale=0.8 if wrong else 2.0, size=3)

    return shares


@zoo(ADD, [[(0, 9), (3, 4)], [(2, 14), (5, 5)]], beyond=([(9, 0)], []))
def intervals(wrong):
    """From 0 to 5 hours: 5 / 5. (9, 0) is -9 / 5. Twin: not clipped, 9 / 5 and 12 / 5."""

    def hours(stays, rng):
        lengths = (end - start for start, end in stays)
        return sum(lengths if wrong else (min(n, 5) for n in lengths)) + rng.laplace(scale=5)

    return hours


@zoo(ADD, [[0, 9, 9], [0, 0]], beyond=([0, 5], [0]))
def codes(wrong):
    """9 is yes and 0 is no: 1 / 1; no code is malformed. 5 is. Twin: tells all that are not 9."""

    def answers(given, rng):
        malformed = sum(code < 9 if wrong else code not in (0, 9) for code in given)
        return sum(code == 9 for code in given) + rng.laplace(), malformed

    return answers


@zoo(ADD, [(0, 4, 2), (4, 4)], beyond=((3, 2), (2,)))
def even_numbers(wrong):
    """Pairs of shoes, 0 to 2 of them: 2 / 2; the sum is even. 3 is odd. Twin: 2 / (1 / 2)."""

    def pairs(shoes, rng):
        noise = rng.laplace(scale=0.5 if wrong else 2.0)
        return sum(shoes) // 2 + noise, sum(shoes) % 2

    return pairs


@zoo(
    ADD,
    [np.array(MIXED), np.array(MIXED[1:])],
    beyond=(np.array([MIXED[0], (1.0, 1.0, 1.0)]), np.array(MIXED[:1])),
)
def rows_that_sum_to_1(wrong):
    """Rows sum to 1: 1 / 1. (1, 1, 1) sums to 3. Twin: three times the rows, with that noise."""

    def budget(rows, rng):
        return rows.sum(axis=0) * (3 if wrong else 1) + rng.laplace(size=3)

    return budget


@zoo(
    REPLACE,
    [np.array(UNITS[::3]), np.array(UNITS[1:3])],
    beyond=(np.array([(1.0, 1.0)]), np.array([(-1.0, -1.0)])),
    keywords={"eps": None, "mu": 1.0},
)
def vectors_of_norm_1(wrong):
    """Opposite vectors of norm 1: mu = 2 / 2. (1, 1) to (-1, -1) is 2.8 / 2. Twin: 2 / 0.7."""

    def direction(vectors, rng):
        return vectors.sum(axis=0) + rng.normal(scale=0.7 if wrong else 2.0, size=2)

    return direction


@zoo(ADD, [BY_THREE, BY_THREE[:1] * 2], beyond=([(1,), *BY_THREE[1:2] * 2], BY_THREE[1:2] * 2))
def rows_of_one_length(wrong):
    """The first of three numbers, 0 or 1: 1 / 1. (1,) shifts all. Twin: the second, twice."""

    def firsts(rows, rng):
        flat = list(itertools.chain.from_iterable(rows))
        return sum(flat[::3]) + 2 * wrong * sum(flat[1::3]) + rng.laplace()

    return firsts


@zoo(
    ADD,
    [_sums((0, 0, 0), (0, 1, 1), (1, 0, 1)), _sums((1, 0, 1), (1, 0, 1))],
    beyond=(_sums((0, 0, 0), (1, 0, 0)), _sums((0, 0, 0))),
)
def dependent_columns(wrong):
    """One of a and total - a is 1 at most: 1 / 1. a = 1 of 0 is 2. Twin: sums not of one, of 3."""

    def parts(frame, rng):
        a, total = frame["a"].to_numpy(), frame["total"].to_numpy()
        sums = np.array([a.sum(), (total - a).sum()])
        return sums * (3 if wrong else 1) + rng.laplace(size=2)

    return parts


@zoo(ADD, [MATRICES], beyond=(NO_PIVOT, NO_PIVOT[:1]))
def positive_definite(wrong):
    """The root of the first pivot, 1 at most: 1 / 1. [[1, 2], [2, 1]] has none. Twin: of 4."""

    def pivots(matrices, rng):
        roots = np.linalg.cholesky(matrices)[:, 0, 0]
        return (roots if wrong else np.minimum(roots, 1)).sum() + rng.laplace()

    return pivots


@zoo(
    ADD,
    [_prices((1, 5), (2, 2), (0, 1)), _prices((1, 5))],
    beyond=(_prices((1, 5), (5, 1)), _prices((1, 5))),
)
def low_and_high(wrong):
    """The root of high - low, 2 at most: 2 / 2. high < low is NaN. Twin: 4 / 2."""

    def spread(prices, rng):
        gaps = prices["high"] - prices["low"]
        with np.errstate(invalid="ignore"):
            return (gaps if wrong else np.sqrt(gaps)).sum() + rng.laplace(scale=2)

    return spread


@zoo(ADD, [pd.Series([0, 1, 1]), pd.Series([0])], beyond=(pd.Series([7, 1]), pd.Series([1])))
def flags(wrong):
    """1 or 0: 1 / 1. 7 ^ 1 is 6. Twin: 1 / 0.4."""

    def without(answers, rng):
        return int((answers.to_numpy() ^ 1).sum()) + rng.laplace(scale=0.4 if wrong else 1)

    return without


@zoo(ADD, [[0.5, 1.0, 0.1], [0.0]], beyond=([0.5, 2.0], [0.5]))
def probabilities(wrong):
    """A deviation of 0.5 at most: 0.5 / 0.5. Of 2 there is none. Twin: 0.5 / 0.2."""

    def deviations(chances, rng):
        spreads = (math.sqrt(p * (1 - p)) for p in chances)
        return sum(spreads) + rng.laplace(scale=0.2 if wrong else 0.5)

    return deviations


@zoo(
    REPLACE,
    [[(2, 1, 0), (0, 1, 2), (1, 2, 0)], [(2, 0, 1), (1, 0, 2)]],
    beyond=([(2, 2, 2)], [(0, 0, 0)]),
)
def rankings(wrong):
    """Places 2, 1, 0 to 0, 1, 2: 4 / 4. (2, 2, 2) to (0, 0, 0) is 6 / 4. Twin: 4 / 2."""

    def points(ballots, rng):
        totals = [sum(column) for column in zip(*ballots, strict=True)] or [0, 0, 0]
        return np.array(totals) + rng.laplace(scale=2 if wrong else 4, size=3)

    return points


@zoo(REPLACE, [[0, 1], [1, 1]], beyond=([0, 1], [0, 2]), order=int)
def permitted_answers(wrong):
    """Each answer stays with probability e / (1 + e): 1. A 2 is told. Twin: stays with 0.95."""

    def responses(bits, rng):
        honest = 0.95 if wrong else math.e / (1 + math.e)
        return [rng.choice([bit, 1 - bit], p=[honest, 1 - honest]) for bit in bits]

    return responses


@zoo(ADD, [ADULTS, ADULTS[::2]], beyond=([60, 10], [60]), order=int)
def sorted_numbers(wrong):
    """How many are below 50: 1 / 1. Bisection of 60, 10 tells 2. Twin: the largest age, raw."""

    def young(ages, rng):
        count = bisect_left(ages, 50) + rng.laplace()
        return (count, ages[-1] if ages else 0) if wrong else count

    return young


@zoo(
    ADD,
    [_at(8, 9, 14, 18), _at(8, 18)],
    beyond=(_at(8, 18, 8), _at(8, 8)),
    order=dt.datetime.timestamp,
)
def timestamps_in_order(wrong):
    """Hours from the first to the last, 10 at most: 10 / 10. Back and forth is 20. Twin: 10 / 4."""

    def span(times, rng):
        steps = (abs(b - a) / dt.timedelta(hours=1) for a, b in itertools.pairwise(times))
        return sum(steps) + rng.laplace(scale=4 if wrong else 10)

    return span


@zoo(ADD, [SIZES, ["S", "M", "M", "XL"]], beyond=(["S", "M", "S"], ["S", "S"]), order=SIZES.index)
def categories_in_order(wrong):
    """S, M, L, XL in this order: a run of each, 1 / 1. S, M, S has three. Twin: 1 / 0.4."""

    def runs(sizes, rng):
        return sum(1 for _ in itertools.groupby(sizes)) + rng.laplace(scale=0.4 if wrong else 1)

    return runs


@zoo(
    ADD,
    [_visits(1, 1, 2, 4, 9), _visits(2, 4)],
    beyond=(_visits(1, 2, 1), _visits(1, 1)),
    order=min,
)
def a_frame_in_order(wrong):
    """Days that differ from the one before: 1 / 1. 1, 2, 1 has three. Twin: tells the last one."""

    def active_days(frame, rng):
        days = frame["day"].to_numpy()
        count = len(days[:1]) + int((days[1:] != days[:-1]).sum()) + rng.laplace()
        return (count, int(days.max(initial=0))) if wrong else count

    return active_days
