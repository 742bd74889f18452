"""Names for the arrays that everything passes around, and outputs put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Outputs = Sequence[Any] | npt.NDArray[Any]
"""Outputs of several runs; of an array, the first axis is runs."""


def join_outputs(parts: Sequence[Outputs]) -> Outputs:
    """Join the outputs of several parts into one sequence.

    An array where all of them are arrays.
    """
    if len(parts) == 1:
        return parts[0]
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    shapes = {(array.shape[1:], array.dtype.kind) for array in arrays}
    if len(arrays) == len(parts) and len(shapes) == 1:
        return np.concatenate(arrays)
    return [output for part in parts for output in part]
