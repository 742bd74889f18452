"""Outputs of any kind as flat columns.

Every output is taken apart into *leaves*: numbers, and everything else (booleans, strings, None,
exceptions, ...), called categories. A scalar is one leaf; lists, tuples, arrays, dicts, dataclasses
and pandas objects have one leaf for each number or category in them. Outputs with leaves in the
same places share a *structure*, which knows how a person would write each place down
(``output[2]``, ``output['mean']``). What else is observed, the *form* of an output and the types of
its numbers, is kept beside it. Equal outputs share a hash, in any table and any process.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_dp.basics.arrays import Bools, Floats, Ints, Outputs, join_outputs
from pytest_dp.outputs.containers import is_plain
from pytest_dp.outputs.flatten import EXTRACT, SCALAR, Structure, flatten, of_shape
from pytest_dp.outputs.leaves import (
    ABSENT,
    MAX_EXACT,
    NUMBER,
    UNKNOWN,
    Category,
    Named,
    all_numbers,
    are_all_numbers,
    leaves_of,
    one_name,
    pick_entries,
    type_name,
)

_Words = npt.NDArray[np.uint64]

HASHES = "hashes"
"""Where an extract has the bits of the hashes of its outputs, among its results."""
_NAN = np.uint64(0x7FF8000000000000)
"""Given: the bits of NaN, of which there are many, as of one."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""Given: the increment of SplitMix64, 2**64 divided by the golden ratio."""


