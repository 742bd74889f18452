"""Outputs of any kind as flat columns.

Every output is taken apart into *leaves*: numbers, and everything else (booleans, strings, None,
exceptions, ...), called categories. A scalar is one leaf; lists, tuples, arrays, dicts, dataclasses
and pandas objects have one leaf for each number or category in them. Outputs with leaves in the
same places share a *structure*, which knows how a person would write each place down
(``output[2]``, ``output['mean']``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain, compress
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_dp.outputs.leaves import LITERAL, category, in_order, take_apart
from pytest_dp.outputs.nested import LEAF, flatten
from pytest_dp.sampling.calling import Outputs

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NUMBER = -1
"""Category code of a leaf that is a number."""
ABSENT = -2
"""Category code where an output has no such leaf."""

_PLAIN_NUMBERS = (int, float, np.floating, np.integer, Decimal, Fraction)
_REAL = {int, float, np.float64, np.float32, np.int64, np.int32}
_PLAIN = {*LITERAL, np.bool_}
"""Types of categories that can be told apart by ``==``, without `category`."""


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


class _Same:
    """A structure, told apart by identity: sooner than by its places."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.structure is self.structure

    def __hash__(self) -> int:
        return id(self.structure)


@lru_cache(maxsize=64)
def _one_index(same: _Same) -> dict[str, list[tuple[int, int]]]:
    """As `Table.place_index`, of a single structure."""
    index: dict[str, list[tuple[int, int]]] = {}
    for position, place in enumerate(same.structure.places):
        index.setdefault(place, []).append((0, position))
    return index


SCALAR = Structure("scalar", ("output",))
EXTRACT = Structure("extract", ())
"""Of outputs that are gone, but for some quantities; see `extracts`."""


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

    Nothing here may be changed in place: arrays can be views of one another, or of `raw`.
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
        if len(self.structures) == 1:
            return _one_index(_Same(self.structures[0]))
        index: dict[str, list[tuple[int, int]]] = {}
        for number, structure in enumerate(self.structures):
            for position, place in enumerate(structure.places):
                index.setdefault(place, []).append((number, position))
        return index

    @cached_property
    def results(self) -> dict[Hashable, tuple[Floats, Ints]]:
        """Columns that are known: of functions of the user, and of all that costs a long look."""
        return {}

    @cached_property
    def readings(self) -> dict[Any, Any]:
        """What was read out of the categories (see `readings`), so that each is read only once."""
        return {}

    @property
    def is_extract(self) -> bool:
        """Whether there are no outputs any more, only some quantities of them."""
        return self.structures == [EXTRACT]

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

    def matrix(self, rows: Ints) -> tuple[list[str], Floats, Ints]:
        """All places, and numbers and codes of some outputs there, shape (rows, places) each."""
        if len(self.structures) == 1:
            places = list(self.structures[0].places)
            shape, part = (len(self), len(places)), (len(rows), len(places))
            numbers = self.numbers.reshape(shape)[rows]
            if are_all_numbers(self.codes):
                return places, numbers, np.broadcast_to(np.int64(NUMBER), part)
            return places, numbers, self.codes.reshape(shape)[rows]
        places = list(self.place_index)
        column = {place: i for i, place in enumerate(places)}
        numbers = np.full((len(rows), len(places)), np.nan)
        codes = np.full(numbers.shape, ABSENT)
        for number, structure in enumerate(self.structures):
            some = np.flatnonzero(self.structure[rows] == number)
            if not len(some) or not structure.places:
                continue
            at = self.offsets[rows[some]][:, None] + np.arange(len(structure.places))
            to = np.ix_(some, np.array([column[place] for place in structure.places]))
            numbers[to], codes[to] = self.numbers[at], self.codes[at]
        return places, numbers, codes

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
        numbers, codes = self.numbers[leaves], _picked(self.codes, leaves)
        kept = self.structure[keep]
        part = Table(self.structures, kept, offsets, numbers, codes, self.levels, raw)
        vars(part)["place_index"] = self.place_index  # of the same structures
        vars(part)["readings"] = self.readings  # of the same levels
        for function, (given, given_codes) in self.results.items():
            part.results[function] = given[keep], _picked(given_codes, keep)
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
        return _uniform(SCALAR, len(outputs), numbers, all_numbers(len(numbers)), {}, outputs)
    if types and types <= _REAL | _PLAIN:
        levels: dict[tuple[str, Hashable], int] = {}
        numbers, codes = _leaves(outputs, types, levels)
        return _uniform(SCALAR, len(outputs), numbers, codes, levels, outputs)
    if types == {np.ndarray}:
        shapes = {(output.shape, output.dtype.kind) for output in outputs}
        shape, dtype_kind = next(iter(shapes))
        if len(shapes) == 1 and dtype_kind in "biuf":
            stack = np.concatenate(outputs) if shape else np.array(outputs)
            stack = stack.reshape(len(outputs), *shape)
            table = _of_array(stack, "ndarray" if shape else "scalar")
            return dataclasses.replace(table, raw=outputs)
    if len(types) == 1 and next(iter(types)) in (list, tuple):
        table_or_none = _of_sequences(outputs, next(iter(types)).__name__)
        if table_or_none is not None:
            return table_or_none
    if types == {dict}:
        table_or_none = _of_dicts(outputs)
        if table_or_none is not None:
            return table_or_none
    table_or_none = _of_nested(outputs)
    return _of_anything(outputs) if table_or_none is None else table_or_none


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


