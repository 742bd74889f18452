"""The records that audits of membership are about: targets of games, and canaries.

Targets are records of the data, named by a claim or most at risk. Canaries are added, each by a
coin of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from numbers import Integral
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Bools
from pytest_dp.basics.errors import ClaimError, invalid
from pytest_dp.basics.reprs import plural
from pytest_dp.claiming.more_declarations import Riskiest
from pytest_dp.claiming.setting_fields import is_strategy
from pytest_dp.data import describe, describe_record, kind_of, records_of
from pytest_dp.data.conversion import describe_non_dataset, length, rebuild
from pytest_dp.data.equality import key
from pytest_dp.data.fields import cells_of, fields_of, with_field
from pytest_dp.data.record_pool import RecordPool
from pytest_dp.data.relations import AddRemoveOne, Relation
from pytest_dp.data.types import type_of

MAX_TARGETS = 512
"""Records that membership games are about, at most. No audit has samples for more."""
MAX_COMPARED = 1_024
"""Records among which the riskiest are looked for. More take longer; fewer may miss them."""
CLOSEST = 8
"""Closest records by which a record is odd. More: clusters count as odd; fewer: pairs do not."""
MAX_DRAWN_PAIRS = 100_000
"""Pairs of records among which canaries are chosen. Fewer are further from the data."""
MAX_DRAWS = 2_000
"""Draws of a strategy for canaries. More take longer; fewer may not do."""
CANARIES = 1_000
"""Canaries of a strategy. More show a smaller loss; fewer change less of what is trained."""


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
    """Return the records that membership games of a claim are about, in its order, each once.

    `records` are positions, records, or `riskiest`. Raises ClaimError if the data is no dataset of
    two records or more, if it has no such record, and for more than `MAX_TARGETS`.
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
    """Return the position of a record, given as such or itself; ClaimError if there is none."""
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
    """Return positions of the `count` records that look most at risk, the most isolated first.

    Isolation is the mean distance to the closest other records, in standard deviations of each
    column; values other than numbers are far if rare. Raises ClaimError if records have no columns.
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


class Canaries:
    """Canaries, records that may be added to a dataset, and the datasets that hold some of them.

    `dataset` has the canaries alone, `base` none. `wanted` says which ones to make, as in
    `pytest_dp.claiming.method_settings.OneRun`. Raises ClaimError if `base` is no dataset or cannot
    hold the canaries, or if too few can be made of it.
    """

    def __init__(self, base: Any, wanted: Any, seed: int) -> None:
        if not kind_of(base):
            raise ClaimError(
                f"one_run adds canaries to the data, and {describe_non_dataset(base)}."
            )
        records = records_of(base)
        if isinstance(wanted, int):
            chosen = mislabel_records(records, wanted, seed)
        else:
            chosen = _draw_records(wanted, seed) if is_strategy(wanted) else list(wanted)
        self.base, self.dataset = base, rebuild(base, chosen)  # which refuses what does not fit
        self._pool, self._own = RecordPool([base, self.dataset]), len(records)

    def __len__(self) -> int:
        return length(self.dataset)

    def add_canaries(self, inside: Bools) -> Any:
        """Return the base followed by the canaries that are True in `inside`: shape (canaries,)."""
        added = self._own + np.flatnonzero(inside)
        return self._pool.dataset((*range(self._own), *added.tolist()))


def check_relation(relation: Relation | None) -> None:
    """Raise ClaimError unless neighbours are those with one record more or less."""
    if relation != AddRemoveOne():
        given = "no neighbors=" if relation is None else str(relation)
        raise ClaimError(
            f"one_run adds or leaves out single records, and the claim has {given}. Write "
            "neighbors='add_remove_one' and inputs=, such as inputs=[data]."
        )


def mislabel_records(records: Sequence[Any], count: int, seed: int) -> list[Any]:
    """Return `count` distinct records that the data lacks: each has the last field of another one.

    Raises ClaimError if fewer can be made.
    """
    rng = np.random.default_rng(seed)
    there = {key(record) for record in records}
    last = {key(_last_field(record)[1]): _last_field(record) for record in records}
    made: list[Any] = []
    pairs = len(records) * len(last)
    for at in rng.choice(pairs, min(pairs, MAX_DRAWN_PAIRS + count), replace=False).tolist():
        record, (name, value) = records[at // len(last)], list(last.values())[at % len(last)]
        changed = with_field(record, name, value)
        if name is not None and key(changed) not in there:
            there.add(key(changed))
            made.append(changed)
            if len(made) == count:
                return made
    raise ClaimError(
        f"canaries={count:,}, but only {plural(len(made), 'record')} can be made of the data by "
        "giving one the last field of another"
        + (f", as with {describe_record(records[0])}" if records else "")
        + ". Write the records themselves, canaries=[...], a Hypothesis strategy for them, or a "
        "smaller number."
    )


def _last_field(record: Any) -> tuple[Any, Any]:
    """Return the name and the value of a record's last field."""
    return list(fields_of(record).items())[-1]


def _draw_records(strategy: Any, seed: int) -> list[Any]:
    """Return `CANARIES` records of a strategy; raise ClaimError if it gives fewer."""
    # Hypothesis is loaded by now.
    from pytest_dp.pairs.drawing import draw_values
    from pytest_dp.pairs.pair_strategies import next_draw

    drawn = draw_values(strategy, seed)
    tried = (next_draw(drawn, "canaries") for _ in range(MAX_DRAWS))
    values = list(islice((one.value for one in tried if one is not None), CANARIES))
    if len(values) == CANARIES:
        return values
    raise ClaimError(f"canaries: the strategy gave {len(values):,} of {CANARIES:,} records.")
