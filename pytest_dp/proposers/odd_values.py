"""Values that no example holds, in every field: missing, infinite, empty and far ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from pytest_dp.basics.errors import ClaimError
from pytest_dp.data import is_real, rebuilt, records_of
from pytest_dp.data.conversion import length
from pytest_dp.data.fields import columns_of, fields_of, with_known
from pytest_dp.data.ordering import in_turn, representatives
from pytest_dp.data.relations import Pair, Relation

LARGEST_NUMBER = 2.0**32
"""Largest number that is proposed. Beyond, floats are too coarse for the noise of most
mechanisms."""
MAX_RECORDS = 4
"""Records of the examples that are changed. With more, a field that only matters in some kinds of
records is tried in these too."""
MAX_BESIDE = 24
"""Records that stand beside the changed one, where the relation lets their number vary."""


def odd_pairs(
    examples: Sequence[Any],
    relation: Relation,
    values_of: Callable[[Sequence[Any]], list[Any]],
) -> Iterator[Pair]:
    """Yield neighbours of which one holds a record with an odd value in one field.

    Each field of a few records is tried with each value that `values_of` has, by the values that
    the field has in the examples: `far_values` or `missing_values`.
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
        for value in values_of(list(columns.get(name, {}).values()))
    )


def missing_values(values: Sequence[Any]) -> list[Any]:
    """Return what stands for no value, and infinities, in a field of such values.

    There is none for values of unknown kinds.
    """
    if any(map(is_real, values)):
        # Where all are whole numbers, the field has most likely a type without NaN.
        return [None] if _is_whole(values) else [math.nan, math.inf, -math.inf, None]
    return ["", None] if any(isinstance(value, str) for value in values) else []


def far_values(values: Sequence[Any]) -> list[Any]:
    """Return numbers far outside of those among some values.

    They are texts where all values are texts of numbers. There are none where floats are too coarse
    for them.
    """
    texts = [value for value in values if isinstance(value, str)]
    if texts and not any(map(is_real, values)):
        with suppress(ValueError):
            return [str(far) for far in far_values(list(map(_number_in, texts)))]
    numbers = [abs(float(value)) for value in values if is_real(value)]
    largest = max(filter(math.isfinite, numbers), default=1.0)
    far = 10.0 * 10 ** math.ceil(math.log10(max(largest, 1.0)))
    if not numbers or far > LARGEST_NUMBER:
        return []
    return [int(far), -int(far)] if _is_whole(values) else [far, -far]


def _number_in(text: str) -> float:
    return int(text) if text.strip().lstrip("-").isdecimal() else float(text)


def _is_whole(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int) for value in values if value is not None)


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
