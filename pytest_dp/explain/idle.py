"""Fields of the record that D and D' differ in which change nothing: told beside it.

Other values are written there, and the mechanism is run with the same random numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from typing import Any

from pytest_dp.basics.errors import ClaimError
from pytest_dp.data import kind_of, records_of
from pytest_dp.data.conversion import length
from pytest_dp.data.equality import key
from pytest_dp.data.fields import ABSENT, Change, changes, fields_of, record_of, with_field
from pytest_dp.data.neighbours import Pair
from pytest_dp.data.record_pool import RecordPool
from pytest_dp.explain.runs import ENDS, PairRuns, changed_leaves
from pytest_dp.running.calling import Call
from pytest_dp.running.deadline import Deadline

CHECKED_NOISES = 8
"""Runs on the same noise in which a field changes nothing. More take longer; fewer: a field that
seldom matters is said not to."""
MAX_RECORDS = 20_000
"""Records of an input whose fields are looked at. More take longer; with fewer, large examples are
left out."""
MAX_OTHERS = 1_000
"""Records of an example that values are taken from. More take longer; with fewer, a value that
changes something is missed."""
FIRST_NOISES = 2
"""Runs on the same noise by which a field is looked at first. More take longer; fewer: more fields
are looked at again."""


def idle_fields(
    call: Call, pair: Pair, examples: Iterable[Any], seconds: float
) -> tuple[Hashable, ...]:
    """Return the fields that changed nothing in `CHECKED_NOISES` runs, while the record did.

    Of a record that was replaced they got the values that it has in D'; of one that only D or D'
    has, those of another record, there or in `examples`.
    """
    with suppress(*ENDS):
        return tuple(_idle(call, pair, examples, Deadline(seconds)))
    return ()


def _idle(call: Call, pair: Pair, examples: Iterable[Any], deadline: Deadline) -> list[Hashable]:
    change = _the_change(pair)
    if change is None:
        return []
    added = change.before is ABSENT
    dataset = pair.d2 if added else pair.d1
    pool = RecordPool([dataset])
    others = [change.after]
    if added or change.after is ABSENT:
        kin = (data for data in examples if kind_of(data) == kind_of(dataset))
        others = [*pool.records, *(row for data in kin for row in records_of(data)[:MAX_OTHERS])]
    mine = pool.records[change.at]
    new = {name: value for name in fields_of(mine) for value in _another(mine, name, others)}
    both = PairRuns(call, pair.inputs, deadline)
    if len(fields_of(mine)) < 2 or not new or not _noise_is_captured(both):
        return []

    def runs_on(fields: Sequence[Hashable]) -> PairRuns:
        at = pool.add(reduce(lambda row, name: with_field(row, name, new[name]), fields, mine))
        places = range(len(pool.records))
        data = pool.dataset((*places[: change.at], at, *places[change.at + 1 : count]))
        return PairRuns(call, replace(pair, d1=data, d2=data).inputs, deadline)

    count = len(pool.records)
    usual = runs_on(())

    def alike(fields: Sequence[Hashable], many: int) -> bool:
        try:
            runs = runs_on(fields)
        except ClaimError:  # no such dataset can hold it
            return False
        return not any(changed_leaves(usual.usual(0, at), runs.usual(0, at)) for at in range(many))

    idle: list[Hashable] = []
    for name in new:
        if alike([*idle, name], FIRST_NOISES):
            idle.append(name)
    named = dict(zip(fields_of(mine), fields_of(record_of(dataset, mine)), strict=True))
    return [named[name] for name in idle] if idle and alike(idle, CHECKED_NOISES) else []


def _the_change(pair: Pair) -> Change | None:
    """Return the only record in which D and D' differ; None if several do or D is too long."""
    of_a_kind = kind_of(pair.d1) and kind_of(pair.d1) == kind_of(pair.d2)
    if not of_a_kind or max(length(pair.d1), length(pair.d2)) > MAX_RECORDS:
        return None
    found = changes(pair.d1, pair.d2) or ()
    return found[0] if len(found) == 1 else None


def _noise_is_captured(runs: PairRuns) -> bool:
    """Return whether all noise is the same in these runs, and D and D' give different outputs."""
    return runs.repeats and any(
        changed_leaves(*runs.both(noise)) for noise in range(CHECKED_NOISES)
    )


def _another(mine: Any, name: Hashable, others: Sequence[Any]) -> list[Any]:
    """Return a value that the field has in another record, if any has another."""
    value = key(fields_of(mine)[name])
    for other in others:
        theirs = fields_of(other)
        if name in theirs and key(theirs[name]) != value:
            return [theirs[name]]
    return []
