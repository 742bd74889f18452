"""D and D' of a counterexample: in full where they are short, else by what differs between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from textwrap import wrap
from typing import Any

from pytest_dp.basics.reprs import LABEL_LENGTH, LINE_WIDTH, plural
from pytest_dp.report import numbers

MAX_LINES = 3
"""Lines of an input, or differing records, that are shown. More hide the rest of a failure; fewer
the input."""
MAX_PARAM_LINES = 6
"""Lines of a mechanism's arguments that are shown. More hide the rest of a failure."""
MAX_DIFFERENCES = 8
"""Differing fields that are shown of a record, and runs that show which of them matters. More hide
the rest of a failure."""

TYPE_CHECKING = False
if TYPE_CHECKING:  # the table and the headline need no inputs, and pytest shows them at every exit
    from pytest_dp.data.fields import Change
    from pytest_dp.data.types import DataType
    from pytest_dp.results.result import Counterexample


def inputs(example: Counterexample, width: int) -> list[str]:
    """Return lines for D, for D', and for the parameters that were drawn with them."""
    from pytest_dp.data import describe
    from pytest_dp.data.describing import whole

    room = MAX_LINES * (width - len("D' = "))
    d1, d2 = (whole(data, room) for data in (example.d1, example.d2))
    remark = f"({example.difference})" if example.difference else ""
    if d1 is None or d2 is None:
        differing = _changes(example, width)
        d2 = "D, except for this" if differing else _summary(example.d2, width)
        lines = field("D  = ", _summary(example.d1, width - 5), width)
        lines += field("D' = ", f"{d2} {remark}".rstrip() + ":" * bool(differing), width)
        lines += differing
    else:
        lines = _in_full(field("D  = ", d1, width), field("D' = ", d2, width), remark, width)
        if min(len(d1), len(d2)) > width:  # long ones look alike
            few = _changes(example, width)
            lines += few if len(few) <= MAX_LINES else []
    lines += field("     ", _idle(example), width) if example.idle else []
    if example.params:
        values = (f"{name} = {describe(value, room)}" for name, value in example.params.items())
        lines += field("with ", ", ".join(values), width)
    return lines


def _in_full(lines1: list[str], lines2: list[str], remark: str, width: int) -> list[str]:
    """Return both, with the remark behind the second where it fits."""
    column = max(len(lines1[-1]) if len(lines1) == 1 else 0, len(lines2[-1]), 25) + 3
    if column + len(remark) > width:
        column = len(lines2[-1]) + 3
    if not remark:
        return lines1 + lines2
    if len(lines2) > 1 or column + len(remark) > width:
        return lines1 + lines2 + field(" " * 5, remark, width)
    return [*lines1, f"{lines2[0]:{column}}{remark}"]


def _summary(data: Any, width: int) -> str:
    """Summarize an input: its type, its size, and its columns if it has any."""
    from pytest_dp.data import describe
    from pytest_dp.data.types import type_of

    kind = type_of(data)
    columns = None if kind is None else kind.columns(data)
    if kind is None or not columns:
        return describe(data, width)
    said = f"{kind.name}, {plural(kind.length(data), 'record')} of "
    said += f"{plural(len(columns), 'column')}: "
    return said + _list_names([str(name) for name in columns], width - len(said))


def _changes(example: Counterexample, width: int) -> list[str]:
    """Return lines about the differences, one for each record or part."""
    from pytest_dp.data import key, records_of
    from pytest_dp.data.fields import changes, parts
    from pytest_dp.data.types import type_of

    found, kind = changes(example.d1, example.d2), type_of(example.d1)
    if found and kind is not None:
        texts = (_change(change, kind, example) for change in found)
        shown = [text for _, some in zip(range(MAX_LINES), texts, strict=False) for text in some]
        more = len(found) - MAX_LINES
    else:
        inside = list(parts(example.d1, example.d2))
        if found is not None and inside and not inside[0][0]:
            rows = (list(map(key, records_of(data))) for data in (example.d1, example.d2))
            how = "of other types or labels" if next(rows) == next(rows) else "in another order"
            inside, shown = [], [f"the same records, {how}"]
        else:
            shown = [_from_to(f"D{place}", *both) for place, *both in inside[:MAX_DIFFERENCES]]
        more = len(inside) - MAX_DIFFERENCES
    if more > 0:
        shown.append(f"... and in {plural(more, 'more place')}")
    return [line for text in shown for line in field("     ", text, width)]


def _change(change: Change, kind: DataType, example: Counterexample) -> Iterator[str]:
    """Yield a record, by its place: what it holds, or what differs in it if it was replaced."""
    from pytest_dp.data.fields import ABSENT, parts, record_of

    sides = record_of(example.d1, change.before), record_of(example.d2, change.after)
    before, after = (_without(example.idle, side) for side in sides)
    if change.before is ABSENT or change.after is ABSENT:
        name, record = ("D'", after) if change.before is ABSENT else ("D", before)
        at = kind.place(change.at)
        place = f"{name}{at} = " if at else ""
        partly = record is not sides[change.before is ABSENT]
        yield f"only in {name}: {place}{_record(record, partly=partly)}"
    else:
        differing = list(parts(before, after))
        for inside, *both in differing[:MAX_DIFFERENCES]:
            yield _from_to(f"D{kind.place(change.at, inside)}", *both)
        if differing[MAX_DIFFERENCES:]:
            yield f"... and {plural(len(differing) - MAX_DIFFERENCES, 'more value')} of this record"


