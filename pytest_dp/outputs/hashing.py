"""A number for each output that equal outputs share, in any table and any process."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_dp.basics.arrays import Ints
from pytest_dp.outputs.leaves import NUMBER, Named
from pytest_dp.outputs.table import Table

_Words = npt.NDArray[np.uint64]

HASHES = "hashes"
"""Where an extract has the bits of the hashes of its outputs, among its results."""
_NAN = np.uint64(0x7FF8000000000000)
"""Given: the bits of NaN, of which there are many, as of one."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""Given: the increment of SplitMix64, 2**64 divided by the golden ratio."""


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
