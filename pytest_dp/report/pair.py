"""D and D' of a counterexample, for people and as source: for a claim, and as a test.

Inputs are shown in full where they are short, else by what differs between them.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from textwrap import wrap
from typing import Any

from pytest_dp.basics.reprs import LABEL_LENGTH, LINE_WIDTH, list_names, list_ranges, plural
from pytest_dp.basics.whose_code import is_project_module
from pytest_dp.report import numbers

MAX_LINES = 3
"""Lines of an input, or differing records, that are shown. More hide the rest of a failure."""
MAX_PARAM_LINES = 6
"""Lines of a mechanism's arguments that are shown. More hide the rest of a failure."""
MAX_DIFFERENCES = 8
"""Differing fields of a record that are shown, and runs by which one is idle. More take room."""
TO_ADD = "If the mechanism takes such data, add an example, and the same audit is red:"
NEVER_GETS = 'If it never gets any, write beyond="off" into the claim.'
NOT_OF_A_PAIR = ("inputs", "pairs", "params", "neighbors", "composes", "search", "beyond")
"""Keywords of a claim that say nothing of a test on one pair."""
UP = 2
"""Given: the file of a test is in ``.dp/pairs/`` of the project."""

TYPE_CHECKING = False
if TYPE_CHECKING:  # the table and the headline need no inputs, and pytest shows them at every exit
    from pytest_dp.data.fields import Change
    from pytest_dp.data.python_source import Code
    from pytest_dp.data.types import DataType
    from pytest_dp.results.result import Counterexample, Result


def input_lines(example: Counterexample, width: int) -> list[str]:
    """Return lines for D, D' and drawn parameters; if D or D' is long, for what differs."""
    from pytest_dp.data import describe
    from pytest_dp.data.describing import describe_whole

    room = MAX_LINES * (width - len("D' = "))
    d1, d2 = (describe_whole(data, room) for data in (example.d1, example.d2))
    remark = f"({example.difference})" if example.difference else ""
    if d1 is None or d2 is None:
        differing = _change_lines(example, width)
        d2 = "D, except for this" if differing else _summary_of_input(example.d2, width)
        lines = field_lines("D  = ", _summary_of_input(example.d1, width - 5), width)
        lines += field_lines("D' = ", f"{d2} {remark}".rstrip() + ":" * bool(differing), width)
        lines += differing
    else:
        lines = _lines_in_full(
            field_lines("D  = ", d1, width), field_lines("D' = ", d2, width), remark, width
        )
        if min(len(d1), len(d2)) > width:  # long ones look alike
            few = _change_lines(example, width)
            lines += few if len(few) <= MAX_LINES else []
    lines += field_lines("     ", _idle_fields_text(example), width) if example.idle else []
    if example.params:
        values = (f"{name} = {describe(value, room)}" for name, value in example.params.items())
        lines += field_lines("with ", ", ".join(values), width)
    return lines


def _lines_in_full(lines1: list[str], lines2: list[str], remark: str, width: int) -> list[str]:
    """Return the lines of D and of D', with the remark behind D' if it fits, else below."""
    column = max(len(lines1[-1]) if len(lines1) == 1 else 0, len(lines2[-1]), 25) + 3
    if column + len(remark) > width:
        column = len(lines2[-1]) + 3
    if not remark:
        return lines1 + lines2
    if len(lines2) > 1 or column + len(remark) > width:
        return lines1 + lines2 + field_lines(" " * 5, remark, width)
    return [*lines1, f"{lines2[0]:{column}}{remark}"]


def _summary_of_input(data: Any, width: int) -> str:
    """Return an input's type, size and columns; without columns, its content, cut to `width`."""
    from pytest_dp.data import describe
    from pytest_dp.data.types import type_of

    kind = type_of(data)
    columns = None if kind is None else kind.columns(data)
    if kind is None or not columns:
        return describe(data, width)
    said = f"{kind.name}, {plural(kind.length(data), 'record')} of "
    said += f"{plural(len(columns), 'column')}: "
    return said + list_names([str(name) for name in columns], width - len(said))


