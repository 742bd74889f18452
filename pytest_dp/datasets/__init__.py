"""Datasets of any type and their records; importing this package enters all types."""

from __future__ import annotations

from pytest_dp.datasets.builtin import Columns, FrozenSet, List, Set, String, Tuple
from pytest_dp.datasets.conversion import kind_of, rebuilt, records_of
from pytest_dp.datasets.describing import describe, describe_record
from pytest_dp.datasets.equality import key
from pytest_dp.datasets.libraries import (
    ArrowTable,
    DataFrame,
    NumpyArray,
    PolarsFrame,
    PolarsSeries,
    Series,
)
from pytest_dp.datasets.ordering import ends_first, is_real
from pytest_dp.datasets.types import register

__all__ = [
    "describe",
    "describe_record",
    "ends_first",
    "is_real",
    "key",
    "kind_of",
    "rebuilt",
    "records_of",
]

register(List(), Tuple(), Set(), FrozenSet(), String(), Columns())
register(NumpyArray(), DataFrame(), Series(), PolarsFrame(), PolarsSeries(), ArrowTable())
