"""Names for types of arrays and outputs; joining outputs, and copying data."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Outputs = Sequence[Any] | npt.NDArray[Any]
"""Outputs of several runs: a list of outputs, or an array whose first axis is that of the runs."""
_IMMUTABLE = frozenset([int, float, str, bool, bytes, type(None), object])


def join_outputs(parts: Sequence[Outputs]) -> Outputs:
    """Join the outputs of several parts of the runs, in order.

    Returns a single part as it is, an array if all parts are arrays with the same row shape and
    kind of dtype, else a list.
    """
    if len(parts) == 1:
        return parts[0]
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    shapes = {(array.shape[1:], array.dtype.kind) for array in arrays}
    if len(arrays) == len(parts) and len(shapes) == 1:
        return np.concatenate(arrays)
    return [output for part in parts for output in part]


def copy_data(data: Any) -> Any:
    """Return a deep copy of data; the data themselves if copying raises, as for locks and files."""
    kind = type(data)
    if kind in _IMMUTABLE:
        return data
    if kind in (list, tuple):
        kinds = set(map(type, data))
        if kinds <= _IMMUTABLE or (
            kinds == {tuple} and _holds_immutable(chain.from_iterable(data))
        ):
            return kind(data)
        if kinds == {dict} and _holds_immutable(chain.from_iterable(map(dict.values, data))):
            return kind(map(dict.copy, data))
        return kind([copy_data(record) for record in data])
    if kind is dict:
        return {name: copy_data(value) for name, value in data.items()}
    if isinstance(data, np.ndarray) and data.dtype.kind != "O":
        return data.copy()
    if isinstance(data, np.generic):  # a row of a structured array is a view
        return data.copy()
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(data, pandas.DataFrame | pandas.Series | pandas.Index):
        return data.copy()
    try:
        return copy.deepcopy(data)
    except Exception:  # locks, files, connections
        return data


def _holds_immutable(values: Iterable[Any]) -> bool:
    return set(map(type, values)) <= _IMMUTABLE
