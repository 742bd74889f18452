"""Datasets of any type and their records; importing this package enters all types."""

from __future__ import annotations

from pytest_dp.data.conversion import (
    Columns,
    FrozenSet,
    List,
    Set,
    String,
    Tuple,
    dropped_part_advice,
    kind_of,
    rebuild,
    records_of,
)
from pytest_dp.data.describing import describe, describe_record
from pytest_dp.data.equality import key
from pytest_dp.data.libraries import (
    ArrowTable,
    DataFrame,
    NumpyArray,
    PolarsFrame,
    PolarsSeries,
    Series,
)
from pytest_dp.data.ordering import ends_first, is_real
from pytest_dp.data.types import register

__all__ = [
    "describe",
    "describe_record",
    "dropped_part_advice",
    "ends_first",
    "is_real",
    "key",
    "kind_of",
    "rebuild",
    "records_of",
]

register(List(), Tuple(), Set(), FrozenSet(), String(), Columns())
register(NumpyArray(), DataFrame(), Series(), PolarsFrame(), PolarsSeries(), ArrowTable())
