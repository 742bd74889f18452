"""Values as text that is the same in every process, on every machine and after formatting code."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import textwrap
from typing import Any

import numpy as np

from pytest_dp.basics.faults import note_fault
from pytest_dp.basics.reprs import SHORT_LENGTH, safe_repr
from pytest_dp.basics.whose_code import is_project_file
from pytest_dp.data.describing import Visitor
from pytest_dp.data.equality import is_missing
from pytest_dp.data.types import DataType
from pytest_dp.declaration import Neighbors, Queries, Values

MAX_ITEMS = 1_000
"""Members of a container that are written. More: files are longer; fewer: a digest stands for
shorter ones."""


def digest_of_text(text: str) -> str:
    """Return a short stand-in for a text."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:12]


def text_of(value: Any) -> str:
    """Return a value as text: by its content, not its address; functions by name and source."""
    try:
        return Canonical().text(value)
    except Exception as error:  # values are the user's objects: anything may happen in them
        note_fault(error, "writing a value as text")
        return f"<{type(value).__name__}>"


def brief(text: str) -> str:
    """Return the text, or its beginning and a digest of it all."""
    return (
        text
        if len(text) <= SHORT_LENGTH
        else f"{text[: SHORT_LENGTH - 20]}... #{digest_of_text(text)}"
    )


class Canonical(Visitor):
    """Writes a value by its content."""

    def plain(self, value: Any) -> str:
        # The last digits of what is computed are the machine's.
        return repr(float(f"{value:.12g}") if type(value) is float else value)

    def as_list(self, value: Any, depth: int) -> str:
        if len(value) > MAX_ITEMS:
            return f"[#{digest_of_text(safe_repr(value))}] ({len(value):,} in all)"
        return super().as_list(value, depth)

    def array(self, value: Any, depth: int) -> str:
        if value.dtype.kind in "biufcSU" and value.size > SHORT_LENGTH:
            # a digest of its bytes is quicker
            content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
            return f"array(#{content}, {value.dtype}, {value.shape})"
        return f"array({self.text(value.tolist(), depth)}, {value.dtype})"

    def partial(self, value: Any, depth: int) -> str:
        called = self.text(value.func, depth), self.as_tuple(value.args, depth)
        return f"partial({', '.join(called)}, {self.as_dict(value.keywords, depth)})"

    def dataset(self, value: Any, data: DataType, depth: int) -> str:
        records = [_with_missing_values(record) for record in data.records(value)]
        return (
            f"{data.name}({self.text(data.columns(value), depth)}, {self.as_list(records, depth)})"
        )

    def other(self, value: Any, depth: int) -> str:
        if inspect.isroutine(value) or inspect.isclass(value):
            name, code = getattr(value, "__qualname__", safe_repr(value)), _source_of(value)
            return f"{name} #{digest_of_text(code)}" if code else name
        if getattr(type(value), "__repr__", None) is object.__repr__:
            return self.record(value, getattr(value, "__dict__", {}), depth)
        return safe_repr(value)

    def said(self, value: Any, depth: int) -> str:
        return f"{value.name}({self.named(value.said, depth)})"

    kinds = (
        ((str, bytes), lambda _self, value, _depth: repr(value)),
        (np.generic, lambda self, value, depth: self.text(value.item(), depth)),
        (np.ndarray, array),
        (Queries, lambda self, value, depth: f"queries({self.several(value.lengths, depth)})"),
        (Values, lambda self, value, depth: f"values({self.as_list(value.options, depth)})"),
        (Neighbors, said),
        (functools.partial, partial),
    )


def _source_of(value: Any) -> str:
    """Return the source of a function or class without comments and formatting.

    Empty where there is none, or where the code is not the project's.
    """
    try:
        if not is_project_file(inspect.getsourcefile(value) or "<frozen"):
            return ""
        source = textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError):
        return ""
    try:
        return ast.unparse(ast.parse(source))
    except SyntaxError:  # of a lambda within a call
        return "".join(source.split())


def _with_missing_values(record: Any) -> Any:
    """Return a record with None for each missing value, which libraries write differently."""
    if isinstance(record, tuple):
        return tuple(map(_with_missing_values, record))
    return None if is_missing(record) else record
