"""Outputs that a later run changes: the same array or list again, filled anew.

Such outputs have to be copied as they come, or all that were kept show what the last run gave.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from pytest_dp.outputs.contents import attributes, opens

FIRST_OUTPUTS, LAST_OUTPUTS = 8, 2
"""Outputs that are looked at all the way down; of the others, only what they are themselves."""
MAX_THINGS = 1_000
"""Things in each output by which it is seen what two outputs share: more take too long."""


def is_reused(outputs: Sequence[Any]) -> bool:
    """Whether a mechanism returned one object several times, each time with other contents.

    Or that may be so: an object that all outputs hold is taken for one that changes.
    """
    if never_changes(outputs[0]) and never_changes(outputs[-1]):
        return False
    if _recur([_owner(part) for part in _parts(output)] for output in outputs):
        return True
    some = [*outputs[:FIRST_OUTPUTS], *outputs[max(FIRST_OUTPUTS, len(outputs) - LAST_OUTPUTS) :]]
    return _recur(list(held(output)) for output in some)


def _recur(owners: Iterable[list[Any]]) -> bool:
    """Whether any two outputs hold the same thing."""
    seen: dict[int, Any] = {}  # which keeps them, so that no other thing gets their place
    for some in owners:
        known = {id(thing): thing for thing in some}
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
    while left and len(seen) < MAX_THINGS:
        thing = left.pop()
        if id(thing) in seen or never_changes(thing):
            continue
        seen[id(thing)] = thing
        left += _inside(thing)
        if not isinstance(thing, tuple):
            yield _owner(thing)


_PLAIN = {int, float, bool, str, bytes, complex, type(None), np.float64, np.int64, np.bool_}


def _inside(thing: Any) -> list[Any]:
    if isinstance(thing, np.ndarray):
        return thing.ravel().tolist()[:MAX_THINGS] if thing.dtype.kind == "O" else []
    if hasattr(thing, "iloc"):  # of pandas
        columns = [thing.iloc[:, j] for j in range(thing.shape[1])] if thing.ndim > 1 else [thing]
        return [column.to_numpy() for column in columns]
    if isinstance(thing, Mapping):
        return list(thing.values())[:MAX_THINGS]
    if isinstance(thing, list | tuple | deque | AbstractSet):
        return list(thing)[:MAX_THINGS]
    return list((attributes(thing) or {}).values())


def _owner(thing: Any) -> Any:
    """The array, or whatever it is, that owns the memory of an array; anything else itself."""
    while isinstance(thing, np.ndarray) and thing.base is not None:
        thing = thing.base
    return thing


def never_changes(thing: Any) -> bool:
    """Whether nothing in an object can change: it can be hashed, and so can all that it holds."""
    kind: Any = type(thing)
    if kind in _PLAIN:
        return True
    if isinstance(thing, tuple):
        return all(map(never_changes, thing))
    if kind.__hash__ is None:
        return False
    if not opens(kind):
        return True
    by_identity = kind.__hash__ is object.__hash__  # and its attributes may change
    return not by_identity and all(map(never_changes, (attributes(thing) or {}).values()))
