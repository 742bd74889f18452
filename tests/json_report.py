"""The JSON Schema of reports and the tables of docs/reference/json.md, made of the annotations.

``python tests/json_report.py`` writes them anew; tests compare them with what the package has.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from dataclasses import is_dataclass
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from pytest_dp.report.files import Document
from pytest_dp.report.record import Record, ShownCounterexample
from pytest_dp.results.outcome import Blame, Estimate, Risk
from pytest_dp.results.result import Result

ROOT = Path(__file__).parents[1]
SCHEMA, PAGE = ROOT / "pytest_dp/report/record.schema.json", ROOT / "docs/reference/json.md"
TABLES = {"Document": Document, "Claims": Record}
TABLES |= {"Witness": ShownCounterexample}
TABLES |= {kind.__name__: kind for kind in (Blame, Estimate, Risk)}
PLAIN = {str: "string", bool: "boolean", float: "number"}


def explained(kind: type) -> dict[str, str]:
    """The fields that a class explains, in its docstring or in one behind the field."""
    said = re.findall(r"^(\w+) : .*\n((?: {4}.*\n?)+)", inspect.getdoc(kind) or "", re.MULTILINE)
    (made,) = ast.parse(inspect.getsource(kind)).body if is_dataclass(kind) else (None,)
    for field, text in pairwise(getattr(made, "body", ())):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            said.append((ast.unparse(field.target), ast.literal_eval(text.value)))
    return {
        name: re.sub(r"\bNone\b", "null", " ".join(text.replace("`", "").split()))
        for name, text in said
    }


def described(kind: type) -> dict[str, Any]:
    """The schema of a class."""
    hints, texts = get_type_hints(kind, include_extras=True), {}
    for part in (Result, *reversed(kind.__mro__)):  # which explains what all outcomes have
        texts |= explained(part)
    own = [name for name in kind.__annotations__ if name in hints]
    names = [name for name in dict.fromkeys([*own, *hints]) if name != "pictures"]
    fields = {name: {**schema_of(hints[name]), "description": texts[name]} for name in names}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": names,
        "properties": fields,
    }


def schema_of(kind: Any) -> dict[str, Any]:
    """The schema of what an annotation allows."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return schema_of(parts[0]) | parts[1]
    if origin is UnionType:
        (some,) = (schema_of(part) for part in parts if part is not NoneType)
        if "enum" in some or some.get("type", "object") == "object":
            return {"anyOf": [{"type": "null"}, some]}
        return some | {"type": [some["type"], "null"]}
    if origin is Literal:
        return {"enum": list(parts)}
    if origin is tuple:
        number = {} if parts[1:] == (...,) else {"minItems": len(parts), "maxItems": len(parts)}
        return {"type": "array", "items": schema_of(parts[0]), **number}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(parts[1])}
    if kind is Record:
        return {"$ref": "#/$defs/claim"}
    if is_dataclass(kind):
        return described(kind)
    return {"type": "integer", "minimum": 0} if kind is int else {"type": PLAIN[kind]}


def schema() -> dict[str, Any]:
    """That of a document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Report of pytest-dp",
        "description": (
            "What pytest --dp-report=FILE.json writes. The version grows when something is taken "
            "away or changes its meaning; what is new may come in any version. Numbers that are "
            "infinite, or not known, are null."
        ),
        **described(Document),
        "$defs": {"claim": described(Record)},
    }


def table(kind: type) -> str:
    """The fields of a class, as the page has them."""
    rows = ["| field | type | meaning |", "| --- | --- | --- |"]
    for name, field in described(kind)["properties"].items():
        rows.append(f"| `{name}` | {_type(field)} | {field['description']} |")
    return "\n".join(rows)


def _type(field: dict[str, Any]) -> str:
    if "enum" in field:
        return ", ".join(f'`"{value}"`' for value in field["enum"])
    kinds = field.get("type", ["object", "null"])
    return " or ".join([kinds] if isinstance(kinds, str) else kinds)


def page(text: str) -> str:
    """The page with the tables as they should be."""
    for heading, kind in TABLES.items():
        begun, found, rest = text.partition(f"\n## {heading}\n")
        before, _, old = rest.partition("| field | type |")
        _, end, after = old.partition("\n\n")
        text = "".join([begun, found, before, table(kind), end, after])
    return text


if __name__ == "__main__":
    SCHEMA.write_text(json.dumps(schema(), indent=2) + "\n")
    PAGE.write_text(page(PAGE.read_text()))
