"""Names for the arrays that everything passes around."""

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