def _change_lines(example: Counterexample, width: int) -> list[str]:
    """Return lines on the records or parts in which D and D' differ, and a count of others."""
    from pytest_dp.data import key, records_of
    from pytest_dp.data.fields import changed_records, value_differences
    from pytest_dp.data.types import type_of

    found, kind = changed_records(example.d1, example.d2), type_of(example.d1)
    if found and kind is not None:
        texts = (_describe_change(change, kind, example) for change in found)
        shown = [text for _, some in zip(range(MAX_LINES), texts, strict=False) for text in some]
        more = len(found) - MAX_LINES
    else:
        inside = list(value_differences(example.d1, example.d2))
        if found is not None and inside and not inside[0][0]:
            rows = (list(map(key, records_of(data))) for data in (example.d1, example.d2))
            how = "of other types or labels" if next(rows) == next(rows) else "in another order"
            inside, shown = [], [f"the same records, {how}"]
        else:
            shown = [
                _before_and_after(f"D{place}", *both) for place, *both in inside[:MAX_DIFFERENCES]
            ]
        more = len(inside) - MAX_DIFFERENCES
    if more > 0:
        shown.append(f"... and in {plural(more, 'more place')}")
    return [line for text in shown for line in field_lines("     ", text, width)]


def _describe_change(change: Change, kind: DataType, example: Counterexample) -> Iterator[str]:
    """Yield texts on a differing record: its content, or `MAX_DIFFERENCES` fields if replaced."""
    from pytest_dp.data.fields import ABSENT, record_of, value_differences

    sides = record_of(example.d1, change.before), record_of(example.d2, change.after)
    before, after = (_without_fields(example.idle, side) for side in sides)
    if change.before is ABSENT or change.after is ABSENT:
        name, record = ("D'", after) if change.before is ABSENT else ("D", before)
        at = kind.place(change.at)
        place = f"{name}{at} = " if at else ""
        partly = record is not sides[change.before is ABSENT]
        yield f"only in {name}: {place}{_record_text(record, partly=partly)}"
    else:
        differing = list(value_differences(before, after))
        for inside, *both in differing[:MAX_DIFFERENCES]:
            yield _before_and_after(f"D{kind.place(change.at, inside)}", *both)
        if differing[MAX_DIFFERENCES:]:
            yield f"... and {plural(len(differing) - MAX_DIFFERENCES, 'more value')} of this record"


def _idle_fields_text(example: Counterexample) -> str:
    """Return a remark on idle fields of the only differing record; empty if several differ."""
    from pytest_dp.data import key
    from pytest_dp.data.fields import ABSENT, changed_records, fields_of, record_of

    found = changed_records(example.d1, example.d2) if example.idle else None
    if found is None or len(found) != 1:
        return ""
    (change,) = found
    sides = record_of(example.d1, change.before), record_of(example.d2, change.after)
    order = fields_of(sides[change.before is ABSENT])
    one = len(example.idle) == 1
    values = "another value" if one else "other values"
    if ABSENT not in sides:
        values = "an equal value" if one else "equal values"
        other = fields_of(sides[1])
        order = {name: v for name, v in order.items() if key(v) != key(other.get(name, ABSENT))}
    names = list_ranges(example.idle, list(order))
    return (
        f"({names} seem{'s' * one} not to matter: with {values}, {MAX_DIFFERENCES} runs on the "
        "same random numbers gave the same outputs)"
    )


def _without_fields(idle: Sequence[Any], record: Any) -> Any:
    """Return a record as a dict without its `idle` fields; of other types, unchanged."""
    from pytest_dp.data.fields import fields_of

    if not idle or type(record) not in (dict, list, tuple):
        return record
    return {name: value for name, value in fields_of(record).items() if name not in idle}


def _record_text(record: Any, *, partly: bool) -> str:
    """Return a record as text, cut to `MAX_LINES`; `partly`: fields were taken out before."""
    from pytest_dp.data import describe
    from pytest_dp.data.describing import describe_whole

    room = MAX_LINES * LINE_WIDTH
    text = describe_whole(record, room)
    if type(record) is not dict or (text is not None and not partly):
        return text or describe(record, room)
    shown = [f"{name!r}: {describe(value, LABEL_LENGTH)}" for name, value in record.items()]
    ends = accumulate(len(text) + len(", ") for text in shown)
    fitting = [text for text, end in zip(shown, ends, strict=True) if end <= room]
    more = len(shown) - len(fitting)
    return f"{{{', '.join([*fitting, f'... and {more:,} more' if more else '...'])}}}"


