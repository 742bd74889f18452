"""The records that membership games are about: as a claim names them, or those most at risk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from pytest_dp.basics.errors import ClaimError, invalid
from pytest_dp.claiming.more_declarations import Riskiest
from pytest_dp.data import describe, describe_record, kind_of
from pytest_dp.data.equality import key
from pytest_dp.data.fields import cells_of
from pytest_dp.data.types import type_of

MAX_TARGETS = 512
"""Records that membership games are about, at most. No audit has samples for more."""
MAX_COMPARED = 1_024
"""Records among which the riskiest are looked for. More take longer; fewer may miss them."""
CLOSEST = 8
"""Closest other records by which a record is odd. More: clusters count as odd; fewer: pairs do
not."""


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

    What counts is how far their closest neighbours are: in deviations of all records, of each
    number, and of whether a record has each of the other values, so that rare values are far from
    all. Whether a model gives them away is what the games tell.
    """
    cells = cells_of(data)
    if cells is None:
        raise ClaimError(
            f"records=riskiest({count}) compares records by their values, and the records of "
            f"{describe(data)} have none in common. Write positions, such as records=[0, 17]."
        )
    n = len(next(iter(cells.values())))
    among = np.unique(np.linspace(0, n - 1, min(n, MAX_COMPARED)).astype(int))
    apart = np.zeros((n, len(among)))
    for column in cells.values():
        if column.dtype == object:
            codes: dict[Any, int] = {}
            coded = np.array([codes.setdefault(key(value), len(codes)) for value in column])
            share = np.bincount(coded)[coded] / n
            deviation = np.sqrt(share * (1 - share)) + (share == 1)
            other = coded[:, None] != coded[among]
            apart += other * (1 / deviation[:, None] + 1 / deviation[among])
        else:
            numbers = np.nan_to_num(column)
            apart += np.abs(numbers[:, None] - numbers[among]) / (numbers.std() or 1.0)
    apart[among, np.arange(len(among))] = np.inf  # itself
    isolation = np.sort(apart, axis=1)[:, : min(CLOSEST, len(among) - 1)].mean(axis=1)
    chosen: list[int] = np.argsort(-isolation, kind="stable")[:count].tolist()
    return chosen
