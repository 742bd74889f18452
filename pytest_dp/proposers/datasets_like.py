"""A strategy of datasets like those of a claim, with constants of the code among their values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import chain, cycle, islice
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from pytest_dp.basics.errors import ClaimError
from pytest_dp.data import is_real, rebuilt, records_of
from pytest_dp.data.conversion import length
from pytest_dp.data.fields import columns_of, fields_of, with_known
from pytest_dp.data.ordering import distinct, representatives
from pytest_dp.data.relations import OfRecords
from pytest_dp.proposers.odd_values import LARGEST_NUMBER

MAX_NEW = 8
"""Records that are drawn into a dataset. With fewer, conditions on several are met more seldom."""
MAX_LENGTH = 300
"""Records of a dataset, where their number may vary. With fewer, conditions on long datasets are
not met; with more, each run takes longer."""
MAX_TEMPLATES = 100
"""Records of the examples that drawn ones are made of. With fewer, rare kinds are left out."""

Records = list[Any]


def datasets_like(
    examples: Sequence[Any], relation: OfRecords, constants: Sequence[Any]
) -> st.SearchStrategy[Any]:
    """Return a strategy of datasets of the examples' type, made of records like theirs.

    Values are those of the examples, numbers between them, and constants of the code, around which
    its behaviour may change.
    """
    bases = [records_of(example) for example in examples]
    like, longest = max(examples, key=length), max(bases, key=len)
    every = list(distinct(chain.from_iterable(bases)))
    columns = columns_of(every)
    templates = [every[at] for at in representatives(every, MAX_TEMPLATES)][:MAX_TEMPLATES]
    new = st.lists(_records(templates, columns, constants), max_size=MAX_NEW)
    if relation.name.startswith("replace"):  # the mechanism may rely on the number of records
        lists = st.builds(_put_first, new, st.sampled_from(bases))
    else:
        usual = min(len(longest), MAX_LENGTH)
        sizes = st.sampled_from([0, usual]) | st.integers(0, MAX_NEW) | st.integers(0, MAX_LENGTH)
        lists = st.builds(lambda rows, n: [*rows, *islice(cycle(longest), n)], new, sizes)
    return lists.map(lambda records: _make(like, records))


def _make(like: Any, records: Records) -> Any:
    try:
        return rebuilt(like, records)
    except ClaimError:  # such as 6.5 in a column of whole numbers
        return reject()


def _put_first(rows: Records, base: Records) -> Records:
    """Return as many records as before, the first of which are new."""
    return [*rows, *base[len(rows) :]][: len(base)]


def _records(
    templates: Records, columns: dict[Hashable, dict[Hashable, Any]], constants: Sequence[Any]
) -> st.SearchStrategy[Any]:
    """Return a strategy of records: those of examples, with one field changed, or with many."""
    values = {
        name: _values(list(column.values()), constants)
        for name, column in columns.items()
        if column
    }
    kept = st.sampled_from(templates)
    if not values:
        return kept
    changes = st.one_of(*(st.tuples(st.just(name), of) for name, of in values.items()))
    one_changed = st.builds(lambda record, change: with_known(record, *change), kept, changes)

    @st.composite
    def all_changed(draw: st.DrawFn) -> Any:
        record = draw(kept)
        for name in fields_of(record):
            record = with_known(record, name, draw(values[name]))
        return record

    return st.one_of(all_changed(), one_changed, kept)


def _values(known: list[Any], constants: Sequence[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy of values of one field."""
    if all(isinstance(value, str) for value in known):
        texts = [value for value in constants if isinstance(value, str)]
        around = [text for value in texts for text in (f"{value}x", f"x{value}")]
        return st.sampled_from([*known, *texts, *around])
    if not all(is_real(value) and not isinstance(value, bool) for value in known):
        return st.sampled_from(known)
    if {0, 1}.issuperset(known):  # flags
        return st.sampled_from(known)
    is_whole = all(isinstance(value, int) for value in known)
    numbers = [value for value in constants if is_real(value) and abs(value) <= LARGEST_NUMBER]
    ends = [*known, *numbers]
    if is_whole:
        return st.sampled_from(known) | st.integers(int(min(ends)) - 1, int(max(ends)) + 1)
    low, high = float(min(ends)), float(max(ends))
    return st.sampled_from(known) | st.floats(low, high, allow_nan=False)
