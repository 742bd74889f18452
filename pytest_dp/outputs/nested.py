"""Nested outputs taken apart many at once: what `Parts` finds, but level by level.

First all outputs are opened, then all that was in them, and so on until only leaves are left. Then
containers are numbered from the innermost outwards, so that those of the same types with leaves in
the same places have the same number, their *shape*. What cannot be read this way is left to
`Parts.take`.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import is_
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_dp.arrays import Outputs
from pytest_dp.outputs.containers import Aspect, in_order, is_plain, moments, named, order
from pytest_dp.outputs.contents import Read, attributes, opens
from pytest_dp.outputs.leaves import NEVER_OPENED, NO_CONTAINERS

MOST_LEVELS = 8
LEAF = 0
"""The shape of a leaf."""

_LIST, _TUPLE = 0, 1
"""The heads of lists and tuples."""
_SEQUENCES: dict[type, int] = {list: _LIST, tuple: _TUPLE}
_KEYS = {str, int, bytes, type(None)}
"""Types of keys of which equal ones are written alike."""

_Ints = npt.NDArray[np.int64]
_MOMENTS = {dt.datetime, dt.date, dt.time, dt.timedelta, np.datetime64, np.timedelta64}
_Opener = Callable[[Any], tuple[int, Sequence[Any]] | None]
"""What gives the head of a container (see `_Shapes`), and its elements; None for a leaf."""


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
    forms : list of tuple of Aspect
        For each shape: what else is observed of it and of what is in it, from the outside inwards.
    """

    leaves: Outputs
    types: set[type]
    offsets: _Ints
    shape: _Ints
    places: list[tuple[str, ...]]
    forms: list[tuple[Aspect, ...]]


@dataclass(frozen=True, slots=True)
class _Level:
    """Things at one depth: how many elements each has (a leaf: itself), which are containers.

    Containers have the heads in `heads`, or all of them the same `head`.
    """

    sizes: _Ints
    is_container: npt.NDArray[np.bool_]
    heads: _Ints | None = None
    head: int = _LIST


class _Shapes:
    """Shapes, by their number.

    A container has a *head*: of what type it is and how its elements are reached, by labels or, in
    sequences, by their number.
    """

    def __init__(self) -> None:
        self.places: list[tuple[str, ...]] = [("",)]
        self.forms: list[tuple[Aspect, ...]] = [()]
        self.ordered: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._heads: dict[Hashable, int] = {}
        self._labels: list[tuple[str, ...] | None] = []
        self._about: list[tuple[Aspect, ...]] = []
        self._numbers: dict[Hashable, int] = {}
        for kind in _SEQUENCES:
            self.head(kind, kind.__name__)

    def head(
        self,
        key: Hashable,
        kind: str,
        labels: Callable[[], Sequence[str]] | None = None,
        about: Callable[[], Sequence[Aspect]] = tuple,
    ) -> int:
        """The number of the head of this kind, with these labels, which `key` stands for."""
        number = self._heads.get(key)
        if number is None:
            number = self._heads[key] = len(self._labels)
            self._labels.append(None if labels is None else tuple(labels()))
            self._about.append((("", "type", kind), *about()))
        return number

    def number(self, level: _Level, inner: _Ints) -> _Ints:
        """The shapes of the things at one level, given those of their elements."""
        ends = np.cumsum(level.sizes)
        before = np.concatenate([[0], np.cumsum(inner != LEAF)])
        is_deep = before[ends] > before[ends - level.sizes]
        if level.heads is not None:
            labelled = np.array([labels is not None for labels in self._labels])
            is_deep |= labelled[level.heads] & level.is_container
        shapes = np.full(len(ends), LEAF)
        is_flat = level.is_container & ~is_deep
        if level.heads is None:
            self._number_flat(shapes, is_flat, level.head, level.sizes)
        else:
            for head in np.unique(level.heads[is_flat]).tolist():
                self._number_flat(shapes, is_flat & (level.heads == head), head, level.sizes)
        rows = np.flatnonzero(is_deep)
        if rows.size:
            packed, width = inner.tobytes(), inner.itemsize
            stops = ends[rows] * width
            starts = stops - level.sizes[rows] * width
            keys: list[Any] = [
                packed[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)
            ]
            of = {}
            if level.heads is None:
                for key in dict.fromkeys(keys):
                    of[key] = self._number(level.head, key)
            else:
                keys = list(zip(level.heads[rows].tolist(), keys, strict=True))
                for key in dict.fromkeys(keys):
                    of[key] = self._number(*key)
            shapes[rows] = np.fromiter(map(of.__getitem__, keys), np.int64, len(keys))
        return shapes

    def _number_flat(
        self, shapes: _Ints, which: npt.NDArray[np.bool_], head: int, sizes: _Ints
    ) -> None:
        """Number sequences of nothing but leaves, by their lengths."""
        lengths = sizes[which]
        if not lengths.size:
            return
        of_length = np.zeros(int(lengths.max()) + 1, np.int64)
        for length in np.flatnonzero(np.bincount(lengths)).tolist():
            of_length[length] = self._number(head, length)
        shapes[which] = of_length[lengths]

    def _number(self, head: int, elements: int | bytes) -> int:
        """The shape of a container with elements of these shapes, or with so many leaves."""
        key = head, elements
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.places)
            inner: list[int] = (
                [LEAF] * elements
                if isinstance(elements, int)
                else np.frombuffer(elements, np.int64).tolist()
            )
            labels = self._labels[head] or [f"[{i}]" for i in range(len(inner))]
            pairs = list(zip(labels, inner, strict=True))
            self.places.append(
                tuple(label + place for label, one in pairs for place in self.places[one])
            )
            form = [
                (label + place, what, value)
                for label, one in pairs
                for place, what, value in self.forms[one]
            ]
            self.forms.append((*self._about[head], *form))
        return number


