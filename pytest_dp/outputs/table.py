"""Outputs of any kind as flat columns.

Every output is taken apart into *leaves*: numbers, and everything else (booleans, strings, None,
exceptions, ...), called categories. A scalar is one leaf; lists, tuples, arrays, dicts, dataclasses
and pandas objects have one leaf for each number or category in them. Outputs with leaves in the
same places share a *structure*, which knows how a person would write each place down
(``output[2]``, ``output['mean']``).
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_dp.sampling.calling import Outputs, Raised, shown

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NUMBER = -1
"""Category code of a leaf that is a number."""
ABSENT = -2
"""Category code where an output has no such leaf."""

_PLAIN_NUMBERS = (int, float, np.floating, np.integer, Decimal, Fraction)
_REAL = {int, float, np.float64, np.float32, np.int64, np.int32}
_LITERAL = {bool, str, bytes, type(None), Raised}
MOST_DEPTH = 20


@dataclass(frozen=True, slots=True)
class Structure:
    """Where an output has its leaves.

    Attributes
    ----------
    kind : str
        Type of the output: ``"list"``, ``"ndarray"``, ``"scalar"`` for a bare leaf, ...
    places : tuple of str
        One Python expression for each leaf.
    length : int or None
        ``len(output)``, where it has one.
    is_flat : bool
        Whether the leaves are exactly ``output[0], output[1], ...``.
    """

    kind: str
    places: tuple[str, ...]
    length: int | None = None
    is_flat: bool = False


SCALAR = Structure("scalar", ("output",))


def category(leaf: Any) -> tuple[str, Hashable]:
    """What tells two categories apart: the type, and the value or, of most objects, its repr."""
    if isinstance(leaf, np.bool_ | np.str_ | np.bytes_):
        leaf = leaf.item()
    if type(leaf) in _LITERAL:
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


@dataclass(frozen=True)
class Table:
    """The leaves of many outputs, output after output.

    Attributes
    ----------
    structures : list of Structure
    structure : ndarray of int, shape (n,)
        Which structure each output has.
    offsets : ndarray of int, shape (n + 1,)
        Where the leaves of each output start.
    numbers : ndarray of float, shape (leaves,)
        The leaves that are numbers; NaN elsewhere.
    codes : ndarray of int, shape (leaves,)
        `NUMBER`, or the position of the leaf's category in `levels`.
    levels : dict
        From category to its code.
    raw : sequence
        The outputs themselves.
    """

    structures: list[Structure]
    structure: Ints
    offsets: Ints
    numbers: Floats
    codes: Ints
    levels: dict[tuple[str, Hashable], int]
    raw: Outputs

    def __len__(self) -> int:
        return len(self.structure)

    @cached_property
    def sizes(self) -> Ints:
        """How many leaves each output has."""
        return np.diff(self.offsets)

    @cached_property
    def owner(self) -> Ints:
        """Which output each leaf belongs to."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @cached_property
    def place_index(self) -> dict[str, list[tuple[int, int]]]:
        """For each place: the structures that have it, and at which position."""
        index: dict[str, list[tuple[int, int]]] = {}
        for number, structure in enumerate(self.structures):
            for position, place in enumerate(structure.places):
                index.setdefault(place, []).append((number, position))
        return index

    def leaf(self, place: str) -> tuple[Floats, Ints]:
        """Numbers and codes of the leaves at one place, shape (n,) each."""
        where = self.place_index.get(place, [])
        if len(self.structures) == 1 and where:
            width, position = len(self.structures[0].places), where[0][1]
            return self.numbers[position::width], self.codes[position::width]
        numbers = np.full(len(self), np.nan)
        codes = np.full(len(self), ABSENT)
        positions = np.full(len(self.structures), -1)
        for number, position in where:
            positions[number] = position
        found = positions[self.structure]
        rows = np.flatnonzero(found >= 0)
        at = self.offsets[rows] + found[rows]
        numbers[rows], codes[rows] = self.numbers[at], self.codes[at]
        return numbers, codes

    def last(self) -> tuple[Floats, Ints]:
        """Numbers and codes of the last leaf of every flat output."""
        flat = np.array([s.is_flat and len(s.places) > 0 for s in self.structures], dtype=bool)
        rows = np.flatnonzero(flat[self.structure]) if len(self) else np.zeros(0, np.int64)
        numbers, codes = np.full(len(self), np.nan), np.full(len(self), ABSENT)
        at = self.offsets[rows + 1] - 1
        numbers[rows], codes[rows] = self.numbers[at], self.codes[at]
        return numbers, codes

    def rows(self, mask: Bools) -> Table:
        """The table of the outputs in `mask`."""
        keep = np.flatnonzero(mask)
        leaves = np.flatnonzero(mask[self.owner])
        offsets = np.concatenate([[0], np.cumsum(self.sizes[keep])])
        raw = self.raw[keep] if isinstance(self.raw, np.ndarray) else _Picked(self.raw, keep)
        numbers, codes = self.numbers[leaves], self.codes[leaves]
        kept = self.structure[keep]
        part = Table(self.structures, kept, offsets, numbers, codes, self.levels, raw)
        vars(part)["place_index"] = self.place_index  # of the same structures
        return part


