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
from pytest_dp.outputs.flatten import EXTRACT, SCALAR, Structure, flatten, structure_of_shape
from pytest_dp.outputs.leaves import (
    ABSENT,
    MAX_EXACT,
    NUMBER,
    UNKNOWN,
    Category,
    Named,
    all_numbers,
    are_all_numbers,
    one_name,
    pick_entries,
    tabulate_leaves,
    type_name,
)

_Words = npt.NDArray[np.uint64]

HASHES = "hashes"
"""The key in `Table.results` of an extract under which the hashes of its outputs stand, as
floats."""
_NAN = np.uint64(0x7FF8000000000000)
"""Given: the bits of NaN, of which there are many, as of one."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""Given: the increment of SplitMix64, 2**64 divided by the golden ratio."""


@dataclass(frozen=True)
class Table:
    """A table of the leaves of many outputs: numbers, and codes of categories, output after output.

    Change nothing in place: arrays may be views of one another, or of `raw`.
    """

    structures: list[Structure]
    """The different structures of the outputs."""
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
    """The outputs themselves; empty for an extract."""

    def __len__(self) -> int:
        return len(self.structure)

    @cached_property
    def sizes(self) -> Ints:
        """The number of leaves of each output, shape (n,)."""
        return np.diff(self.offsets)

    @cached_property
    def owner(self) -> Ints:
        """The number of the output that each leaf belongs to, shape (leaves,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @property
    def positions(self) -> Ints:
        """The position of each leaf in its output, shape (leaves,)."""
        return np.arange(len(self.codes)) - self.offsets[self.owner]

    @cached_property
    def places(self) -> tuple[str, ...]:
        """All places at which some output has a leaf."""
        if len(self.structures) == 1:
            return self.structures[0].places
        return tuple(dict.fromkeys(chain.from_iterable(s.places for s in self.structures)))

    @cached_property
    def results(self) -> dict[Hashable, tuple[Floats, Ints]]:
        """A cache of the columns of features that take long; in an extract, all that is left."""
        return {}

    @cached_property
    def readings(self) -> dict[Any, Any]:
        """A cache of what readers compute from categories, shared with parts of the table."""
        return {}

    @property
    def is_extract(self) -> bool:
        """True if the table holds no outputs and no leaves, only the columns of some features."""
        return self.structures == [EXTRACT]

    @property
    def is_typed(self) -> bool:
        """True if types of numbers, or forms, are known, so that they distinguish outputs."""
        return self.forms.names != (None,)

    def leaf(self, place: str) -> tuple[Floats, Ints]:
        """Return numbers and codes at a place, shape (n,) each; absent without a leaf there."""
        if len(self.structures) == 1 and place in self.structures[0].position:
            part = slice(self.structures[0].position[place], None, len(self.structures[0].places))
            return self.numbers[part], self.codes[part]
        return self._fill_rows(*self.find_leaves(place))

    def last_leaves(self) -> tuple[Floats, Ints]:
        """Return numbers and codes of the last leaf of flat outputs; absent for all others."""
        flat = np.array([s.is_flat and len(s.places) > 0 for s in self.structures], dtype=bool)
        rows = np.flatnonzero(flat[self.structure]) if len(self) else np.zeros(0, np.int64)
        return self._fill_rows(rows, self.offsets[rows + 1] - 1)

    def find_leaves(self, place: str) -> tuple[Ints, Ints]:
        """Return the rows of outputs with a leaf at a place, and its index among all leaves."""
        position = np.array([s.position.get(place, -1) for s in self.structures], np.int64)
        rows = np.flatnonzero(position[self.structure] >= 0)
        return rows, self.offsets[rows] + position[self.structure[rows]]

    def _fill_rows(self, rows: Ints, leaves: Ints) -> tuple[Floats, Ints]:
        """Return numbers and codes, shape (n,): those of `leaves` in `rows`, elsewhere absent."""
        numbers, codes = np.full(len(self), np.nan), np.full(len(self), ABSENT)
        numbers[rows], codes[rows] = self.numbers[leaves], self.codes[leaves]
        return numbers, codes

    def number_types(self, place: str) -> Ints:
        """Return the index in `types.names` of each number's type at a place, (n,); else 0."""
        types = np.zeros(len(self), np.int64)
        rows, leaves = self.find_leaves(place)
        types[rows] = self.types.which[leaves]
        return types

    def matrix(self, rows: Ints) -> tuple[list[str], Floats, Ints]:
        """Return all places, and numbers and codes of some outputs, shape (rows, places) each.

        `rows` are positions of outputs. NaN and `ABSENT` stand where an output has no leaf.
        """
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
        """Return the table of the outputs for which a mask of shape (n,) is true."""
        keep = np.flatnonzero(mask)
        if len(self.structures) == 1:
            width = len(self.structures[0].places)
            return self._select(keep, (keep[:, None] * width + np.arange(width)).reshape(-1))
        return self._select(keep, np.flatnonzero(mask[self.owner]))

    def between(self, start: int, stop: int) -> Table:
        """Return a table of the outputs from `start` to before `stop`; its arrays are views."""
        ends = slice(*self.offsets[[start, stop]].tolist())
        return self._select(slice(start, stop), ends)

    def _select(self, keep: Ints | slice, leaves: Ints | slice) -> Table:
        """Return a table of some outputs and their leaves, with their cached results."""
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
        """Reduce the table to its outputs, to be tabulated again; an extract as a whole."""
        return super().__reduce_ex__(protocol) if self.is_extract else (tabulate, (self.raw,))


