"""What outputs are made of: how a container is taken apart, and what tells two categories apart."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Hashable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from pytest_dp.sampling.calling import Raised, shown

LITERAL = {bool, str, bytes, type(None), Raised}
"""Types whose objects are categories of their own, told apart by ``==``."""
NO_CONTAINERS = frozenset(
    {*LITERAL, int, float, Decimal, Fraction}
    | {np.bool_, np.float64, np.float32, np.int64, np.int32}
)
"""The commonest types that are never taken apart."""
MOST_DEPTH = 20


def category(leaf: Any) -> tuple[str, Hashable]:
    """What tells two categories apart: the type, and the value or, of most objects, its repr."""
    if isinstance(leaf, np.bool_ | np.str_ | np.bytes_):
        leaf = leaf.item()
    if type(leaf) in LITERAL:
        return type(leaf).__name__, leaf
    try:
        address = " at 0x" in repr(leaf)
    except Exception:  # a repr that fails says as little as an address
        address = True
    return type(leaf).__name__, "" if address else shown(leaf)


def written(category: tuple[str, Hashable]) -> str:
    """A category as Python would write it; the name of its type where it has no value."""
    kind, value = category
    if kind == "str" or not isinstance(value, str):
        return repr(value)
    return value or kind


def unread(categories: Iterable[tuple[str, Hashable]]) -> list[str]:
    """The types of which objects are all alike here, since nothing shows what they hold."""
    return sorted({kind for kind, value in categories if value == "" and kind != "str"})


def take_apart(thing: Any, place: str, places: list[str], leaves: list[Any], depth: int) -> None:
    """Append the leaves of `thing`, and how each is reached; what resists is a leaf itself."""
    if type(thing) in NO_CONTAINERS:
        places.append(place)
        leaves.append(thing)
        return
    before = len(places), len(leaves)
    try:
        taken = depth <= MOST_DEPTH and _take_container(thing, place, places, leaves, depth)
        if taken and (depth == 0 or len(leaves) > before[1]):
            return  # an inner container without leaves is one itself
    except Exception:  # a container that breaks its promises
        del places[before[0] :], leaves[before[1] :]
    places.append(place)
    leaves.append(thing)


def _take_container(
    thing: Any, place: str, places: list[str], leaves: list[Any], depth: int
) -> bool:
    def inner(value: Any, where: str) -> None:
        take_apart(value, where, places, leaves, depth + 1)

    pandas = sys.modules.get("pandas")
    if isinstance(thing, str | bytes | Raised | type):
        return False
    if isinstance(thing, complex | np.complexfloating):
        inner(thing.real, f"{place}.real")
        inner(thing.imag, f"{place}.imag")
    elif isinstance(thing, np.ndarray) and thing.ndim:
        for index in np.ndindex(thing.shape):
            inner(thing[index], f"{place}[{', '.join(map(str, index))}]")
    elif isinstance(thing, np.ndarray):
        inner(thing.item(), place)
    elif pandas is not None and isinstance(thing, pandas.DataFrame):
        for column in thing.columns:
            for i, value in enumerate(thing[column].tolist()):
                inner(value, f"{place}[{column!r}].iloc[{i}]")
    elif pandas is not None and isinstance(thing, pandas.Series | pandas.Index):
        for i, value in enumerate(thing.tolist()):
            inner(value, f"{place}.iloc[{i}]" if hasattr(thing, "iloc") else f"{place}[{i}]")
    elif isinstance(thing, Mapping):
        for key in in_order(thing):
            inner(thing[key], f"{place}[{key!r}]")
    elif dataclasses.is_dataclass(thing):
        for field in dataclasses.fields(thing):
            inner(getattr(thing, field.name), f"{place}.{field.name}")
    elif isinstance(thing, list | tuple):
        names = getattr(thing, "_fields", None)
        for i, value in enumerate(thing):
            inner(value, f"{place}.{names[i]}" if names else f"{place}[{i}]")
    elif isinstance(thing, set | frozenset):
        for i, value in enumerate(in_order(thing)):
            inner(value, f"sorted({place})[{i}]")
    else:
        return False
    return True


def in_order(things: Any) -> list[Any]:
    """Dictionary keys and set elements in an order that does not depend on hashing."""
    if not any(isinstance(thing, set | frozenset) for thing in things):  # < means "is a subset"
        try:
            return sorted(things)
        except TypeError:
            pass
    return sorted(things, key=lambda thing: (type(thing).__name__, shown(thing)))