class _Picked(Sequence[Any]):
    """Some elements of a sequence, without a copy."""

    def __init__(self, outputs: Outputs, keep: Ints) -> None:
        self.outputs, self.keep = outputs, keep

    def __len__(self) -> int:
        return len(self.keep)

    def __getitem__(self, index: Any) -> Any:
        return self.outputs[int(self.keep[index])]


def tabulate(outputs: Outputs) -> Table:
    """Take outputs apart; any Python objects will do."""
    if isinstance(outputs, np.ndarray):
        if outputs.dtype.kind in "biuf":
            return _of_array(outputs, "scalar" if outputs.ndim == 1 else "ndarray")
        outputs = list(outputs)
    types = set(map(type, outputs))
    if types and types <= _REAL:
        numbers = _floats(outputs)
        return _uniform(SCALAR, len(outputs), numbers, np.full(len(numbers), NUMBER), {}, outputs)
    if types == {np.ndarray}:
        shapes = {(output.shape, output.dtype.kind) for output in outputs}
        if len(shapes) == 1 and next(iter(shapes))[1] in "biuf":
            stack = np.stack(list(outputs))
            table = _of_array(stack, "scalar" if stack.ndim == 1 else "ndarray")
            return dataclasses.replace(table, raw=outputs)
    if len(types) == 1 and next(iter(types)) in (list, tuple):
        table_or_none = _of_sequences(outputs, next(iter(types)).__name__)
        if table_or_none is not None:
            return table_or_none
    if types == {dict}:
        table_or_none = _of_dicts(outputs)
        if table_or_none is not None:
            return table_or_none
    return _of_anything(outputs)


def _uniform(
    structure: Structure,
    n: int,
    numbers: Floats,
    codes: Ints,
    levels: dict[tuple[str, Hashable], int],
    raw: Outputs,
) -> Table:
    offsets = np.arange(n + 1) * len(structure.places)
    return Table([structure], np.zeros(n, np.int64), offsets, numbers, codes, levels, raw)


def _of_array(outputs: npt.NDArray[Any], kind: str) -> Table:
    n, shape = len(outputs), outputs.shape[1:]
    if kind == "scalar":
        structure = SCALAR
    else:
        places = tuple(f"output[{', '.join(map(str, i))}]" for i in np.ndindex(shape))
        structure = Structure(kind, places, shape[0] if shape else None, len(shape) == 1)
    flat = outputs.reshape(-1)
    if outputs.dtype.kind == "b":
        levels: dict[tuple[str, Hashable], int] = {("bool", False): 0, ("bool", True): 1}
        return _uniform(
            structure, n, np.full(flat.size, np.nan), flat.astype(np.int64), levels, outputs
        )
    numbers = flat.astype(np.float64)
    return _uniform(structure, n, numbers, np.full(flat.size, NUMBER), {}, outputs)


def _of_sequences(outputs: Outputs, kind: str) -> Table | None:
    """Lists or tuples of plain leaves; None if some leaf is itself a container."""
    flat = list(chain.from_iterable(outputs))
    types = set(map(type, flat))
    if not all(_is_number(t) or t in (bool, str, type(None), np.bool_) for t in types):
        return None
    levels: dict[tuple[str, Hashable], int] = {}
    if types <= _REAL:
        numbers, codes = _floats(flat), np.full(len(flat), NUMBER)
    else:
        numbers, codes = _leaves(flat, levels)
    sizes = np.fromiter(map(len, outputs), np.int64, len(outputs))
    lengths, structure = np.unique(sizes, return_inverse=True)
    structures = [
        Structure(kind, tuple(f"output[{i}]" for i in range(length)), int(length), True)
        for length in lengths
    ]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Table(structures, structure, offsets, numbers, codes, levels, outputs)


