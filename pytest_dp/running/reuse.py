"""Outputs that share what they should not: memory that a later run fills anew, or their noise.

The same array or list again has to be copied as it comes, or all outputs show what the last run
gave. Noise that draws of one vectorised call share makes one run out of two: ``np.repeat(noise,
2)``, ``np.tile``, a shuffled copy and antithetic noise (z and -z) all look right row by row. Rows
that agree by chance, as those of few values do, tell themselves apart: their values come any number
of times, and in other calls as well.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_dp.outputs.attributes import attributes, opens

MIN_EQUAL = 16
"""Equal outputs within calls that show shared noise. Fewer may be chance; more are seen later."""
LOOKED_AT = 8
"""First outputs, and last ones, that are looked at. More take longer; fewer miss what is shared."""
MAX_OBJECTS = 1_000
"""Objects of an output that are looked at. More take longer; fewer miss what is shared."""


def is_reused(outputs: Sequence[Any]) -> bool:
    """Return whether a mechanism returned one object several times with different contents.

    An object that all outputs hold counts as one that changes.
    """
    if never_changes(outputs[0]) and never_changes(outputs[-1]):
        return False
    if _share_objects([_owner(part) for part in _parts(output)] for output in outputs):
        return True
    last = max(LOOKED_AT, len(outputs) - 2)
    return _share_objects(
        list(mutable_parts(out)) for out in (*outputs[:LOOKED_AT], *outputs[last:])
    )


def _share_objects(owners: Iterable[list[Any]]) -> bool:
    """Return whether any two outputs hold the same object."""
    seen: dict[int, Any] = {}  # which keeps them alive, so that no other object gets their id
    for objects in owners:
        known = {id(obj): obj for obj in objects}
        if not seen.keys().isdisjoint(known):
            return True
        seen |= known
    return False


def _parts(output: Any) -> list[Any]:
    parts = output if isinstance(output, tuple) else (output,)
    return [part for part in parts if not never_changes(part)]


def mutable_parts(output: Any) -> Iterator[Any]:
    """Yield all mutable parts of an output: itself, and the objects that it holds.

    Of arrays, those that own the memory.
    """
    left, seen = [output], dict[int, Any]()
    while left and len(seen) < MAX_OBJECTS:
        obj = left.pop()
        if id(obj) in seen or never_changes(obj):
            continue
        seen[id(obj)] = obj
        left += _inside(obj)
        if not isinstance(obj, tuple):
            yield _owner(obj)


_PLAIN = {int, float, bool, str, bytes, complex, type(None), np.float64, np.int64, np.bool_}


def _inside(obj: Any) -> list[Any]:
    if isinstance(obj, np.ndarray):
        return obj.ravel().tolist()[:MAX_OBJECTS] if obj.dtype.kind == "O" else []
    if hasattr(obj, "iloc"):  # pandas
        columns = [obj.iloc[:, j] for j in range(obj.shape[1])] if obj.ndim > 1 else [obj]
        return [column.to_numpy() for column in columns]
    if isinstance(obj, Mapping):
        return list(obj.values())[:MAX_OBJECTS]
    if isinstance(obj, list | tuple | deque | AbstractSet):
        return list(obj)[:MAX_OBJECTS]
    return list((attributes(obj) or {}).values())


def _owner(obj: Any) -> Any:
    """The array, or whatever it is, that owns the memory of an array; anything else itself."""
    while isinstance(obj, np.ndarray) and obj.base is not None:
        obj = obj.base
    return obj


def never_changes(obj: Any) -> bool:
    """Return whether an object is immutable: it can be hashed, and so can all of its parts."""
    kind: Any = type(obj)
    if kind in _PLAIN:
        return True
    if isinstance(obj, tuple):
        return all(map(never_changes, obj))
    if kind.__hash__ is None:
        return False
    if not opens(kind):
        return True
    by_identity = kind.__hash__ is object.__hash__  # and its attributes may change
    return not by_identity and all(map(never_changes, (attributes(obj) or {}).values()))


Keys = npt.NDArray[np.float64]

MAX_EQUAL_SHARE = 1 / (1 + 2 * math.sqrt(2 / 3))
"""Of values that come k - 1, k, or k + 1 times, the share that come k times, at most."""


def keys(outputs: Any) -> Keys:
    """A number for every row, equal for equal rows."""
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
    """Values, and their distances from the middle, as numbers that can be compared."""
    apart = row_keys - row_keys.mean()
    spread = float(np.abs(apart).max()) or 1.0
    rounded = np.round(apart / spread, 9)
    return [rounded, np.abs(rounded)]


def _evenness(values: Keys) -> float:
    """A bound on the probability that as many values come k times, of those that nearly do.

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