def _idle(example: Counterexample) -> str:
    """Return which fields change nothing, and how that was seen; empty if none was seen to."""
    from pytest_dp.data import key
    from pytest_dp.data.fields import ABSENT, changes, fields_of, record_of

    found = changes(example.d1, example.d2) if example.idle else None
    if found is None or len(found) != 1:
        return ""
    (change,) = found
    sides = record_of(example.d1, change.before), record_of(example.d2, change.after)
    order, values = fields_of(sides[change.before is ABSENT]), "other"
    if ABSENT not in sides:
        values = "equal"
        other = fields_of(sides[1])
        order = {name: v for name, v in order.items() if key(v) != key(other.get(name, ABSENT))}
    names = _ranges(example.idle, list(order))
    one = len(example.idle) == 1
    values = f"an {values} value" if one else f"{values} values"
    return (
        f"({names} seem{'s' * one} not to matter: with {values}, {MAX_DIFFERENCES} runs on the "
        "same random numbers gave the same outputs)"
    )


def _without(idle: Sequence[Any], record: Any) -> Any:
    """Return a record without some of its fields, if these are not those of a class."""
    from pytest_dp.data.fields import fields_of

    if not idle or type(record) not in (dict, list, tuple):
        return record
    return {name: value for name, value in fields_of(record).items() if name not in idle}


def _record(record: Any, *, partly: bool) -> str:
    """Return a record in full, or as many fields as fit; `partly` means that others are missing."""
    from pytest_dp.data import describe
    from pytest_dp.data.describing import whole

    room = MAX_LINES * LINE_WIDTH
    text = whole(record, room)
    if type(record) is not dict or (text is not None and not partly):
        return text or describe(record, room)
    shown = [f"{name!r}: {describe(value, LABEL_LENGTH)}" for name, value in record.items()]
    ends = accumulate(len(text) + len(", ") for text in shown)
    fitting = [text for text, end in zip(shown, ends, strict=True) if end <= room]
    more = len(shown) - len(fitting)
    return f"{{{', '.join([*fitting, f'... and {more:,} more' if more else '...'])}}}"


def _from_to(place: str, before: Any, after: Any) -> str:
    """Show a part on D and on D'; long texts from where they differ."""
    from pytest_dp.data import describe

    if (
        isinstance(before, str)
        and isinstance(after, str)
        and max(map(len, (repr(before), repr(after)))) > LABEL_LENGTH
    ):
        letters = enumerate(zip(before, after, strict=False))
        alike = next((at for at, (one, other) in letters if one != other), 0)
        start = max(alike - LABEL_LENGTH // 4, 0)
        place, before, after = f"{place}[{start}:]", before[start:], after[start:]
    return f"{place}: {describe(before, LABEL_LENGTH)} -> {describe(after, LABEL_LENGTH)}"


def _list_names(names: Sequence[str], room: int) -> str:
    """List names, without some between the first and the last where they take too much room."""
    for shown in range(len(names), 1, -1):
        text = ", ".join([*names[: shown - 1], *["..."] * (shown < len(names))])
        if len(text) + len(", ") + len(names[-1]) <= room:
            return f"{text}{' ' if text.endswith('...') else ', '}{names[-1]}"
    return names[0] if len(names) == 1 else f"{names[0]}, ... {names[-1]}"


def _ranges(names: Sequence[Any], order: Sequence[Any]) -> str:
    """Return names of fields in their order, those in a row by the first and the last."""
    rows: list[list[str]] = []
    last = None
    for at, name in enumerate(order):
        if name in names:
            if last != at - 1:
                rows.append([])
            rows[-1].append(f"[{name}]" if isinstance(name, int) else str(name))
            last = at
    return ", ".join(f"{row[0]} to {row[-1]}" if len(row) >= 3 else ", ".join(row) for row in rows)


def field(label: str, text: str, width: int) -> list[str]:
    """Return `text` after `label` in lines, wrapped under itself and cut if it is very long."""
    room = width - len(label)
    lines = [
        line
        for part in text.splitlines() or [""]
        for line in wrap(part, room, break_on_hyphens=False) or [""]
    ]
    if len(lines) > MAX_PARAM_LINES:
        left_out = sum(len(line) for line in lines[MAX_PARAM_LINES - 1 :])
        lines = [
            *lines[: MAX_PARAM_LINES - 1],
            f"... ({numbers.format_count(left_out)} more characters)",
        ]
    return [
        f"{label if i == 0 else ' ' * len(label)}{line}".rstrip() for i, line in enumerate(lines)
    ]


def wrap_lines(text: str) -> list[str]:
    """Wrap a text into lines as wide as a report."""
    return [
        line
        for part in text.splitlines()
        for line in wrap(part, LINE_WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    ]
