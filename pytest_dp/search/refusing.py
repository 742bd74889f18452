"""Derived inputs that a mechanism refuses: the claim promises nothing for them.

Pairs that are derived from examples may hold a record twice, or two records with the same id,
though none of the examples does. If the mechanism raises at all of these, it checks its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

from pytest_dp.claim import Promise
from pytest_dp.datasets import describe, key, records_of
from pytest_dp.datasets.records import columns_of
from pytest_dp.datasets.relations import OfRecords, Pair
from pytest_dp.inputs.sources import PairSource
from pytest_dp.sampling.calling import Call
from pytest_dp.search.observing import Clock, Observer
from pytest_dp.settings import Settings

_WHOLE = -1
"""Stands for whole records among the numbers of columns."""


class Repeats:
    """Whether a dataset repeats what no example repeats: records, or values of a column of ids.

    Parameters
    ----------
    examples : sequence of dataset
    """

    def __init__(self, examples: Sequence[Any]) -> None:
        columns: dict[int, bool] = {}
        for example in examples:
            for at, cells in _columns(example):
                unique = len(set(cells)) == len(cells) and (at == _WHOLE or _is_id(cells))
                columns[at] = columns.get(at, True) and unique
        self._unique = {at for at, unique in columns.items() if unique}

    def __call__(self, dataset: Any) -> bool:
        """Whether this dataset does."""
        return bool(self._unique) and any(
            at in self._unique and len(set(cells)) < len(cells) for at, cells in _columns(dataset)
        )


def repeats_of(promise: Promise) -> Callable[[Any], bool]:
    """The `Repeats` of the examples that a claim gives; without these, nothing repeats."""
    inputs = promise.inputs
    if isinstance(inputs, list | tuple) and isinstance(promise.relation, OfRecords):
        return Repeats(inputs)
    return lambda dataset: False  # noqa: ARG005


def _columns(dataset: Any) -> Iterator[tuple[int, Sequence[Hashable]]]:
    records = records_of(dataset)
    if records:
        yield _WHOLE, list(map(key, records))
        for at, cells in enumerate(columns_of(records)):
            yield at, list(map(key, cells))


def _is_id(cells: Sequence[Hashable]) -> bool:
    return all(isinstance(cell, int | str) and not isinstance(cell, bool) for cell in cells)


def accepted(
    source: PairSource, promise: Promise, call: Call, settings: Settings, notes: list[str]
) -> PairSource:
    """The source without derived pairs that the mechanism refuses for repetitions.

    Parameters
    ----------
    source : PairSource
    promise : Promise
        With its inputs looked up.
    call : Call
        The mechanism; copies of it are run a few times.
    settings : Settings
    notes : list of str
        To which is added what was left out.
    """
    repeats = repeats_of(promise)
    doubtful = [pair for pair in source.given if repeats(pair.d1) or repeats(pair.d2)]
    if not doubtful or not 0 < len(doubtful) < len(source.given):
        return source
    observer = Observer(call, settings.seed or 0, Clock(settings.max_seconds))

    def refused(pair: Pair) -> bool:
        datasets = zip((pair.d1, pair.d2), pair.inputs, strict=True)
        return any(repeats(data) and _raises(observer, inputs) for data, inputs in datasets)

    if not observer.sees or not refused(doubtful[0]):
        return source
    left_out = [pair for pair in doubtful if refused(pair)]
    accepted_pairs = [p for p in source.given if not any(p is pair for pair in left_out)]
    example = next(d for d in (left_out[0].d1, left_out[0].d2) if repeats(d))
    notes.append(
        f"left out are {len(left_out)} derived pairs, such as with {describe(example)}: they "
        "repeat what none of the inputs repeats, and the mechanism raises there. Write pairs= to "
        "audit them"
    )
    return PairSource(accepted_pairs, source.proposers, source.generated)


def _raises(observer: Observer, data: Any) -> bool:
    observation = observer.observe(data)
    return observation is not None and observation.raised