@lru_cache(maxsize=16)
def _array_structure(kind: str, shape: tuple[int, ...]) -> Structure:
    places = tuple(f"output[{', '.join(map(str, i))}]" for i in np.ndindex(shape))
    is_flat = len(shape) == 1 or shape[:1] == (0,)
    return Structure(kind, places, shape[0] if shape else None, is_flat)


@lru_cache(maxsize=64)
def _flat_structure(kind: str, length: int) -> Structure:
    return Structure(kind, tuple(f"output[{i}]" for i in range(length)), length, True)


def _of_array(outputs: npt.NDArray[Any], kind: str) -> Table:
    n, shape = len(outputs), outputs.shape[1:]
    structure = SCALAR if kind == "scalar" else _array_structure(kind, shape)
    flat = outputs.reshape(-1)
    if outputs.dtype.kind == "b":
        levels: dict[tuple[str, Hashable], int] = {("bool", False): 0, ("bool", True): 1}
        return _uniform(
            structure, n, np.full(flat.size, np.nan), flat.astype(np.int64), levels, outputs
        )
    numbers = flat.astype(np.float64, copy=False)
    return _uniform(structure, n, numbers, all_numbers(flat.size), {}, outputs)


def _of_sequences(outputs: Outputs, kind: str) -> Table | None:
    """Lists or tuples of plain leaves; None if some leaf is itself a container."""
    flat = list(chain.from_iterable(outputs))
    types = set(map(type, flat))
    if not all(_is_number(t) or t in (bool, str, type(None), np.bool_) for t in types):
        return None
    levels: dict[tuple[str, Hashable], int] = {}
    if types <= _REAL:
        numbers, codes = _floats(flat), all_numbers(len(flat))
    else:
        numbers, codes = _leaves(flat, types, levels)
    sizes = np.fromiter(map(len, outputs), np.int64, len(outputs))
    counts = np.bincount(sizes)
    lengths = np.flatnonzero(counts)
    structure = (np.cumsum(counts > 0) - 1)[sizes]
    structures = [_flat_structure(kind, int(length)) for length in lengths]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Table(structures, structure, offsets, numbers, codes, levels, outputs)


def _of_dicts(outputs: Outputs) -> Table | None:
    """Dicts with the same keys and plain values; None for all others."""
    keys = in_order(outputs[0])
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


def _of_nested(outputs: Outputs) -> Table | None:
    """What `_of_anything` gives, but sooner; None if some output is too unusual."""
    flattened = flatten(outputs)
    if flattened is None:
        return None
    shape, places = flattened.shape, flattened.places
    types = {kind: i for i, kind in enumerate(set(map(type, outputs)))}
    kinds = shape
    if len(types) > 1:
        kinds = shape + len(places) * np.fromiter(
            map(types.__getitem__, map(type, outputs)), np.int64, len(outputs)
        )
    _, first, kinds = np.unique(kinds, return_index=True, return_inverse=True)
    known: dict[Structure, int] = {}
    numbers_of = np.zeros(len(first), np.int64)
    for kind in np.argsort(first):
        row = int(first[kind])
        found = SCALAR
        if shape[row] != LEAF:
            reached = tuple(f"output{place}" for place in places[shape[row]])
            found = _structure(outputs[row], reached)
        numbers_of[kind] = known.setdefault(found, len(known))
    levels: dict[tuple[str, Hashable], int] = {}
    numbers, codes = _leaves(flattened.leaves, flattened.types, levels)
    return Table(list(known), numbers_of[kinds], flattened.offsets, numbers, codes, levels, outputs)