def tabulate(outputs: Outputs) -> Table:
    """Return the table of outputs of any kind; of an array, each row is one output."""
    if isinstance(outputs, np.ndarray):
        if _in_floats(outputs):
            return _array_table(outputs, outputs, UNKNOWN, None)
        outputs = list(outputs)
    types = set(map(type, outputs))
    if types == {np.ndarray} and (table := _arrays_table(outputs)) is not None:
        return table
    leaves, types, offsets, structures, structure, forms = flatten(outputs, types)
    return Table(structures, structure, offsets, *tabulate_leaves(leaves, types), forms, outputs)


def concatenate(tables: Sequence[Table]) -> Table:
    """Return the table of all outputs of several tables, one after the other.

    A single table is returned itself. Only arrays are tabulated again. Cached results stay if all
    tables have them.
    """
    if len(tables) == 1:
        return tables[0]
    raw = join_outputs([table.raw for table in tables])
    joined = None
    if any(isinstance(table.raw, np.ndarray) for table in tables):
        joined = tabulate(raw)
    elif set(map(type, raw)) == {np.ndarray}:
        joined = _arrays_table(raw)
    levels = {} if joined is None else joined.levels
    new_codes = [_new_codes(table.levels, levels) for table in tables]
    if joined is None:
        structures = Named.join([Named(tuple(t.structures), t.structure) for t in tables])
        types: Any = {name for t in tables for name in t.types.names} - {UNKNOWN} or {UNKNOWN}
        joined = Table(
            list(structures.names),  # type: ignore[arg-type]
            structures.which,
            np.concatenate([[0], np.cumsum(np.concatenate([t.sizes for t in tables]))]),
            np.concatenate([t.numbers for t in tables]),
            _recode([t.codes for t in tables], new_codes),
            levels,
            Named.join([t.types for t in tables], sorted(types)),
            Named.join([t.forms for t in tables]),
            raw,
        )
    for key in tables[0].results:
        if all(key in table.results for table in tables):
            numbers, codes = zip(*(table.results[key] for table in tables), strict=True)
            joined.results[key] = np.concatenate(numbers), _recode(codes, new_codes)
    return joined


def _new_codes(levels: dict[Category, int], others: dict[Category, int]) -> Ints:
    """Add missing levels to `others`; return the codes there of absent, number and `levels`."""
    return np.array([ABSENT, NUMBER, *(others.setdefault(level, len(others)) for level in levels)])


