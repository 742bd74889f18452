"""Outputs that share what they should not: memory that a later run fills anew, or their noise.

Each output is copied as it comes: the same array or list again would show what the last run gave.
Noise that draws of one vectorised call share makes one run out of two: ``np.repeat(noise,
2)``, ``np.tile``, a shuffled copy and antithetic noise (z and -z) all look right row by row. Rows
that agree by chance, as those of few values do, tell themselves apart: their values come any number
of times, and in other calls as well.
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

MIN_EQUAL = 16
"""Equal outputs within calls that show shared noise. Fewer may be chance; more are seen later."""

_IMMUTABLE = frozenset([int, float, str, bool, bytes, type(None), object])


def copy_data(data: Any) -> Any:
    """Return a copy that nobody else changes; as cheap a one as keeps the original safe."""
    kind = type(data)
    if kind in _IMMUTABLE:
        return data
    if kind in (list, tuple):
        kinds = set(map(type, data))
        if kinds <= _IMMUTABLE or (
            kinds == {tuple} and _holds_immutable(chain.from_iterable(data))
        ):
            return kind(data)
        if kinds == {dict} and _holds_immutable(chain.from_iterable(map(dict.values, data))):
            return kind(map(dict.copy, data))
        return kind([copy_data(record) for record in data])
    if kind is dict:
        return {name: copy_data(value) for name, value in data.items()}
    if isinstance(data, np.ndarray) and data.dtype.kind != "O":
        return data.copy()
    if isinstance(data, np.generic):  # a row of a structured array is a view
        return data.copy()
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(data, pandas.DataFrame | pandas.Series | pandas.Index):
        return data.copy()
    try:
        return copy.deepcopy(data)
    except Exception:  # locks, files, connections
        return data


def _holds_immutable(values: Iterable[Any]) -> bool:
    return set(map(type, values)) <= _IMMUTABLE


Keys = npt.NDArray[np.float64]

MAX_EQUAL_SHARE = 1 / (1 + 2 * math.sqrt(2 / 3))
"""Of values that come k - 1, k, or k + 1 times, the share that come k times, at most."""


def row_keys(outputs: Any) -> Keys:
    """Return a number for every row, equal for equal rows."""
    try:
        table = np.asarray(outputs, dtype=np.float64)
    except (TypeError, ValueError):  # of other types, or of several lengths
        return np.array([hash(repr(output)) for output in outputs], np.float64)
    table = np.nan_to_num(table.reshape(len(table), -1))
    weights = np.random.default_rng(0).random(table.shape[1])
    sums: Keys = (table * weights).sum(axis=1)
    return sums


def look_shared(row_keys: Keys, looks: int = 0) -> bool:
    """Return whether values repeat more evenly, in twos or threes, than in independent rows.

    Of independent rows with any distribution, there are hardly many values that come k times and
    few that come k - 1 or k + 1 times: how often a value comes is about a Poisson variable, and of
    these three numbers the middle one has at most the share `MAX_EQUAL_SHARE`, whatever their
    means. That it has a far larger one is seldom chance, and after `looks` that found nothing it
    has to be rarer.
    """
    chance = (1e-3) * 0.01**looks
    return any(_evenness(values) < chance for values in _values_and_distances(row_keys))


def are_shared(calls: list[Keys]) -> bool:
    """Return whether rows of one call agree far more often than rows of different calls."""
    sizes = [len(call) for call in calls]
    for values in _values_and_distances(np.concatenate(calls)):
        together = _pairs(values)
        within = sum(_pairs(part) for part in np.split(values, np.cumsum(sizes)[:-1]))
        if within >= MIN_EQUAL and 2 * within > together:
            return True
    return False


def _values_and_distances(row_keys: Keys) -> list[Keys]:
    """Return values, and their distances from the middle, as numbers that can be compared."""
    apart = row_keys - row_keys.mean()
    spread = float(np.abs(apart).max()) or 1.0
    rounded = np.round(apart / spread, 9)
    return [rounded, np.abs(rounded)]


def _evenness(values: Keys) -> float:
    """Return a bound on the probability that as many values come k times, of those that nearly do.

    Chernoff's for binomial counts; workers need not load SciPy for it.
    """
    times = np.bincount(np.unique(values, return_counts=True)[1])
    k = int(times[2:].argmax()) + 2 if len(times) > 2 else 0
    if not k:
        return 1.0
    near = int(times[k - 1 : k + 2].sum())
    share = times[k] / near
    if share <= MAX_EQUAL_SHARE:
        return 1.0
    rest = (1 - share) * math.log((1 - share) / (1 - MAX_EQUAL_SHARE)) if share < 1 else 0.0
    return math.exp(-near * (share * math.log(share / MAX_EQUAL_SHARE) + rest))


def _pairs(values: Keys) -> int:
    counts = np.unique(values, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())
