"""D and D' for places that many people read: which fields differ, and a digest of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from pytest_dp.basics.reprs import plural
from pytest_dp.report.pair import field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pytest_dp.data.differences import Change
    from pytest_dp.results.result import Counterexample

MAX_CHANGES = 8
"""How many differing records or fields are listed. More make a mark beside a line of code longer
than code hosts show."""


def brief_inputs(example: Counterexample, width: int) -> list[str]:
    """Return lines that say what D is, and where D' differs; no record is shown as a whole."""
    from pytest_dp.data.differences import changes, parts

    lines = field("D  = ", _in_brief(example.d1), width)
    remark = f" ({example.difference})" if example.difference else ""
    lines += field("D' = ", f"{_in_brief(example.d2)}{remark}", width)
    found = changes(example.d1, example.d2)
    if found is None:
        inside = [(place, *both) for place, *both in parts(example.d1, example.d2) if place]
        said = (f"D{place} differs" for place, *_ in inside)
    else:
        said = (text for change in found for text in _differing_fields(change, example))
    for text in islice(said, MAX_CHANGES):
        lines += field("     ", text, width)
    return lines


def _in_brief(data: Any) -> str:
    """Return the type, size and digest of an input; a number or an empty dataset as it is."""
    from pytest_dp.data import describe, kind_of
    from pytest_dp.data.conversion import length, type_in_words
    from pytest_dp.data.equality import digest

    if not kind_of(data) or isinstance(data, str):
        is_plain = isinstance(data, int | float)
        return repr(data) if is_plain else f"{type(data).__name__} #{digest(data).hex()[:8]}"
    if not length(data):
        return describe(data)
    return f"{type_in_words(data)}, {plural(length(data), 'record')}, #{digest(data).hex()[:8]}"


def _differing_fields(change: Change, example: Counterexample) -> Iterator[str]:
    """Yield the fields of a record that differ, or the names of those of one that came or went."""
    from pytest_dp.data.differences import ABSENT, parts, record_of
    from pytest_dp.data.equality import digest
    from pytest_dp.data.fields import fields_of
    from pytest_dp.data.types import type_of

    sides = record_of(example.d1, change.before), record_of(example.d2, change.after)
    if ABSENT in (change.before, change.after):
        name, record = ("D'", sides[1]) if change.before is ABSENT else ("D", sides[0])
        fields = [str(one) for one in fields_of(record) if one is not None]
        of = f" of {', '.join(fields[:MAX_CHANGES])}" if fields else ""
        yield f"only in {name}: a record{of}, #{digest(record).hex()[:8]}"
        return
    kind = type_of(example.d1)
    for inside, before, after in parts(*sides):
        place = inside if kind is None else kind.place(change.at, inside)
        yield f"D{place}: {before!r} -> {after!r}" if inside else f"D{place} differs"
