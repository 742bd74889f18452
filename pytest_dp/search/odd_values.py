"""Values that no example holds, in every field: missing, infinite, empty and far ones."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from pytest_dp.datasets import is_real, rebuilt, records_of
from pytest_dp.datasets.conversion import length
from pytest_dp.datasets.fields import columns_of, fields_of, with_known
from pytest_dp.datasets.ordering import in_turn, representatives
from pytest_dp.datasets.relations import Pair, Relation
from pytest_dp.errors import ClaimError
from pytest_dp.limits import LARGEST_NUMBER

MAX_RECORDS = 6
"""Records of the examples that are changed. With more, a field that only matters in some kinds of
records is tried in these too."""
MAX_BESIDE = 24
"""Records that stand beside the changed one, where the relation lets their number vary."""


def odd_pairs(examples: Sequence[Any], relation: Relation) -> Iterator[Pair]:
    """Yield neighbours of which one holds a record with an odd value in one field.

    Each field of a few records is tried with each value that a field of its kind may take: NaN,
    infinities, None, an empty text, numbers far outside of the examples.
    """
    like = max(examples, key=length)
    records = records_of(like)
    if not records:
        return
    columns = columns_of(record for example in examples for record in records_of(example))
    chosen = [records[at] for at in representatives(records, MAX_RECORDS)[:MAX_RECORDS]]
    yield from in_turn(
        _with_value(like, relation, record, name, value)
        for record in chosen
        for name in fields_of(record)
        for value in odd_values(list(columns.get(name, {}).values()))
    )


def odd_values(values: Sequence[Any]) -> list[Any]:
    """Return values that a field may take whose values are these; none for unknown kinds."""
    numbers = [value for value in values if is_real(value)]
    if numbers:
        largest = max([abs(float(n)) for n in numbers if math.isfinite(n)], default=1.0)
        far = 10.0 * 10 ** math.ceil(math.log10(max(largest, 1.0)))
        whole = all(isinstance(number, int) for number in values if number is not None)
        ends = [int(far), -int(far)] if whole else [far, -far]
        ends = ends if far <= LARGEST_NUMBER else []
        # Where all are whole numbers, the field has most likely a type without NaN.
        return [*ends, None] if whole else [math.nan, *ends, math.inf, -math.inf, None]
    return ["", None] if any(isinstance(value, str) for value in values) else []


def _with_value(
    like: Any, relation: Relation, record: Any, name: Hashable, value: Any
) -> Iterator[Pair]:
    odd = with_known(record, name, value)
    records = records_of(like)
    replaces = relation.name.startswith("replace")
    for beside in [records] if replaces else [records[:MAX_BESIDE], []]:
        with_odd = [odd, *beside[1:]] if replaces else [*beside, odd]
        try:
            pair = relation.pair(rebuilt(like, with_odd), rebuilt(like, beside))
        except ClaimError:  # such as a missing value in an array of whole numbers
            return
        if pair is not None:
            yield pair
