"""Canaries: records that are each in the data or not, by a coin of its own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Bools
from pytest_dp.basics.errors import ClaimError
from pytest_dp.basics.reprs import plural
from pytest_dp.claiming.setting_fields import is_strategy
from pytest_dp.data import describe_record, key, kind_of, records_of
from pytest_dp.data.conversion import length, no_dataset, rebuilt
from pytest_dp.data.fields import fields_of, with_field
from pytest_dp.data.record_pool import RecordPool
from pytest_dp.data.relations import AddRemoveOne, Relation

MAX_DRAWN_PAIRS = 100_000
"""Pairs of records among which canaries are chosen. More take longer; fewer are further from the
data."""
MAX_DRAWS = 2_000
"""Draws of a strategy for canaries. More take longer; fewer may not do."""
CANARIES = 1_000
"""Canaries of a strategy. More show a smaller loss; fewer change less of what is trained."""


class Canaries:
    """Records beside a dataset, and the datasets that hold some of them.

    `dataset` has the canaries alone.

    Parameters
    ----------
    base : dataset
        What is there in any case.
    wanted : int, sequence or strategy
        As of `pytest_dp.claiming.method_settings.OneRun`.
    seed : int
        Of what is drawn.

    Raises
    ------
    ClaimError
        If the input is no dataset, cannot hold the records, or if too few can be made of it.
    """

    def __init__(self, base: Any, wanted: Any, seed: int) -> None:
        if not kind_of(base):
            raise ClaimError(f"one_run adds canaries to the data, and {no_dataset(base)}.")
        records = records_of(base)
        if isinstance(wanted, int):
            chosen = mislabel_records(records, wanted, seed)
        else:
            chosen = _draw_records(wanted, seed) if is_strategy(wanted) else list(wanted)
        self.base, self.dataset = base, rebuilt(base, chosen)  # which refuses what does not fit
        self._pool, self._own = RecordPool([base, self.dataset]), len(records)

    def __len__(self) -> int:
        return length(self.dataset)

    def holding(self, inside: Bools) -> Any:
        """Return the dataset with those canaries that are `inside`, behind its own records."""
        added = self._own + np.flatnonzero(inside)
        return self._pool.dataset((*range(self._own), *added.tolist()))


def check_relation(relation: Relation | None) -> None:
    """Refuse claims about other neighbours than those with one record more or less."""
    if relation != AddRemoveOne():
        given = "no neighbors=" if relation is None else str(relation)
        raise ClaimError(
            f"one_run adds or leaves out single records, and the claim has {given}. Write "
            "neighbors='add_remove_one' and inputs=, such as inputs=[data]."
        )


def mislabel_records(records: Sequence[Any], count: int, seed: int) -> list[Any]:
    """Return records that are not there, made of others by giving them the last field of a third.

    They are distinct. Raises ClaimError if there are not so many.
    """
    rng = np.random.default_rng(seed)
    there = {key(record) for record in records}
    last = {key(_last(record)[1]): _last(record) for record in records}
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


def _last(record: Any) -> tuple[Any, Any]:
    return list(fields_of(record).items())[-1]


def _draw_records(strategy: Any, seed: int) -> list[Any]:
    # Hypothesis is loaded by now.
    from pytest_dp.pairs.drawing import draws
    from pytest_dp.pairs.pair_strategies import drawing

    drawn = draws(strategy, seed)
    tried = (drawing(drawn, "canaries") for _ in range(MAX_DRAWS))
    values = list(islice((one.value for one in tried if one is not None), CANARIES))
    if len(values) == CANARIES:
        return values
    raise ClaimError(f"canaries: the strategy gave {len(values):,} of {CANARIES:,} records.")
