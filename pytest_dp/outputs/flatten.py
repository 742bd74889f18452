"""Outputs taken apart, all of them at once: level by level, until only leaves are left.

First all outputs are opened, then all that was in them, and so on. Then containers are numbered
from the innermost outwards, so that those of the same types with leaves in the same places have the
same number, their *shape*. So the time it takes hardly depends on how many outputs there are.
Outputs with leaves in the same places share a *structure*, which knows how a person would write
each place down.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from pytest_dp.arrays import Ints
from pytest_dp.limits import DEEP
from pytest_dp.outputs.containers import (
    ALL_ELEMENTS,
    Aspect,
    Head,
    in_order,
    indices,
    opened,
    order,
)
from pytest_dp.outputs.leaves import NO_CONTAINERS, Named, named


@dataclass(frozen=True)
class Structure:
    """Where an output has its leaves."""

    kind: str
    """Type of the output: ``"list"``, ``"ndarray"``, ``"scalar"`` for a bare leaf, ..."""
    places: tuple[str, ...]
    """One Python expression for each leaf."""
    length: int | None = None
    """``len(output)``, where it has one."""
    is_flat: bool = False
    """Whether the leaves are exactly ``output[0], output[1], ...``."""

    @cached_property
    def position(self) -> dict[str, int]:
        """Which of the leaves stands at each place."""
        return {place: i for i, place in enumerate(self.places)}


SCALAR = Structure("scalar", ("output",))
EXTRACT = Structure("extract", ())
"""Of outputs that are gone, but for some quantities; see `feature.Extract`."""


@lru_cache(maxsize=16)
def of_shape(shape: tuple[int, ...]) -> Structure:
    """The structure of arrays."""
    labels = indices(shape)
    if labels is None:
        return of_length("ndarray", shape[0])
    return structure_of("ndarray", tuple(f"output{label}" for label in labels), shape[0])


@lru_cache(maxsize=64)
def of_length(kind: str, length: int) -> Structure:
    """The structure of lists, and of the like, without containers in them."""
    return Structure(kind, tuple(f"output[{i}]" for i in range(length)), length, True)


def structure_of(kind: str, places: tuple[str, ...], length: int | None) -> Structure:
    """The structure of outputs of this type that have leaves at these places."""
    is_flat = length == len(places) and places == of_length(kind, length).places
    return Structure(kind, places, length, is_flat)


_LEAF = -1
"""The head of a leaf, and its shape."""
_KEYS = {str, int, bytes, type(None)}
"""Types of keys of which equal ones are written alike."""


class _Numbering(dict[Any, int]):
    """Numbers keys from 0 on, in the order in which they are looked up for the first time."""

    def __missing__(self, key: Any) -> int:
        number = self[key] = len(self)
        return number


_Group = tuple[int | Ints, Sequence[Sequence[Any]]]
"""The numbers of the heads of some containers, or of the one head of all, and their elements."""
_Opener = Callable[[Sequence[Any], _Numbering], _Group]


def flatten(
    outputs: Sequence[Any], types: set[type]
) -> tuple[Sequence[Any], set[type], Ints, list[Structure], Ints, Named]:
    """Take outputs of these types apart; any Python objects will do.

    What resists is a leaf itself, and so is an inner container without elements. The leaves come
    output after output, with the set of their types, and what describes them in a `Table`.
    """
    heads = _Numbering()
    levels: list[tuple[Ints, Ints]] = []
    offsets = np.arange(len(outputs) + 1)
    nodes = outputs
    opened: list[Sequence[Any]] = []  # kept, so that addresses stay theirs
    above: list[Ints] = []
    while not types <= NO_CONTAINERS and len(levels) < DEEP + 1:
        if levels:
            above = _addresses_above(opened[-1], *levels[-1], above)
            nodes, types = _without_loops(nodes, types, above)
        head, insides = _open(nodes, types, heads)
        sizes = np.fromiter(map(len, insides), np.int64, len(insides))
        if levels and not sizes.all():
            insides = list(insides)
            for i in np.flatnonzero(sizes == 0).tolist():
                head[i], sizes[i], insides[i] = _LEAF, 1, (nodes[i],)
        if not (head != _LEAF).any():
            break
        levels.append((head, sizes))
        opened.append(nodes)
        offsets = np.concatenate([[0], np.cumsum(sizes)])[offsets]
        nodes = list(chain.from_iterable(insides))
        types = set(map(type, nodes))
    shape, known = np.full(len(outputs), _LEAF), _Numbering()
    for level, (head, sizes) in enumerate(reversed(levels)):
        shape = _shapes(head, sizes, shape if level else None, known)
    named_heads = list(heads)
    shapes = [(named_heads[head], elements) for head, elements in known]
    return nodes, types, offsets, *_structures(shape, shapes)


def _addresses_above(
    nodes: Sequence[Any], head: Ints, sizes: Ints, above: list[Ints]
) -> list[Ints]:
    """For each element of the nodes, the addresses of all containers that it is in."""
    addresses = np.where(head == _LEAF, 0, _addresses(nodes))
    return [np.repeat(level, sizes) for level in (*above, addresses)]


def _addresses(nodes: Sequence[Any]) -> Ints:
    return np.fromiter(map(id, nodes), np.int64, len(nodes))


def _without_loops(
    nodes: Sequence[Any], types: set[type], above: list[Ints]
) -> tuple[Sequence[Any], set[type]]:
    """The nodes and their types, with ``...`` for those that hold themselves."""
    addresses = _addresses(nodes)
    loops = np.flatnonzero(np.any([addresses == level for level in above], axis=0))
    if not loops.size:
        return nodes, types
    nodes = list(nodes)
    for i in loops.tolist():
        nodes[i] = ...
    return nodes, types | {type(...)}


def _open(
    nodes: Sequence[Any], types: set[type], heads: _Numbering
) -> tuple[Ints, Sequence[Sequence[Any]]]:
    """The head of each node, and its elements; the only element of a leaf is the leaf itself."""
    if len(types) == 1:
        head, alike = _open_alike(next(iter(types)), nodes, heads)
        return np.full(len(nodes), head), alike
    head = np.full(len(nodes), _LEAF)
    insides: list[Sequence[Any]] = [(node,) for node in nodes]
    rows: dict[type, list[int]] = {kind: [] for kind in types - NO_CONTAINERS}
    for i, kind in enumerate(map(type, nodes)):
        if kind in rows:
            rows[kind].append(i)
    for kind, rows_of_kind in rows.items():
        head[rows_of_kind], alike = _open_alike(kind, [nodes[i] for i in rows_of_kind], heads)
        for i, elements in zip(rows_of_kind, alike, strict=True):
            insides[i] = elements
    return head, insides


def _open_alike(kind: type, nodes: Sequence[Any], heads: _Numbering) -> _Group:
    """The same for nodes of one type."""
    opener = _opener(kind)
    if opener is not None:
        try:
            return opener(nodes, heads)
        except Exception:  # a node does not behave as its type should: open them one by one
            pass
    head = np.full(len(nodes), _LEAF)
    insides: list[Sequence[Any]] = []
    for i, node in enumerate(nodes):
        container = opened(node)
        if container is None:
            insides.append((node,))
        else:
            head[i] = heads[container[0]]
            insides.append(container[1])
    return head, insides


def _inherits(kind: type, base: type, methods: tuple[str, ...]) -> bool:
    """Whether a subclass has these methods of its base as they are."""
    return all(getattr(kind, method) is getattr(base, method) for method in methods)


@lru_cache(maxsize=512)
def _opener(kind: Any) -> _Opener | None:
    """What opens many nodes of a type together, with the same result as `opened` for each.

    None if that depends on more than the type, or the type is too rare to be worth it.
    """
    if kind in (list, tuple):
        return _open_sequences
    if kind in (complex, np.complex128, np.complex64):
        return _attributes(kind, ("real", "imag"), None)
    bases = set(kind.__mro__) - {object, tuple, dict}
    if any("__getattribute__" in vars(base) or "__class__" in vars(base) for base in bases):
        return None  # it may say that it is something else
    if issubclass(kind, dict):
        inherited = _inherits(kind, dict, ("__iter__", "__getitem__", "__len__"))
        return _open_dicts if inherited else None
    if dataclasses.is_dataclass(kind) and not hasattr(kind, "__len__"):
        names = tuple(field.name for field in dataclasses.fields(kind))
        return _attributes(kind, names, None) if names else None
    names = getattr(kind, "_fields", ())
    if issubclass(kind, tuple) and type(names) is tuple and names:
        inherited = _inherits(kind, tuple, ("__iter__", "__len__"))
        return _attributes(kind, names, len(names)) if inherited else None
    return None


def _attributes(kind: Any, names: tuple[str, ...], length: int | None) -> _Opener:
    labels = tuple(f".{name}" for name in names)
    head = Head(named(kind), labels, (("", "type", named(kind)),), length)
    get: Any = attrgetter(*names) if len(names) > 1 else lambda node: (getattr(node, names[0]),)

    def opener(nodes: Sequence[Any], heads: _Numbering) -> _Group:
        if length is None:
            return heads[head], list(map(get, nodes))
        if set(map(len, nodes)) != {length}:
            raise ValueError("elements without a name")
        return heads[head], nodes

    return opener


def _open_sequences(nodes: Sequence[Any], heads: _Numbering) -> _Group:
    kind = type(nodes[0]).__name__
    return heads[Head(kind, None, (("", "type", kind),), ALL_ELEMENTS)], nodes


def _open_dicts(nodes: Sequence[Any], heads: _Numbering) -> _Group:
    orders = list(map(tuple, nodes))
    if not set(map(type, chain.from_iterable(orders))) <= _KEYS:
        raise ValueError("keys that may be written in several ways")
    kind = named(type(nodes[0]))
    head, get = {}, {}
    for keys in dict.fromkeys(orders):
        ordered = in_order(keys)
        labels = tuple(f"[{key!r}]" for key in ordered)
        form = ("", "type", kind), *order(keys)
        head[keys] = heads[Head(kind, labels, form, len(keys))]
        get[keys] = itemgetter(*ordered) if len(keys) > 1 else partial(_items, keys)
    if len(head) == 1:  # by far the commonest
        return head[orders[0]], list(map(get[orders[0]], nodes))
    insides = [get[keys](node) for keys, node in zip(orders, nodes, strict=True)]
    return np.fromiter(map(head.__getitem__, orders), np.int64, len(orders)), insides


def _items(keys: Sequence[Any], node: Any) -> Sequence[Any]:
    return [node[key] for key in keys]


def _shapes(head: Ints, sizes: Ints, inner: Ints | None, known: _Numbering) -> Ints:
    """The shapes of the nodes at one level, from those of their elements; None if all are leaves.

    The shape of a container is determined by its head, and by the shapes of its elements, or how
    many there are if all are leaves.
    """
    is_container = head != _LEAF
    is_deep = np.zeros(len(head), bool)
    if inner is not None:
        ends = np.cumsum(sizes)
        before = np.concatenate([[0], np.cumsum(inner != _LEAF)])
        is_deep = before[ends] > before[ends - sizes]
    shapes = np.full(len(head), _LEAF)
    flat = np.flatnonzero(is_container & ~is_deep)
    if flat.size:
        radix = int(sizes[flat].max()) + 1
        values, which = _distinct(head[flat] * radix + sizes[flat])
        numbers = [known[divmod(value, radix)] for value in values.tolist()]
        shapes[flat] = np.array(numbers)[which]
    rows = np.flatnonzero(is_container & is_deep)
    if inner is not None and rows.size:
        packed, width = inner.tobytes(), inner.itemsize
        stops = ends[rows] * width
        starts = stops - sizes[rows] * width
        elements = [packed[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)]
        pairs = zip(head[rows].tolist(), elements, strict=True)
        shapes[rows] = np.fromiter(map(known.__getitem__, pairs), np.int64, len(rows))
    return shapes


def _distinct(numbers: Ints) -> tuple[Ints, Ints]:
    """Like ``np.unique(numbers, return_inverse=True)``, but faster for small numbers from 0 on."""
    if int(numbers.max()) > 4 * len(numbers):
        return np.unique(numbers, return_inverse=True)
    seen = np.bincount(numbers) > 0
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[numbers]


def _structures(
    shape: Ints, shapes: list[tuple[Head, int | bytes]]
) -> tuple[list[Structure], Ints, Named]:
    """Structures and forms, numbered as they appear, of outputs of these shapes."""
    structures, forms = _Numbering(), _Numbering()
    numbers = np.zeros((2, len(shapes) + 1), np.int64)  # the last are those of leaves
    first_output = np.full(len(shapes) + 1, -1)
    first_output[shape[::-1]] = np.arange(len(shape))[::-1]
    used = np.flatnonzero(first_output >= 0)
    for number in used[np.argsort(first_output[used])].tolist():
        structure, form = (SCALAR, ()) if number == len(shapes) else _described(number, shapes)
        numbers[:, number] = structures[structure], forms[form]
    return list(structures), numbers[0][shape], Named(tuple(forms), numbers[1][shape])


def _described(
    number: int, shapes: list[tuple[Head, int | bytes]]
) -> tuple[Structure, tuple[Aspect, ...]]:
    """Structure and form of an output of this shape."""
    head, elements = shapes[number]
    if (
        head.labels is None
        and isinstance(elements, int)
        and head.length in (ALL_ELEMENTS, elements)
    ):
        form = [(f"output{at}", what, value) for at, what, value in head.form]
        structure = of_length(head.kind, elements)
    else:
        places, form = _written(number, "output", shapes)
        length = len(_inner(elements)) if head.length == ALL_ELEMENTS else head.length
        is_leaf = places == ["output"]
        structure = SCALAR if is_leaf else structure_of(head.kind, tuple(places), length)
    return structure, tuple(form[1:])  # without the type of the output itself


def _written(
    number: int, place: str, shapes: list[tuple[Head, int | bytes]]
) -> tuple[list[str], list[Aspect]]:
    """The places of the leaves of what has this shape and stands at a place, and its form."""
    if number == _LEAF:
        return [place], []
    head, elements = shapes[number]
    places: list[str] = []
    form = [(place + at, what, value) for at, what, value in head.form]
    for i, inner in enumerate(_inner(elements)):
        label = f"[{i}]" if head.labels is None else head.labels[i]
        reached = label.replace("\0", place) if "\0" in label else place + label
        more, inside = _written(inner, reached, shapes)
        places += more
        form += inside
    return places, form


def _inner(elements: int | bytes) -> list[int]:
    """The shapes of the elements of a container, from a number of leaves or from packed shapes."""
    if isinstance(elements, int):
        return [_LEAF] * elements
    inner: list[int] = np.frombuffer(elements, np.int64).tolist()
    return inner