def _before_and_after(place: str, before: Any, after: Any) -> str:
    """Return ``place: before -> after``; long texts begin shortly before they differ."""
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


def field_lines(label: str, text: str, width: int) -> list[str]:
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
    """Return the lines of a text, wrapped to the width of a report."""
    return [
        line
        for part in text.splitlines()
        for line in wrap(part, LINE_WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    ]


def reproduce_lines(result: Result) -> list[str]:
    """Return lines with the command that runs this audit again, unbroken."""
    label = "Reproduce:" if result.replayable else "Run again:"
    line = f"{label}  {replay_command(result)}"
    return [line] if len(line) <= LINE_WIDTH else [label, f"  {replay_command(result)}"]


def replay_command(result: Result) -> str:
    """Return the command that runs this audit again, with the seed if that repeats it."""
    seed = numbers.format_seed(result.seed)
    if "::" in result.name:
        name = result.name
        quoted = shlex.quote(name) if set(name) & set('"$`\\!') else f'"{name}"'
        seeded = [f"--dp-seed={seed}"] if result.replayable else []
        return " ".join([f"pytest {quoted}", *seeded, *replay_options(result)])
    return f"audit(..., seed=0x{seed})" if result.replayable else "audit(...)"


def replay_options(result: Result) -> list[str]:
    """Return the options that a replay needs to have the settings of this audit."""
    from pytest_dp.claiming.setting_fields import FIELDS, flag_of
    from pytest_dp.claiming.settings import NO_LIMIT, NO_MARGIN, settings_for

    vectorized = result.claim.arguments.vectorized is not None
    written = settings_for(result.claim.effort, vectorized=vectorized)
    said = [f"--dp-method={result.method}"] if result.method != written.method.name else []
    for name in ("alpha", "max_samples", "max_seconds", "margin"):
        value = getattr(result, name)
        if result.method in FIELDS[name].methods and value not in (None, getattr(written, name)):
            is_open = value == {"max_seconds": NO_LIMIT, "margin": NO_MARGIN}.get(name)
            text = str(value) if isinstance(value, int) else f"{value:.12g}"
            said.append(f"{flag_of(name)}={'none' if is_open else text}")
    return [*said, "--dp-accumulate"] if result.earlier_runs else said


def kept_pair_lines(result: Result) -> list[str]:
    """Return where the pair is kept as a test, else the pair as source, if it is short."""
    if not result.pair_file:
        return as_source_lines(result)
    lines = as_source_lines(result) if result.outside else []
    line = f"As a file:  {result.pair_file}"
    lines += [line] if len(line) <= LINE_WIDTH else ["As a file:", f"  {result.pair_file}"]
    return lines


def as_source_lines(result: Result) -> list[str]:
    """Return the pair, or inputs to add, as keywords of a claim; empty if too long or given."""
    from pytest_dp.data.describing import describe_whole
    from pytest_dp.data.python_source import as_source

    example, room = result.counterexample, 4 * LINE_WIDTH
    if example is None or result.claim.promise.pairs is not None:
        return []
    if result.outside:
        more = [as_source(data) or "" for data in result.to_add if describe_whole(data, room)]
        line = f"  inputs=[..., {', '.join(more)}]"
        if more and all(more) and len(line) <= room:
            return [*wrap_lines(TO_ADD), line, *wrap_lines(NEVER_GETS)]
    if describe_whole(example.d1, room) is None or describe_whole(example.d2, room) is None:
        return []  # nor is its source short
    sources = as_source(example.d1), as_source(example.d2)
    line = f"pairs=[({sources[0]}, {sources[1]})]"
    params = {name: as_source(value) for name, value in example.params.items()}
    if params:
        line += f", params={{{', '.join(f'{name!r}: {value}' for name, value in params.items())}}}"
    if None in (*sources, *params.values()) or len(line) > room:
        return []
    label = "As a test:  "
    return [f"{label}{line}"] if len(label + line) <= LINE_WIDTH else [label.rstrip(), f"  {line}"]


class NoTest(Exception):  # noqa: N818  shown as a note, not as an error
    """Why a counterexample has no file that runs as a test."""


def as_test(
    result: Result, mechanism: Any, keywords: Mapping[str, Any], file: str, root: Path
) -> str:
    """Return the source of a test of a mechanism on the pair that broke its claim.

    `keywords` are those of the claim, and `file` is where the test will be, relative to `root`.
    Raises NoTest if the mechanism, an input or a keyword has no source that makes an equal value.
    """
    example = result.counterexample
    assert example is not None
    function = str(getattr(mechanism, "__name__", type(mechanism).__name__))
    called = _source_code(mechanism, f"{function} cannot be imported by its name")
    inputs = [
        _source_code(data, f"there is no source that makes {name}, of type {type(data).__name__}")
        for name, data in (("D", example.d1), ("D'", example.d2))
    ]
    said = {name: value for name, value in keywords.items() if name not in NOT_OF_A_PAIR}
    if result.claim.promise.group > 1:  # which the guarantee is for
        said["neighbors"] = keywords["neighbors"]
    params = {**result.claim.arguments.params, **example.params}
    if params:
        said["params"] = {name: [value] for name, value in params.items()}
    source = {
        name: _source_code(value, f"there is no source for {name}= of the claim")
        for name, value in said.items()
    }
    modules = frozenset[str]().union(*(c.modules for c in (called, *inputs, *source.values())))
    claimed = ", ".join(f"{name}={code.text}" for name, code in source.items())
    name = re.sub(r"\W+", "_", function)
    # characters that end a line are escaped, to stay within a comment
    claim = "".join(char if char.isprintable() else repr(char)[1:-1] for char in result.name)
    text = f"""\
# D and D' on which {claim} broke its claim: red until it is fixed.
# Run it by: {" ".join(["pytest", file, *replay_options(result)])}
# It is written anew by each run that finds such a pair, and removed by one that passes.
{_import_statements(modules, root)}
D = {inputs[0].text}
D_PRIME = {inputs[1].text}


@pytest.mark.dp_claim({claimed}, pairs=[(D, D_PRIME)])
def test_{name}(dp_check):
    dp_check({called.text})
"""
    return text.encode("utf-8", "backslashreplace").decode()


def _source_code(value: Any, otherwise: str) -> Code:
    """Return the source of a value; raise NoTest with the text `otherwise` if there is none."""
    from pytest_dp.data.python_source import source_of

    code = source_of(value, lines=True)
    if code is None:
        raise NoTest(otherwise)
    return code


def _import_statements(modules: Iterable[str], root: Path) -> str:
    """Return code to import pytest and loaded modules, and to put folders in `root` on the path."""
    from pytest_dp.data.python_source import SHORT_NAMES

    def import_line(module: str) -> str:
        return f"import {module}" + (f" as {SHORT_NAMES[module]}" if module in SHORT_NAMES else "")

    ours = sorted(name for name in modules if is_project_module(name))
    folders = sorted({place for name in ours if (place := _import_folder(name, root)) is not None})
    others = sorted({*modules, "pytest", *(["pathlib", "sys"] if folders else [])} - set(ours))
    ahead = [
        f"sys.path.insert(0, str(pathlib.Path(__file__).parents[{UP}] / {place!r}))"
        for place in folders
    ]
    blocks = [map(import_line, others), [*ahead, *map(import_line, ours)]]
    return "\n".join(f"\n{line}" for line in map("\n".join, blocks) if line) + "\n"


def _import_folder(module: str, root: Path) -> str | None:
    """Return the folder a module is imported from, relative to the root; None if outside."""
    file = getattr(sys.modules[module], "__file__", None)
    if file is None:
        return None
    path = Path(file).resolve()
    if path.name == "__init__.py":
        path = path.parent
    with suppress(ValueError, IndexError):
        return path.parents[module.count(".")].relative_to(root.resolve()).as_posix()
    return None