@dataclass(frozen=True)
class Table:
    """The leaves of many outputs, output after output.

    Nothing here may be changed in place: arrays can be views of one another, or of `raw`.
    """

    structures: list[Structure]
    structure: Ints
    """Which structure each output has, shape (n,)."""
    offsets: Ints
    """Where the leaves of each output start, shape (n + 1,)."""
    numbers: Floats
    """The leaves that are numbers, shape (leaves,); NaN elsewhere."""
    codes: Ints
    """`NUMBER`, or the position of the leaf's category in `levels`, shape (leaves,)."""
    levels: dict[Category, int]
    """From category to its code."""
    types: Named
    """The types of the leaves that are numbers; anything for the others."""
    forms: Named
    """The form of each output, a tuple of aspects (see `containers.Aspect`); None where it is not
    known."""
    raw: Outputs
    """The outputs themselves."""

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
    def places(self) -> tuple[str, ...]:
        """All places that leaves stand at."""
        if len(self.structures) == 1:
            return self.structures[0].places
        return tuple(dict.fromkeys(chain.from_iterable(s.places for s in self.structures)))

    @cached_property
    def results(self) -> dict[Hashable, tuple[Floats, Ints]]:
        """Columns that are known: of functions of the user, and of all that costs a long look."""
        return {}

    @cached_property
    def readings(self) -> dict[Any, Any]:
        """Cache of readings of the categories (see `text_features`)."""
        return {}

    @property
    def is_extract(self) -> bool:
        """True if the outputs themselves are gone, and only some quantities of them are left."""
        return self.structures == [EXTRACT]

    @property
    def is_typed(self) -> bool:
        """True if types of numbers and forms are known, so that they can differ between outputs."""
        return self.forms.names != (None,)

    def leaf(self, place: str) -> tuple[Floats, Ints]:
        """Return numbers and codes of the leaves at one place, shape (n,) each."""
        if len(self.structures) == 1 and place in self.structures[0].position:
            part = slice(self.structures[0].position[place], None, len(self.structures[0].places))
            return self.numbers[part], self.codes[part]
        return self._at(*self.having(place))

    def last(self) -> tuple[Floats, Ints]:
        """Return numbers and codes of the last leaf of every flat output."""
        flat = np.array([s.is_flat and len(s.places) > 0 for s in self.structures], dtype=bool)
        rows = np.flatnonzero(flat[self.structure]) if len(self) else np.zeros(0, np.int64)
        return self._at(rows, self.offsets[rows + 1] - 1)

    def having(self, place: str) -> tuple[Ints, Ints]:
        """Return the outputs with a leaf at a place, and its position among all leaves."""
        position = np.array([s.position.get(place, -1) for s in self.structures], np.int64)
        rows = np.flatnonzero(position[self.structure] >= 0)
        return rows, self.offsets[rows] + position[self.structure[rows]]

    def _at(self, rows: Ints, leaves: Ints) -> tuple[Floats, Ints]:
        """Return numbers and codes of some outputs from one leaf of each; absent elsewhere."""
        numbers, codes = np.full(len(self), np.nan), np.full(len(self), ABSENT)
        numbers[rows], codes[rows] = self.numbers[leaves], self.codes[leaves]
        return numbers, codes

    def typed(self, place: str) -> Ints:
        """Return the types, as in `types`, of the numbers at one place.

        Anything where there is none.
        """
        types = np.zeros(len(self), np.int64)
        rows, leaves = self.having(place)
        types[rows] = self.types.which[leaves]
        return types

    def matrix(self, rows: Ints) -> tuple[list[str], Floats, Ints]:
        """Return all places, and numbers and codes there, of shape (rows, places) each."""
        if len(self.structures) == 1:
            places = list(self.structures[0].places)
            shape, part = (len(self), len(places)), (len(rows), len(places))
            numbers = self.numbers.reshape(shape)[rows]
            if are_all_numbers(self.codes):
                return places, numbers, np.broadcast_to(np.int64(NUMBER), part)
            return places, numbers, self.codes.reshape(shape)[rows]
        places = list(self.places)
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

    def rows(self, mask: Bools) -> Table:
        """Return the table of some outputs."""
        keep = np.flatnonzero(mask)
        if len(self.structures) == 1:
            width = len(self.structures[0].places)
            return self._part(keep, (keep[:, None] * width + np.arange(width)).reshape(-1))
        return self._part(keep, np.flatnonzero(mask[self.owner]))

    def between(self, start: int, stop: int) -> Table:
        """Return the table of consecutive outputs, as views of this one."""
        ends = slice(*self.offsets[[start, stop]].tolist())
        return self._part(slice(start, stop), ends)

    def _part(self, keep: Ints | slice, leaves: Ints | slice) -> Table:
        """Return the table of some outputs and their leaves, with the places and readings."""
        raw: Outputs = ()  # of an extract
        if isinstance(keep, slice) or isinstance(self.raw, np.ndarray):
            raw = self.raw[keep]  # type: ignore[index]
        elif not self.is_extract:
            raw = [self.raw[at] for at in keep.tolist()]
        part = Table(
            self.structures,
            self.structure[keep],
            np.concatenate([[0], np.cumsum(self.sizes[keep])]),
            self.numbers[leaves],
            pick_entries(self.codes, leaves),
            self.levels,
            self.types.part(leaves),
            self.forms.part(keep),
            raw,
        )
        vars(part)["places"] = self.places  # of the same structures
        vars(part)["readings"] = self.readings  # of the same levels
        for function, (numbers, codes) in self.results.items():
            part.results[function] = numbers[keep], pick_entries(codes, keep)
        return part

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Reduce the table to its outputs, which another process tabulates; keep an extract."""
        return super().__reduce_ex__(protocol) if self.is_extract else (tabulate, (self.raw,))


def tabulate(outputs: Outputs) -> Table:
    """Take outputs apart; any Python objects will do."""
    if isinstance(outputs, np.ndarray):
        if _in_floats(outputs):
            return _array_table(outputs, outputs, UNKNOWN, None)
        outputs = list(outputs)
    types = set(map(type, outputs))
    if types == {np.ndarray} and (table := _arrays_table(outputs)) is not None:
        return table
    leaves, types, offsets, structures, structure, forms = flatten(outputs, types)
    columns = leaves_of(leaves, types)
    return Table(structures, structure, offsets, *columns, forms, outputs)


def _joined_table(
    tables: Sequence[Table], raw: Outputs, levels: dict[Category, int], new_codes: list[Ints]
) -> Table:
    """Return rows below rows, of outputs that are taken apart by their structure: no arrays."""
    structures = Named.join([Named(tuple(t.structures), t.structure) for t in tables])
    types: Any = {name for table in tables for name in table.types.names} - {UNKNOWN} or {UNKNOWN}
    return Table(
        list(structures.names),  # type: ignore[arg-type]
        structures.which,
        np.concatenate([[0], np.cumsum(np.concatenate([table.sizes for table in tables]))]),
        np.concatenate([table.numbers for table in tables]),
        _recode([table.codes for table in tables], new_codes),
        levels,
        Named.join([table.types for table in tables], sorted(types)),
        Named.join([table.forms for table in tables]),
        raw,
    )


def concatenate(tables: Sequence[Table]) -> Table:
    """Join the outputs of several tables into one, equal to what `tabulate` would make of them.

    Nothing is taken apart again, but for arrays, where that costs next to nothing. Columns that are
    known in all of the tables stay known.
    """
    if len(tables) == 1:
        return tables[0]
    raw = join_outputs([table.raw for table in tables])
    combined = None
    if any(isinstance(table.raw, np.ndarray) for table in tables):
        combined = tabulate(raw)
    elif set(map(type, raw)) == {np.ndarray}:
        combined = _arrays_table(raw)
    levels = {} if combined is None else combined.levels
    new_codes = [_new_codes(table.levels, levels) for table in tables]
    if combined is None:
        combined = _joined_table(tables, raw, levels, new_codes)
    for key in tables[0].results:
        if all(key in table.results for table in tables):
            numbers, codes = zip(*(table.results[key] for table in tables), strict=True)
            combined.results[key] = np.concatenate(numbers), _recode(codes, new_codes)
    return combined


def _new_codes(levels: dict[Category, int], others: dict[Category, int]) -> Ints:
    """Return the codes in `others` of absence, of numbers and of each level; add new levels."""
    return np.array([ABSENT, NUMBER, *(others.setdefault(level, len(others)) for level in levels)])


def _recode(columns: Sequence[Ints], new_codes: list[Ints]) -> Ints:
    """Join the codes of several tables into one column, by what each of them becomes."""
    if all(map(are_all_numbers, columns)):
        return all_numbers(sum(map(len, columns)))
    return np.concatenate([new[codes + 2] for codes, new in zip(columns, new_codes, strict=True)])


def _in_floats(array: npt.NDArray[Any]) -> bool:
    """Return whether floats hold the elements exactly, or nearly if they are finer floats."""
    if array.dtype.kind in "iu" and array.dtype.itemsize > 4 and array.size:
        return bool(array.max() < MAX_EXACT and array.min() > -MAX_EXACT)
    return array.dtype.kind in "biuf"


def _arrays_table(outputs: Outputs) -> Table | None:
    """Return arrays of one shape and type; None for others."""
    shapes = {(output.shape, output.dtype) for output in outputs}
    shape, dtype = next(iter(shapes))
    if len(shapes) > 1 or not shape or dtype.kind not in "biuf":
        return None
    stack = np.concatenate(outputs).reshape(len(outputs), *shape)
    if not _in_floats(stack):
        return None
    # The type of the elements of `tolist`, as where arrays stand in other containers.
    number = "int" if dtype.kind in "iu" else "float" if is_plain(dtype) else type_name(dtype.type)
    return _array_table(stack, list(stack), number, (("output", "dtype", str(dtype)),))


def _array_table(array: npt.NDArray[Any], raw: Outputs, number: str, form: Hashable) -> Table:
    """Return outputs along the first axis, of which all numbers are of this type."""
    n, flat = len(array), array.reshape(-1)
    structure = SCALAR if array.ndim == 1 else of_shape(array.shape[1:])
    levels: dict[Category, int] = {}
    if array.dtype.kind == "b":
        levels = {("bool", False): 0, ("bool", True): 1}
        numbers, codes = np.full(flat.size, np.nan), flat.astype(np.int64)
    else:
        numbers, codes = flat.astype(np.float64, copy=False), all_numbers(flat.size)
    return Table(
        [structure],
        np.zeros(n, np.int64),
        np.arange(n + 1) * len(structure.places),
        numbers,
        codes,
        levels,
        one_name(number, flat.size),
        one_name(form, n),
        raw,
    )


def hashes(table: Table, typed: bool = True) -> Ints:
    """Return one number for each output, shape (n,); `typed` as in `Table.is_typed`.

    Equal outputs have equal numbers, and others different ones but for collisions of 64-bit hashes.
    Equal means: containers of the same types, and at the same places equal numbers of the same type
    or the same categories; 0.0 equals -0.0, and NaN itself.
    """
    if HASHES in table.results:
        return table.results[HASHES][0].view(np.int64)
    typed = typed and table.is_typed
    leaves = _mix(_contents(table, typed))
    structures = _hashes([(s.kind, s.length if s.is_flat else s.places) for s in table.structures])
    words: _Words = structures[table.structure]
    if typed and any(table.forms.names):
        forms = [_hashes([form])[0] if form else np.uint64(0) for form in table.forms.names]
        words += _by_item(np.array(forms, dtype=np.uint64), table.forms)
    if len(table.structures) == 1:
        width = len(table.structures[0].places)
        leaves = leaves.reshape(len(table), width)
        leaves += np.arange(1, width + 1, dtype=np.uint64) * _GOLDEN
        words += _mix(leaves).sum(axis=1)
    else:
        starts, nonempty = table.offsets[:-1], table.sizes > 0
        places = np.arange(1, len(leaves) + 1) - np.repeat(starts, table.sizes)
        leaves += places.astype(np.uint64) * _GOLDEN
        if nonempty.any():
            words[nonempty] += np.add.reduceat(_mix(leaves), starts[nonempty])
    return words.view(np.int64)


def _contents(table: Table, typed: bool) -> _Words:
    """Return the content of each leaf, as 64 bits."""
    bits = (table.numbers + 0.0).view(np.uint64)  # turns -0.0 into 0.0
    bits[np.isnan(table.numbers)] = _NAN
    if typed:
        bits += _by_item(_hashes(list(table.types.names)), table.types)
    if table.levels:
        levels = np.zeros(max(table.levels.values()) + 2, dtype=np.uint64)
        levels[list(table.levels.values())] = _hashes(list(table.levels))
        bits = np.where(table.codes == NUMBER, bits, levels[table.codes])  # -1 is the last one
    return bits


def _by_item(words: _Words, named: Named) -> Any:
    """Return the word of each item's name; a single word where all items have the same name."""
    return words[0] if len(words) == 1 else words[named.which]


def _mix(words: _Words) -> _Words:
    """Return a one-to-one map of 64-bit words that looks random; changes its argument.

    Source: the finalizer of Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators",
    OOPSLA 2014, with the constants of SplitMix64.
    """
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words


def _hashes(objects: list[Any]) -> _Words:
    """Return stable hashes of objects by their repr."""
    texts = [repr(item).encode(errors="backslashreplace") for item in objects]
    digests = [blake2b(text, digest_size=8).digest() for text in texts]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