def _of_anything(outputs: Outputs) -> Table:
    leaves: list[Any] = []
    sizes: list[int] = []
    known: dict[Structure, int] = {}
    structure: list[int] = []
    for output in outputs:
        places: list[str] = []
        before = len(leaves)
        take_apart(output, "output", places, leaves, 0)
        sizes.append(len(leaves) - before)
        found = SCALAR if places == ["output"] else _structure(output, tuple(places))
        structure.append(known.setdefault(found, len(known)))
    levels: dict[tuple[str, Hashable], int] = {}
    numbers, codes = _leaves(leaves, set(map(type, leaves)), levels)
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


def _leaves(
    flat: Outputs, types: set[type], levels: dict[tuple[str, Hashable], int]
) -> tuple[Floats, Ints]:
    """Numbers and category codes of leaves of these types; fills `levels`."""
    numeric = {t: _is_number(t) for t in types}
    others = {t for t in types if not numeric[t]}
    if others == types:
        return np.full(len(flat), np.nan), _codes(flat, others, levels)
    if not others:
        return _floats(flat), all_numbers(len(flat))
    codes = np.full(len(flat), NUMBER)
    if types <= {bool, *_REAL}:
        numbers = _floats(flat)
        kinds = np.fromiter(map(type, flat), object, len(flat))
        is_bool = np.equal(kinds, np.array(bool, object))
        codes[is_bool] = _truth_codes(numbers[is_bool] != 0, levels)
        numbers[is_bool] = np.nan
        return numbers, codes
    is_number = np.frombuffer(bytes(map(numeric.__getitem__, map(type, flat))), bool)
    yes = is_number.tolist()
    numbers = np.full(len(flat), np.nan)
    numbers[is_number] = _floats(list(compress(flat, yes)))
    codes[~is_number] = _codes(list(compress(flat, (~is_number).tolist())), others, levels)
    return numbers, codes


def _codes(flat: Outputs, types: set[type], levels: dict[tuple[str, Hashable], int]) -> Ints:
    """Codes of leaves that are categories, numbered as they appear; fills `levels`."""
    if types == {bool}:
        return _truth_codes(np.frombuffer(bytes(flat), bool), levels)
    if types <= _PLAIN:
        code = {}
        for value in dict.fromkeys(flat):
            code[value] = levels.setdefault(category(value), len(levels))
        return np.fromiter(map(code.__getitem__, flat), np.int64, len(flat))
    seen: dict[Any, int] = {}
    codes = []
    for leaf in flat:
        kind = type(leaf)
        if kind in _PLAIN:
            key = leaf
        elif kind in (list, tuple) and not leaf:
            key = kind  # which is no key of another leaf: types are not plain
        else:
            codes.append(levels.setdefault(category(leaf), len(levels)))
            continue
        number = seen.get(key)
        if number is None:
            number = seen[key] = levels.setdefault(category(leaf), len(levels))
        codes.append(number)
    return np.array(codes, dtype=np.int64)


def _truth_codes(truth: Bools, levels: dict[tuple[str, Hashable], int]) -> Ints:
    first = bool(truth[0])
    for value in (first, *([not first] if np.any(truth != first) else [])):
        levels[category(value)] = len(levels)
    codes = [levels.get(("bool", value), ABSENT) for value in (False, True)]
    return np.array(codes, dtype=np.int64)[truth.view(np.uint8)]


def _picked(codes: Ints, keep: Ints) -> Ints:
    return all_numbers(len(keep)) if are_all_numbers(codes) else codes[keep]


def are_all_numbers(codes: Ints) -> bool:
    """Whether these codes are known to say so, as those of `all_numbers` do."""
    return codes.strides == (0,) and bool((codes[:1] == NUMBER).all())


def all_numbers(leaves: int) -> Ints:
    """Codes of so many leaves that all are numbers."""
    return np.broadcast_to(np.int64(NUMBER), leaves)


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
