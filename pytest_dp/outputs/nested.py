"""Nested outputs taken apart many at once: what `take_apart` finds, but level by level.

First all outputs are opened, then all that was in them, and so on until only leaves are left. Then
containers are numbered from the innermost outwards, so that those with leaves in the same places
have the same number, their *shape*. What cannot be read this way is left to `take_apart`.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import is_
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_dp.outputs.leaves import NO_CONTAINERS, in_order
from pytest_dp.sampling.calling import Outputs, Raised

MOST_LEVELS = 8
LEAF = 0
"""The shape of a leaf."""

_SEQUENCES = frozenset({list, tuple})
_KEYS = {str, int, bytes, type(None)}
"""Types of keys of which equal ones are written alike."""

_Ints = npt.NDArray[np.int64]
_Opener = Callable[[Any], tuple[int, Sequence[Any]]]
"""What gives the head of a container (see `_Shapes`), and its elements."""


@dataclass(frozen=True, slots=True)
class Flattened:
    """The leaves of many outputs.

    Attributes
    ----------
    leaves : sequence
        Output after output.
    types : set of type
        Of the leaves.
    offsets : ndarray of int, shape (n + 1,)
        Where the leaves of each output start.
    shape : ndarray of int, shape (n,)
        Of each output; `LEAF` if it is one itself.
    places : list of tuple of str
        For each shape: what to write behind an output to reach its leaves.
    """

    leaves: Outputs
    types: set[type]
    offsets: _Ints
    shape: _Ints
    places: list[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Level:
    """Things at one depth: how many elements each has (a leaf: itself), which are containers."""

    sizes: _Ints
    is_container: npt.NDArray[np.bool_]
    heads: _Ints | None = None


class _Shapes:
    """Shapes, by their number.

    A container has a *head*: how its elements are reached. That of lists and tuples is 0.
    """

    def __init__(self) -> None:
        self.places: list[tuple[str, ...]] = [("",)]
        self.labels: list[tuple[str, ...]] = [()]
        self.ordered: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._heads: dict[Hashable, int] = {}
        self._numbers: dict[Hashable, int] = {}

    def head(self, key: Hashable, labels: Callable[[], Sequence[str]]) -> int:
        """The number of the head with these labels, which `key` stands for."""
        number = self._heads.get(key)
        if number is None:
            number = self._heads[key] = len(self.labels)
            self.labels.append(tuple(labels()))
        return number

    def number(self, level: _Level, inner: _Ints) -> _Ints:
        """The shapes of the things at one level, given those of their elements."""
        ends = np.cumsum(level.sizes)
        before = np.concatenate([[0], np.cumsum(inner != LEAF)])
        is_deep = before[ends] > before[ends - level.sizes]
        if level.heads is not None:
            is_deep |= level.heads > 0
        shapes = np.full(len(ends), LEAF)
        is_flat = level.is_container & ~is_deep
        lengths = level.sizes[is_flat]
        if lengths.size:
            of_length = np.zeros(int(lengths.max()) + 1, np.int64)
            for length in np.flatnonzero(np.bincount(lengths)).tolist():
                of_length[length] = self._number(length, 0, [LEAF] * length)
            shapes[is_flat] = of_length[lengths]
        rows = np.flatnonzero(is_deep)
        if rows.size:
            packed, width = inner.tobytes(), inner.itemsize
            stops = ends[rows] * width
            starts = stops - level.sizes[rows] * width
            keys: list[Hashable] = [
                packed[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)
            ]
            if level.heads is not None:
                keys = list(zip(level.heads[rows].tolist(), keys, strict=True))
            for key in dict.fromkeys(keys):
                head, elements = key if isinstance(key, tuple) else (0, key)
                # As in a level without heads, where the key is the elements alone.
                same = key if head else elements
                number = self._number(same, head, np.frombuffer(elements, np.int64).tolist())
                self._numbers[key] = number
            shapes[rows] = np.fromiter(map(self._numbers.__getitem__, keys), np.int64, len(keys))
        return shapes

    def _number(self, key: Hashable, head: int, elements: list[int]) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.places)
            labels = self.labels[head] if head else [f"[{i}]" for i in range(len(elements))]
            self.places.append(
                tuple(
                    label + place
                    for label, element in zip(labels, elements, strict=True)
                    for place in self.places[element]
                )
            )
        return number


class _OddError(Exception):
    """Something that only `take_apart` can read."""


def flatten(outputs: Outputs) -> Flattened | None:
    """Take outputs apart; None if some of them is too deep, or of an unusual kind."""
    shapes = _Shapes()
    levels: list[_Level] = []
    things: Any = outputs
    offsets = np.arange(len(outputs) + 1)
    while True:
        types = set(map(type, things))
        try:
            opened = None if types <= NO_CONTAINERS else _open(things, types, len(levels), shapes)
        except Exception:  # `_OddError`, or a container that breaks its promises
            return None
        if opened is None:
            break
        if len(levels) == MOST_LEVELS:
            return None
        level, insides = opened
        levels.append(level)
        offsets = np.concatenate([[0], np.cumsum(level.sizes)])[offsets]
        things = list(chain.from_iterable(insides))
    shape = np.full(len(things), LEAF)
    for level in reversed(levels):
        shape = shapes.number(level, shape)
    return Flattened(things, types, offsets, shape, shapes.places)


def _open(
    things: Sequence[Any], types: set[type], depth: int, shapes: _Shapes
) -> tuple[_Level, Sequence[Sequence[Any]]] | None:
    """The elements of each thing, or the thing itself if it is a leaf; None if all are.

    An inner container without elements is a leaf.
    """
    openers = {kind: _opener(kind, shapes) for kind in types - _SEQUENCES}
    heads = None
    insides: Sequence[Sequence[Any]]
    if any(openers.values()):
        heads, insides = _open_one_by_one(things, openers, depth)
    elif openers:
        insides = [
            thing if type(thing) in _SEQUENCES and (thing or not depth) else (thing,)
            for thing in things
        ]
    elif depth and not all(things):
        insides = [thing or (thing,) for thing in things]
    else:
        insides = things
    sizes = np.fromiter(map(len, insides), np.int64, len(insides))
    if heads is not None:
        is_container = heads >= 0
    elif insides is things:
        is_container = np.ones(len(things), bool)
    else:
        is_container = np.fromiter(map(is_, insides, things), bool, len(things))
    if not is_container.any():
        return None
    return _Level(sizes, is_container, heads), insides


def _open_one_by_one(
    things: Sequence[Any], openers: dict[type, _Opener | None], depth: int
) -> tuple[_Ints, list[Sequence[Any]]]:
    """Heads (-1 for leaves) and elements of things of any kind."""
    heads: list[int] = []
    insides: list[Sequence[Any]] = []
    for thing in things:
        kind = type(thing)
        head = -1
        inside: Sequence[Any] = (thing,)
        if kind in _SEQUENCES:
            if thing or not depth:
                head, inside = 0, thing
        elif (opener := openers[kind]) is not None:
            found, elements = opener(thing)
            if elements or not depth:
                head, inside = found, elements
        heads.append(head)
        insides.append(inside)
    return np.array(heads, dtype=np.int64), insides


def _opener(kind: type, shapes: _Shapes) -> _Opener | None:
    """How things of this type are opened; None if they are leaves. As in `take_apart`.

    Raises
    ------
    _OddError
        If that depends on more than the type, or is not worth while.
    """
    if kind in NO_CONTAINERS or issubclass(kind, str | bytes | Raised | type):
        return None
    if kind is dict:
        return lambda thing: _open_dict(thing, shapes)
    if kind is np.ndarray:
        return lambda thing: _open_array(thing, shapes)
    if kind in (complex, np.complex128, np.complex64):
        return _attributes(kind, ("real", "imag"), shapes)
    pandas = sys.modules.get("pandas")
    if (
        kind.__getattribute__ is not object.__getattribute__
        or any("__class__" in vars(base) for base in kind.__mro__ if base is not object)
        or issubclass(kind, complex | np.complexfloating | np.ndarray | Mapping)
        or issubclass(kind, list | set | frozenset)
        or (
            pandas is not None and issubclass(kind, pandas.DataFrame | pandas.Series | pandas.Index)
        )
    ):
        raise _OddError
    if dataclasses.is_dataclass(kind):
        if hasattr(kind, "__len__"):
            raise _OddError
        return _attributes(kind, tuple(field.name for field in dataclasses.fields(kind)), shapes)
    if issubclass(kind, tuple):
        return _named(kind, shapes)
    return None


def _attributes(kind: type, names: tuple[str, ...], shapes: _Shapes) -> _Opener:
    head = shapes.head((kind, names), lambda: [f".{name}" for name in names])
    return lambda thing: (head, [getattr(thing, name) for name in names])


def _named(kind: Any, shapes: _Shapes) -> _Opener:
    names = getattr(kind, "_fields", None)
    if (
        type(names) is not tuple
        or not names
        or kind.__iter__ is not tuple.__iter__
        or kind.__len__ is not tuple.__len__
        or hasattr(kind, "__bool__")
    ):
        raise _OddError
    head = shapes.head((kind, names), lambda: [f".{name}" for name in names])

    def opened(thing: Any) -> tuple[int, Sequence[Any]]:
        if len(thing) != len(names):
            raise _OddError
        return head, thing

    return opened


def _open_dict(thing: dict[Any, Any], shapes: _Shapes) -> tuple[int, Sequence[Any]]:
    keys = tuple(thing)
    if not set(map(type, keys)) <= _KEYS:
        raise _OddError
    ordered = shapes.ordered.get(keys)
    if ordered is None:
        ordered = shapes.ordered[keys] = tuple(in_order(thing))
    head = shapes.head((dict, ordered), lambda: [f"[{key!r}]" for key in ordered])
    return head, [thing[key] for key in ordered]


def _open_array(thing: npt.NDArray[Any], shapes: _Shapes) -> tuple[int, Sequence[Any]]:
    shape, dtype = thing.shape, thing.dtype
    if not shape or dtype.kind not in "biufOUS" or (dtype.kind == "f" and dtype.itemsize > 8):
        raise _OddError
    if len(shape) == 1:
        return 0, thing.tolist()
    head = shapes.head(
        (np.ndarray, shape),
        lambda: [f"[{', '.join(map(str, index))}]" for index in np.ndindex(shape)],
    )
    return head, thing.ravel().tolist()
