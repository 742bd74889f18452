"""Outputs that a later run changes: the same array or list again, filled anew.

Such outputs have to be copied as they come, or all of them show what the last run gave.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from pytest_dp.limits import SEVERAL, THOUSAND
from pytest_dp.outputs.attributes import attributes, opens


def is_reused(outputs: Sequence[Any]) -> bool:
    """Whether a mechanism returned one object several times, each time with other contents.

    Or that may be so: an object that all outputs hold is taken for one that changes.
    """
    if never_changes(outputs[0]) and never_changes(outputs[-1]):
        return False
    if _share_objects([_owner(part) for part in _parts(output)] for output in outputs):
        return True
    last = max(SEVERAL, len(outputs) - 2)
    return _share_objects(list(held(out)) for out in (*outputs[:SEVERAL], *outputs[last:]))


def _share_objects(owners: Iterable[list[Any]]) -> bool:
    """Whether any two outputs hold the same object."""
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


def held(output: Any) -> Iterator[Any]:
    """All that may change in an output: itself, and what it holds, however deep.

    Of arrays, those that own the memory.
    """
    left, seen = [output], dict[int, Any]()
    while left and len(seen) < THOUSAND:
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
        return obj.ravel().tolist()[:THOUSAND] if obj.dtype.kind == "O" else []
    if hasattr(obj, "iloc"):  # pandas
        columns = [obj.iloc[:, j] for j in range(obj.shape[1])] if obj.ndim > 1 else [obj]
        return [column.to_numpy() for column in columns]
    if isinstance(obj, Mapping):
        return list(obj.values())[:THOUSAND]
    if isinstance(obj, list | tuple | deque | AbstractSet):
        return list(obj)[:THOUSAND]
    return list((attributes(obj) or {}).values())


def _owner(obj: Any) -> Any:
    """The array, or whatever it is, that owns the memory of an array; anything else itself."""
    while isinstance(obj, np.ndarray) and obj.base is not None:
        obj = obj.base
    return obj


def never_changes(obj: Any) -> bool:
    """Whether nothing in an object can change: it can be hashed, and so can all that it holds."""
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
