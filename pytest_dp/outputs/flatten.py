"""Outputs taken apart, until only leaves are left.

Containers are numbered from the innermost outwards, so that those of the same types with leaves in
the same places have the same number, their *shape*. Outputs with leaves in the same places share a
*structure*, which knows how a person would write each place down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, chain
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Ints
from pytest_dp.data.describing import MAX_LEVELS
from pytest_dp.outputs.containers import (
    ALL_ELEMENTS,
    PLAIN_HEADS,
    Aspect,
    Head,
    indices,
    open_container,
)
from pytest_dp.outputs.leaves import NO_CONTAINERS, Named


@dataclass(frozen=True)
class Structure:
    """A structure of outputs: their type and length, and the places of their leaves."""

    kind: str
    """Type of the output: ``"list"``, ``"ndarray"``, ``"scalar"`` for a bare leaf, ..."""
    places: tuple[str, ...]
    """One Python expression for each leaf."""
    length: int | None = None
    """``len(output)``; None for outputs without a length."""
    is_flat: bool = False
    """Whether the leaves are exactly ``output[0], output[1], ...``."""

    @cached_property
    def position(self) -> dict[str, int]:
        """The index of the leaf at each place, by place."""
        return {place: i for i, place in enumerate(self.places)}


SCALAR = Structure("scalar", ("output",))
EXTRACT = Structure("extract", ())
"""The structure of an extract, whose outputs are gone; see `paired_outputs.Extract`."""


@lru_cache(maxsize=16)
def structure_of_shape(shape: tuple[int, ...]) -> Structure:
    """Return the structure of arrays of a shape with at least one axis."""
    labels = indices(shape)
    if labels is None:
        return structure_of_length("ndarray", shape[0])
    return structure_of("ndarray", tuple(f"output{label}" for label in labels), shape[0])


@lru_cache(maxsize=64)
def structure_of_length(kind: str, length: int) -> Structure:
    """Return the structure of containers of a type that hold `length` leaves and nothing else."""
    return Structure(kind, tuple(f"output[{i}]" for i in range(length)), length, True)


def structure_of(kind: str, places: tuple[str, ...], length: int | None) -> Structure:
    """Return the structure of outputs of a type and length, with leaves at these places."""
    is_flat = length == len(places) and places == structure_of_length(kind, length).places
    return Structure(kind, places, length, is_flat)


_LEAF = -1
"""The shape of a leaf."""


class _Numbering(dict[Any, int]):
    """A dictionary that numbers its keys from 0, in the order in which they are looked up."""

    def __missing__(self, key: Any) -> int:
        number = self[key] = len(self)
        return number


class _Walk:
    """A list of the leaves of outputs, and the numbers of the shapes of the containers in them."""

    def __init__(self) -> None:
        self.leaves: list[Any] = []
        self.known = _Numbering()
        """Shapes by the head of a container and the shapes of its elements, or how many there are
        if all are leaves."""

    def append_leaves(self, node: Any, above: tuple[int, ...] = ()) -> int:
        """Append the leaves of an object, and return the number of its shape; `_LEAF` for a leaf.

        `above` are the addresses of the containers that hold the object. A container inside itself,
        an inner one without elements, and one below `MAX_LEVELS` levels count as leaves.
        """
        if type(node) not in NO_CONTAINERS and len(above) <= MAX_LEVELS:
            if id(node) in above:  # it holds itself
                node = ...
            container = open_container(node)
            if container is not None and (len(container[1]) or not above):
                return self._append_elements(*container, (*above, id(node)))
        self.leaves.append(node)
        return _LEAF

    def _append_elements(self, head: Head, inside: Sequence[Any], above: tuple[int, ...]) -> int:
        """Append the leaves of an opened container, and return the number of its shape."""
        if NO_CONTAINERS.issuperset(map(type, inside)):
            self.leaves += inside
            return self.known[head, len(inside)]
        shapes = tuple([self.append_leaves(node, above) for node in inside])
        return self.known[head, shapes if max(shapes) > _LEAF else len(shapes)]


def flatten(
    outputs: Sequence[Any], types: set[type]
) -> tuple[Sequence[Any], set[type], Ints, list[Structure], Ints, Named]:
    """Return the leaves of outputs, output after output, and where each output's leaves start.

    `types` is the set of the outputs' types. Returns the leaves, the set of their types, their
    offsets, the structures, each output's structure by index, and the forms, as in `Table`. Objects
    that cannot be opened are leaves, and so are inner containers without elements.
    """
    if types <= NO_CONTAINERS:
        leaves = [_LEAF] * len(outputs)
        return outputs, types, np.arange(len(outputs) + 1), *_structures(leaves, [])
    walk, shapes, ends = _Walk(), list[int](), list[int]()
    flat = list(chain.from_iterable(outputs)) if types in ({list}, {tuple}) else [None, []]
    if NO_CONTAINERS.issuperset(map(type, flat)):  # by far the commonest, and quicker at once
        walk.leaves, sizes = flat, list(map(len, outputs))
        head = PLAIN_HEADS[next(iter(types))]
        shapes, ends = [walk.known[head, size] for size in sizes], list(accumulate(sizes))
    else:
        for output in outputs:
            shapes.append(walk.append_leaves(output))
            ends.append(len(walk.leaves))
    offsets = np.array([0, *ends], np.int64)
    return walk.leaves, set(map(type, walk.leaves)), offsets, *_structures(shapes, list(walk.known))


def _structures(
    shapes: list[int], known: list[tuple[Head, int | tuple[int, ...]]]
) -> tuple[list[Structure], Ints, Named]:
    """Return the different structures of these shapes, each output's index in them, and forms."""
    structures, forms = _Numbering(), _Numbering()
    numbers = np.zeros((2, len(known) + 1), np.int64)  # the last are those of leaves
    for shape in dict.fromkeys(shapes):
        structure, form = _describe_shape(shape, known)
        numbers[:, shape] = structures[structure], forms[form]
    at = np.array(shapes, np.int64)
    return list(structures), numbers[0][at], Named(tuple(forms), numbers[1][at])


def _describe_shape(
    shape: int, known: list[tuple[Head, int | tuple[int, ...]]]
) -> tuple[Structure, tuple[Aspect, ...]]:
    """Return the structure and the form of outputs of a shape, one of those in `known`."""
    places, form = _places_and_form(shape, "output", known)
    if places == ["output"]:
        return SCALAR, tuple(form[1:])
    head, elements = known[shape]
    size = elements if isinstance(elements, int) else len(elements)
    length = size if head.length == ALL_ELEMENTS else head.length
    structure = structure_of(head.kind, tuple(places), length)
    return structure, tuple(form[1:])  # without the type of the output itself


def _places_and_form(
    shape: int, place: str, known: list[tuple[Head, int | tuple[int, ...]]]
) -> tuple[list[str], list[Aspect]]:
    """Return the places of the leaves of an object of a shape at a place, and its form."""
    if shape == _LEAF:
        return [place], []
    head, elements = known[shape]
    places: list[str] = []
    form = [(place + at, what, value) for at, what, value in head.form]
    for i, inner in enumerate((_LEAF,) * elements if isinstance(elements, int) else elements):
        label = f"[{i}]" if head.labels is None else head.labels[i]
        reached = label.replace("\0", place) if "\0" in label else place + label
        more, inside = _places_and_form(inner, reached, known)
        places += more
        form += inside
    return places, form