class _OddError(Exception):
    """Something that only `Parts.take` can read."""


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
    return Flattened(things, types, offsets, shape, shapes.places, shapes.forms)


def _open(
    things: Sequence[Any], types: set[type], depth: int, shapes: _Shapes
) -> tuple[_Level, Sequence[Sequence[Any]]] | None:
    """The elements of each thing, or the thing itself if it is a leaf; None if all are.

    An inner container without elements is a leaf.
    """
    openers = {kind: _opener(kind, shapes) for kind in types - _SEQUENCES.keys()}
    heads, head = None, _SEQUENCES[tuple] if list not in types else _SEQUENCES[list]
    insides: Sequence[Sequence[Any]]
    if any(openers.values()):
        heads, insides = _open_one_by_one(things, openers, depth)
    else:
        if openers:
            insides = [
                thing if type(thing) in _SEQUENCES and (thing or not depth) else (thing,)
                for thing in things
            ]
        elif depth and not all(things):
            insides = [thing or (thing,) for thing in things]
        else:
            insides = things
        if types >= _SEQUENCES.keys():
            heads = np.fromiter((_TUPLE if type(t) is tuple else _LIST for t in things), np.int64)
    sizes = np.fromiter(map(len, insides), np.int64, len(insides))
    if any(openers.values()):
        is_container = np.asarray(heads) >= 0
    elif insides is things:
        is_container = np.ones(len(things), bool)
    else:
        is_container = np.fromiter(map(is_, insides, things), bool, len(things))
    if not is_container.any():
        return None
    return _Level(sizes, is_container, heads, head), insides


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
                head, inside = _SEQUENCES[kind], thing
        elif (opener := openers[kind]) is not None:
            opened = opener(thing)
            if opened is not None and (opened[1] or not depth):
                head, inside = opened
        heads.append(head)
        insides.append(inside)
    return np.array(heads, dtype=np.int64), insides


def _opener(kind: Any, shapes: _Shapes) -> _Opener | None:
    """How things of this type are opened; None if they are leaves. As in `Parts`.

    Raises
    ------
    _OddError
        If that depends on more than the type, or is not worth while.
    """
    if kind in NO_CONTAINERS or issubclass(kind, NEVER_OPENED) > issubclass(kind, np.timedelta64):
        return None
    if kind in _OPENED_ALIKE:
        return partial(_OPENED_ALIKE[kind], shapes=shapes)
    if kind in (complex, np.complex128, np.complex64):
        return _attributes(kind, ("real", "imag"), shapes)
    bases = [base for base in kind.__mro__[:-1] if base is not tuple]
    if any("__getattribute__" in vars(base) or "__class__" in vars(base) for base in bases):
        raise _OddError
    if dataclasses.is_dataclass(kind):
        if hasattr(kind, "__len__"):
            raise _OddError
        names = tuple(field.name for field in dataclasses.fields(kind))
        return _attributes(kind, names, shapes)  # type: ignore[arg-type]
    if issubclass(kind, tuple):
        return _named(kind, shapes)
    if issubclass(kind, Iterable | dt.date | dt.time | dt.timedelta) or hasattr(kind, "__array__"):
        raise _OddError
    return partial(_open_object, shapes=shapes) if opens(kind) else None


def _attributes(kind: type, names: tuple[str, ...], shapes: _Shapes) -> _Opener:
    head = shapes.head((kind, names), named(kind), lambda: [f".{name}" for name in names])
    return lambda thing: (head, [getattr(thing, name) for name in names])


def _open_object(thing: Any, shapes: _Shapes) -> tuple[int, Sequence[Any]] | None:
    inside = attributes(thing)
    if inside is None:
        return None
    names = tuple(inside)
    kind = type(thing)
    head = shapes.head((kind, names), kind.__name__, lambda: [f".{name}" for name in names])
    return head, list(inside.values())


def _open_moment(thing: Any, shapes: _Shapes) -> tuple[int, Sequence[Any]]:
    found = moments(thing)
    if found is None:
        raise _OddError
    names = tuple(name for name, _ in found)
    kind = type(thing)
    return shapes.head((kind, names), kind.__name__, lambda: names), [value for _, value in found]


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
    head = shapes.head((kind, names), kind.__name__, lambda: [f".{name}" for name in names])

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
    head = shapes.head(
        (dict, keys), "dict", lambda: [f"[{key!r}]" for key in ordered], lambda: order("", keys)
    )
    return head, [thing[key] for key in ordered]


def _open_array(thing: npt.NDArray[Any], shapes: _Shapes) -> tuple[int, Sequence[Any]]:
    shape, dtype = thing.shape, thing.dtype
    if not shape or not is_plain(dtype):
        raise _OddError

    def about() -> list[Aspect]:
        return [("", "dtype", str(dtype))]

    if len(shape) == 1:
        return shapes.head((np.ndarray, dtype), "ndarray", None, about), thing.tolist()
    head = shapes.head(
        (np.ndarray, shape, dtype),
        "ndarray",
        lambda: [f"[{', '.join(map(str, index))}]" for index in np.ndindex(shape)],
        about,
    )
    return head, thing.ravel().tolist()


def _open_read(thing: Read, shapes: _Shapes) -> tuple[int, Sequence[Any]]:
    return shapes.head((Read, thing.kind), thing.kind), thing


_OPENED_ALIKE: dict[Any, Callable[..., tuple[int, Sequence[Any]]]] = {
    dict: _open_dict,
    np.ndarray: _open_array,
    Read: _open_read,
    **dict.fromkeys(_MOMENTS, _open_moment),
}
"""How things of a type are opened, whatever they hold."""