def _recode(columns: Sequence[Ints], new_codes: list[Ints]) -> Ints:
    """Return the codes of several tables as one column, each translated by its `_new_codes`."""
    if all(map(are_all_numbers, columns)):
        return all_numbers(sum(map(len, columns)))
    return np.concatenate([new[codes + 2] for codes, new in zip(columns, new_codes, strict=True)])


def _in_floats(array: npt.NDArray[Any]) -> bool:
    """Return whether elements are Booleans, floats, or integers below `MAX_EXACT` in size."""
    if array.dtype.kind in "iu" and array.dtype.itemsize > 4 and array.size:
        return bool(array.max() < MAX_EXACT and array.min() > -MAX_EXACT)
    return array.dtype.kind in "biuf"


def _arrays_table(outputs: Outputs) -> Table | None:
    """Return the table of arrays of one shape and numeric type.

    None for other arrays: without axes, with several shapes or types, or with too large integers.
    """
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
    """Return the table of the rows of an array of Booleans or numbers.

    `raw` are the outputs, `number` is the name of the type of their numbers, `form` their form.
    """
    n, flat = len(array), array.reshape(-1)
    structure = SCALAR if array.ndim == 1 else structure_of_shape(array.shape[1:])
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
    """Return a 64-bit hash of each output, shape (n,): equal for equal outputs, in any process.

    Equal outputs have containers of the same types, and at each place equal numbers of the same
    type, or the same category; 0.0 equals -0.0, and NaN equals NaN. Without `typed`, types of
    numbers and forms do not count. An extract returns the hashes that it was made with.
    """
    if HASHES in table.results:
        return table.results[HASHES][0].view(np.int64)
    typed = typed and table.is_typed
    leaves = _mix(_leaf_words(table, typed))
    structures = _hash_reprs(
        [(s.kind, s.length if s.is_flat else s.places) for s in table.structures]
    )
    words: _Words = structures[table.structure]
    if typed and any(table.forms.names):
        forms = [_hash_reprs([form])[0] if form else np.uint64(0) for form in table.forms.names]
        words += _word_of_each(np.array(forms, dtype=np.uint64), table.forms)
    leaves += (table.positions + 1).astype(np.uint64) * _GOLDEN
    nonempty = table.sizes > 0
    if nonempty.any():
        words[nonempty] += np.add.reduceat(_mix(leaves), table.offsets[:-1][nonempty])
    return words.view(np.int64)


def _leaf_words(table: Table, typed: bool) -> _Words:
    """Return 64 bits for the content of each leaf: equal for equal leaves."""
    bits = (table.numbers + 0.0).view(np.uint64)  # turns -0.0 into 0.0
    bits[np.isnan(table.numbers)] = _NAN
    if typed:
        bits += _word_of_each(_hash_reprs(list(table.types.names)), table.types)
    if table.levels:
        levels = np.zeros(max(table.levels.values()) + 2, dtype=np.uint64)
        levels[list(table.levels.values())] = _hash_reprs(list(table.levels))
        bits = np.where(table.codes == NUMBER, bits, levels[table.codes])  # -1 is the last one
    return bits


def _word_of_each(words: _Words, named: Named) -> Any:
    """Return the word of each item's name, shape (n,); a single word for a single name."""
    return words[0] if len(words) == 1 else words[named.which]


def _mix(words: _Words) -> _Words:
    """Overwrite 64-bit words by words that look random, one to one, and return them.

    Source: the finalizer of Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators",
    OOPSLA 2014, with the constants of SplitMix64.
    """
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words


def _hash_reprs(objects: list[Any]) -> _Words:
    """Return a 64-bit hash of each object's repr, equal in any process."""
    texts = [repr(item).encode(errors="backslashreplace") for item in objects]
    digests = [blake2b(text, digest_size=8).digest() for text in texts]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
