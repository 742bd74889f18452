"""Tables that belong together, such as users and their orders: no relation knows their records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

from pytest_dp.basics.errors import ClaimError
from pytest_dp.basics.reprs import plural
from pytest_dp.data.conversion import kind_of
from pytest_dp.data.fields import fields_of
from pytest_dp.data.types import type_of


def refuse_several_tables(where: str, example: Any, unit: Any) -> None:
    """Raise ClaimError if an example holds tables in place of records.

    Tables with the same columns may be the records of a list: those of clients, whose owner only a
    function can tell.
    """
    in_rows = bool(kind_of(example))
    tables = {
        name: entry
        for name, entry in _entries(example).items()
        if (columns := _columns(entry))
        and (not in_rows or not isinstance(entry, Mapping) or _is_in(unit, columns))
    }
    alike = len({_columns(entry) for entry in tables.values()}) == 1
    if not tables or (in_rows and alike and (unit is None or callable(unit))):
        return
    column = unit if isinstance(unit, str) else "user_id"
    raise ClaimError(
        f"{where} holds {plural(len(tables), 'table')} ({', '.join(tables)}), and one of them as "
        "a whole would count as a record. Allowed: one table, or a function as neighbors= that "
        f"leaves out all that belongs to one {column}, in every table, such as:\n"
        f"{_without_one(example, tables, column)}"
    )


def _is_in(unit: Any, columns: tuple[Any, ...]) -> bool:
    return isinstance(unit, str) and unit in columns


def _without_one(example: Any, tables: dict[str, Any], column: str) -> str:
    """Return the code of a function that yields neighbours of a few tables.

    Tables without the column, such as public ones, stay as they are.
    """
    is_polars = type(next(iter(tables.values()))).__module__.startswith("polars")
    rest = f"t.filter(t[{column!r}] != who)" if is_polars else f"t[t[{column!r}] != who]"
    owned = f" if {column!r} in t.columns"
    if all(column in _columns(table) for table in tables.values()):
        owned = ""
    rest = f"{rest}{owned} else t" if owned else rest
    each = "tables"
    made = f"type(tables)({rest} for t in tables)"
    if isinstance(example, Mapping):
        each, made = "tables.values()", f"{{name: {rest} for name, t in tables.items()}}"
    elif is_dataclass(example):
        each, made = (
            "vars(tables).values()",
            f"type(tables)(*({rest} for t in vars(tables).values()))",
        )
    elif hasattr(example, "_fields"):
        made = f"type(tables)(*({rest} for t in tables))"
    return (
        "def without_one(tables):\n"
        f"    for who in sorted({{who for t in {each}{owned} for who in t[{column!r}]}}):\n"
        f"        yield {made}"
    )


def _entries(example: Any) -> dict[str, Any]:
    """Return the values of an object by their names, or places."""
    if isinstance(example, Mapping):
        return {str(name): value for name, value in example.items()}
    fields = fields_of(example)
    named = fields.items() if None not in fields else ()
    return {f"[{name}]" if isinstance(name, int) else str(name): value for name, value in named}


def _columns(value: Any) -> tuple[Any, ...]:
    """Return the names of a table's columns; none of what is no table."""
    if not kind_of(value):
        return ()
    data = type_of(value)
    columns = None if data is None else data.columns(value)
    return tuple(columns or ())