def _of_dicts(outputs: Outputs) -> Table | None:
    """Dicts with the same keys and plain values; None for all others."""
    keys = _in_order(outputs[0])
    try:
        rows = [[output[key] for key in keys] for output in outputs]
    except KeyError:
        return None
    if not keys or any(len(output) != len(keys) for output in outputs):
        return None
    table = _of_sequences(rows, "dict")
    if table is None:
        return None
    structure = _structure(outputs[0], tuple(f"output[{key!r}]" for key in keys))
    return dataclasses.replace(table, structures=[structure], raw=outputs)


def _of_anything(outputs: Outputs) -> Table:
    leaves: list[Any] = []
    sizes: list[int] = []
    known: dict[Structure, int] = {}
    structure: list[int] = []
    for output in outputs:
        places: list[str] = []
        before = len(leaves)
        _take_apart(output, "output", places, leaves, 0)
        sizes.append(len(leaves) - before)
        found = SCALAR if places == ["output"] else _structure(output, tuple(places))
        structure.append(known.setdefault(found, len(known)))
    levels: dict[tuple[str, Hashable], int] = {}
    numbers, codes = _leaves(leaves, levels)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Table(
        list(known), np.array(structure, np.int64), offsets, numbers, codes, levels, outputs
    )


def _structure(output: Any, places: tuple[str, ...]) -> Structure:
    try:
        length = len(output)
    except Exception:  # it has none
        length = None
    flat = places == tuple(f"output[{i}]" for i in range(len(places))) and length == len(places)
    return Structure(type(output).__name__, places, length, flat)


def _take_apart(thing: Any, place: str, places: list[str], leaves: list[Any], depth: int) -> None:
    """Append the leaves of `thing`, and how each is reached; what resists is a leaf itself."""
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
        _take_apart(value, where, places, leaves, depth + 1)

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
        for key in _in_order(thing):
            inner(thing[key], f"{place}[{key!r}]")
    elif dataclasses.is_dataclass(thing):
        for field in dataclasses.fields(thing):
            inner(getattr(thing, field.name), f"{place}.{field.name}")
    elif isinstance(thing, list | tuple):
        names = getattr(thing, "_fields", None)
        for i, value in enumerate(thing):
            inner(value, f"{place}.{names[i]}" if names else f"{place}[{i}]")
    elif isinstance(thing, set | frozenset):
        for i, value in enumerate(_in_order(thing)):
            inner(value, f"sorted({place})[{i}]")
    else:
        return False
    return True


def _in_order(things: Any) -> list[Any]:
    """Dictionary keys and set elements in an order that does not depend on hashing."""
    if not any(isinstance(thing, set | frozenset) for thing in things):  # < means "is a subset"
        try:
            return sorted(things)
        except TypeError:
            pass
    return sorted(things, key=lambda thing: (type(thing).__name__, shown(thing)))


def _leaves(flat: list[Any], levels: dict[tuple[str, Hashable], int]) -> tuple[Floats, Ints]:
    """Numbers and category codes of leaves; fills `levels`."""
    numbers = np.full(len(flat), np.nan)
    codes = np.full(len(flat), NUMBER)
    types = list(map(type, flat))
    numeric = {t: _is_number(t) for t in set(types)}
    is_number = np.fromiter(map(numeric.__getitem__, types), bool, len(flat))
    numbers[is_number] = _floats([leaf for leaf, yes in zip(flat, is_number, strict=True) if yes])
    others = [leaf for leaf, yes in zip(flat, is_number, strict=True) if not yes]
    if {t for t, yes in numeric.items() if not yes} <= {bool, str, type(None)}:
        for leaf in dict.fromkeys(others):
            levels.setdefault(category(leaf), len(levels))
        code = {leaf: levels[category(leaf)] for leaf in set(others)}
        codes[~is_number] = np.fromiter(map(code.__getitem__, others), np.int64, len(others))
    else:
        codes[~is_number] = [levels.setdefault(category(leaf), len(levels)) for leaf in others]
    return numbers, codes


def _is_number(kind: type) -> bool:
    return issubclass(kind, _PLAIN_NUMBERS) and not issubclass(kind, bool | np.timedelta64)


def _floats(flat: Outputs) -> Floats:
    try:
        return np.array(flat, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        return np.array([_float(number) for number in flat], dtype=np.float64)


def _float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
    except ValueError:  # Decimal("sNaN")
        return float("nan")
