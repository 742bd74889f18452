"""The records that membership games are about: as a claim names them, or those most at risk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.basics.errors import ClaimError, invalid
from pytest_dp.claiming.risk_declaration import Riskiest
from pytest_dp.data import describe, describe_record, kind_of
from pytest_dp.data.cells import Cells, cells_of
from pytest_dp.data.equality import key
from pytest_dp.data.types import type_of

MAX_TARGETS = 512
"""Records that membership games are about, at most. No audit has samples for more."""
MAX_COMPARED = 1_024
"""Records among which the riskiest are looked for. More take longer; fewer may miss them."""
CLOSEST = 8
"""Closest other records by which a record is odd. More: clusters count as odd; fewer: pairs do
not."""
ROOM_SHARE = 8
"""Part of a deviation within which numbers count as equal. Larger: fewer; smaller: more of them."""


@dataclass(frozen=True, slots=True)
class Target:
    """A record of a dataset, and the dataset without it."""

    at: int
    """Its position."""
    record: Any
    without: Any

    @property
    def text(self) -> str:
        """Where it stands, for people."""
        return f"record {self.at}"


def targets_of(data: Any, records: Any) -> list[Target]:
    """Return the target records of a claim, in its order.

    `records` are positions (whole numbers), records themselves, or `riskiest`. Raises ClaimError if
    the data is no dataset of two records or more, or a record is not in it.
    """
    kind = type_of(data)
    if kind is None or kind_of(data) is None or kind.length(data) < 2:
        raise invalid(
            "data",
            data,
            "Allowed: one dataset of two records or more, such as a list, an array or a DataFrame; "
            'a function that returns it, or its name, "tests.data:patients".',
        )
    every = kind.records(data)
    if isinstance(records, Riskiest):
        if records.count > len(every):
            raise invalid("records", records, f"The data has {len(every)} records: ask for fewer.")
        chosen = riskiest_of(data, records.count)
    else:
        chosen = [_position(record, every) for record in records]
    rows = kind.join_rows([data])
    targets = []
    for at in dict.fromkeys(chosen):
        rest = [i for i in range(len(every)) if i != at]
        targets.append(Target(at, every[at], kind.take_rows(rows, rest)))
    if len(targets) > MAX_TARGETS:
        raise ClaimError(f"records= names {len(targets)} records. Allowed: {MAX_TARGETS} at most.")
    return targets


def _position(wanted: Any, every: Sequence[Any]) -> int:
    if isinstance(wanted, Integral) and not isinstance(wanted, bool):
        at = int(wanted)
        if -len(every) <= at < len(every):
            return at % len(every)
        raise invalid(
            "records",
            wanted,
            f"The data has {len(every)} records. Allowed: a position from 0 to {len(every) - 1}, "
            "or the record itself.",
        )
    content = key(wanted)
    for at, record in enumerate(every):
        if key(record) == content:
            return at
    raise ClaimError(
        f"records: {describe_record(wanted)} is not in the data, of which the first record is "
        f"{describe_record(every[0])}. Allowed: records of the data, as they are there, or "
        "positions."
    )


def riskiest_of(data: Any, count: int) -> list[int]:
    """Return positions of records that look most at risk, the first the most: a heuristic, no more.

    What counts is how far their closest neighbours are, and how rare their values, each in
    deviations of all records. Whether a model gives them away is what the games tell.
    """
    cells = cells_of(data)
    if cells is None:
        raise ClaimError(
            f"records=riskiest({count}) compares records by their values, and the records of "
            f"{describe(data)} have none in common. Write positions, such as records=[0, 17]."
        )
    told = sum(by / (by.std() or 1.0) for by in (_isolation(cells), _surprisals(cells)))
    chosen: list[int] = np.argsort(-told, kind="stable")[:count].tolist()
    return chosen


def _code_column(column: Any) -> tuple[Floats, bool]:
    """Return a column in numbers, and whether these are codes of values."""
    if column.dtype == object:
        codes: dict[Any, int] = {}
        return np.array([codes.setdefault(key(v), len(codes)) for v in column], np.float64), True
    return np.nan_to_num(column), False


def _isolation(cells: Cells) -> Floats:
    """Return the mean distance of each record to the closest of some others, column by column."""
    columns = [_code_column(column) for column in cells.values()]
    n = len(columns[0][0])
    among = np.unique(np.linspace(0, n - 1, min(n, MAX_COMPARED)).astype(int))
    apart = np.zeros((n, len(among)))
    for column, coded in columns:
        off = np.abs(column[:, None] - column[among])
        apart += off > 0 if coded else off / (column.std() or 1.0)
    apart[among, np.arange(len(among))] = np.inf  # itself
    closest = np.sort(apart, axis=1)[:, : min(CLOSEST, max(len(among) - 1, 1))]
    mean: Floats = np.where(np.isfinite(closest), closest, 0.0).mean(axis=1)
    return mean


def _surprisals(cells: Cells) -> Floats:
    """Return the total surprisal of each record in nats; a number counts the values nearby."""
    total = np.zeros(len(next(iter(cells.values()))))
    for column, coded in map(_code_column, cells.values()):
        if coded:
            shares = np.bincount(column.astype(int))[column.astype(int)]
        else:
            order, room = np.sort(column), column.std() / ROOM_SHARE
            shares = np.searchsorted(order, column + room, "right")
            shares = shares - np.searchsorted(order, column - room, "left")
        total += np.log(len(column) / shares)
    return total
