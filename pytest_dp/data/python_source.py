"""Values as Python source that makes equal values, such as a pair that broke a claim."""

from __future__ import annotations

import inspect
import math
import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from importlib import import_module
from itertools import accumulate
from operator import attrgetter
from typing import Any
from uuid import UUID

from pytest_dp.basics.errors import note_fault
from pytest_dp.basics.reprs import LINE_WIDTH
from pytest_dp.data.describing import PLAIN, Visitor
from pytest_dp.data.equality import key
from pytest_dp.data.types import DataType
from pytest_dp.declaration import Neighbors

SHORT_NAMES = {"numpy": "np", "pandas": "pd", "polars": "pl", "pyarrow": "pa"}
"""The names under which libraries are imported, as their documentation has them."""
MOST_VALUES = 1_000_000 // 8
"""Values inside of a value that are written. Derived: they are compared in a second or two."""


@dataclass(frozen=True, slots=True)
class Code:
    """An expression, and the modules that it names."""

    text: str
    modules: frozenset[str] = frozenset()


def source_of(value: Any, *, lines: bool = False) -> Code | None:
    """Return an expression that makes an equal value; None if there is none, or it is too long.

    The expression is evaluated to compare the values. It is one line; with `lines`, long lists are
    broken into several. Errors of the value's objects give None.
    """
    writer = SourceWriter(lines=lines)
    try:
        code = Code(writer.text(value), frozenset(writer.modules))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = eval(code.text, _namespace(code.modules))
        return code if key(made) == key(value) else None
    except NoSource:
        return None
    except Exception as error:  # whatever the objects of users and libraries do
        note_fault(error, "writing a value as code")
        return None


def as_source(value: Any) -> str | None:
    """Return the text of `source_of`; None if there is none."""
    code = source_of(value)
    return None if code is None else code.text


class NoSource(Exception):  # noqa: N818  a way out, not an error
    """Raised if there is no source for an object."""


class SourceWriter(Visitor):
    """Writes a value as an expression, and collects its `modules`; raises NoSource without one."""

    def __init__(self, *, lines: bool = False) -> None:
        self.modules: set[str] = set()
        self._lines, self._values = lines, 0

    def text(self, value: Any, depth: int = 0) -> str:
        """Return a value as an expression; raise NoSource if there is none, or too many values."""
        self._values += 1
        if self._values > MOST_VALUES:
            raise NoSource(value)
        if type(value) not in _EXACT and isinstance(value, _EXACT):  # a subclass may be more
            return self.other(value, depth + 1)
        return super().text(value, depth)

    def plain(self, value: Any) -> str:
        if type(value) is float and not math.isfinite(value):
            return f'float("{value}")'
        if type(value) is complex:
            return f"complex({self.plain(value.real)}, {self.plain(value.imag)})"
        return repr(value)

    def too_deep(self, value: Any) -> str:
        raise NoSource(value)

    def join_texts(self, texts: Iterable[str]) -> str:
        """Join texts with commas; in several lines if they are long and `lines` is set."""
        parts = list(texts)
        if not self._lines or sum(map(len, parts)) <= LINE_WIDTH:
            return ", ".join(parts)
        ends = accumulate(len(part) + len(", ") for part in parts)
        rows: dict[int, list[str]] = {}
        for end, part in zip(ends, parts, strict=True):
            rows.setdefault(end // LINE_WIDTH, []).append(part.replace("\n", "\n    "))
        return "\n    " + ",\n    ".join(", ".join(row) for row in rows.values()) + "\n"

    def as_set(self, value: Any, depth: int) -> str:
        text = super().as_set(value, depth) if value else ""
        return f"frozenset({text})" if type(value) is frozenset else text or "set()"

    def dataset(self, value: Any, data: DataType, depth: int) -> str:  # noqa: ARG002
        return data.source(value, self)

    def record(self, value: Any, given: Mapping[str, Any], depth: int) -> str:
        taken = {field.name: given[field.name] for field in fields(value) if field.init}
        return super().record(value, taken, depth)

    def name(self, value: Any) -> str:
        """Return the full name of a class or function; raise NoSource if it cannot be imported."""
        module, name = value.__module__, value.__qualname__
        if module == "__main__" or attrgetter(name)(sys.modules[module]) is not value:
            raise NoSource(value)
        return name if module == "builtins" else f"{self.of(module)}.{name}"

    def of(self, module: str) -> str:
        """Add a module to those that the text names, and return its name in the text."""
        self.modules.add(module)
        return SHORT_NAMES.get(module, module)

    def other(self, value: Any, depth: int) -> str:
        """Return an object as an expression by its name or repr; raise NoSource for others."""
        kind = type(value)
        if inspect.isroutine(value) or inspect.isclass(value):
            return self.name(value)
        if isinstance(value, Enum):
            return f"{self.name(kind)}.{value.name}"
        if isinstance(value, tuple) and hasattr(value, "_asdict"):
            return f"{self.name(kind)}({self.join_named(value._asdict(), depth)})"
        library = kind.__module__.partition(".")[0]
        numeric = library == "numpy" and value.dtype.kind in "biufcMm"
        plain = library in sys.stdlib_module_names and isinstance(value, _BY_REPR)
        if numeric or plain or library == "pandas":  # others may print anything
            return self._by_repr(value, library if library in SHORT_NAMES else kind.__module__)
        raise NoSource(value)

    def neighbors(self, value: Neighbors, depth: int) -> str:
        return f"{self.of('pytest_dp')}.{value.name}({self.join_named(value.said, depth)})"

    kinds = ((Neighbors, neighbors),)

    def _by_repr(self, value: Any, module: str) -> str:
        """Return an object's repr with its module; raise NoSource if its time zone is missing."""
        text = "NA" if repr(value) == "<NA>" else repr(value)  # of pandas
        zone = getattr(value, "tzinfo", None)
        if module == "builtins":
            return text
        if zone is not None and module not in SHORT_NAMES and self.text(zone) not in text:
            raise NoSource(value)
        name = self.of(module)
        return text if text.startswith(f"{name}.") else f"{name}.{text}"


_EXACT = (*PLAIN, list, tuple, set, frozenset, dict)
_BY_REPR = (date, time, timedelta, tzinfo, Decimal, Fraction, UUID, range, bytearray)
"""Types of the standard library whose repr is source."""


def _namespace(modules: Iterable[str]) -> dict[str, Any]:
    """Import modules, and return the namespace in which to evaluate the text of a `Code`."""
    loaded = {module: import_module(module) for module in modules}
    whole = {name: sys.modules[name] for name in (module.partition(".")[0] for module in modules)}
    return whole | {SHORT_NAMES[name]: loaded[name] for name in loaded if name in SHORT_NAMES}
