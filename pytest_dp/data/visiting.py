"""Values as text, type by type: what all ways of writing a value have in common.

A way of writing is a subclass: `describing.Describer` for people, `python_source.SourceWriter` for
Python, and `records.stable_texts.Canonical`, which is the same in every process. It says what
differs. What a type of dataset adds to each of them is said by its `types.DataType`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar

from pytest_dp.basics.reprs import safe_repr
from pytest_dp.data.types import DataType, type_of

MAX_DEPTH = 20
"""Levels of containers that are gone through: some hold themselves. Fewer: what is deeper is not
seen."""

PLAIN = (type(None), bool, int, float, complex, str, bytes)


class Visitor:
    """Writes a value by its type; `depth` is how many others it is inside of."""

    kinds: ClassVar[tuple[tuple[Any, Callable[[Any, Any, int], str]], ...]] = ()
    """Further types, each with how a value of it is written; they go before all others."""

    def text(self, value: Any, depth: int = 0) -> str:
        """Return a value of any type as text."""
        if type(value) in PLAIN:
            return self.plain(value)
        if depth > MAX_DEPTH:
            return self.too_deep(value)
        for kinds, write in self.kinds:
            if isinstance(value, kinds):
                return write(self, value, depth + 1)
        for kinds, name in _CONTAINERS:
            if isinstance(value, kinds):
                return str(getattr(self, name)(value, depth + 1))
        data = type_of(value)
        if data is not None:
            return self.dataset(value, data, depth + 1)
        if is_dataclass(value) and not isinstance(value, type):
            given = {field.name: getattr(value, field.name) for field in fields(value)}
            return self.record(value, given, depth + 1)
        return self.other(value, depth + 1)

    def plain(self, value: Any) -> str:
        return repr(value)

    def too_deep(self, value: Any) -> str:  # noqa: ARG002  such as a list that contains itself
        return "..."

    def join_texts(self, texts: Iterable[str]) -> str:
        return ", ".join(texts)

    def several(self, values: Iterable[Any], depth: int) -> str:
        return self.join_texts(self.text(value, depth) for value in values)

    def named(self, values: Mapping[str, Any], depth: int) -> str:
        return self.join_texts(
            f"{name}={self.text(value, depth)}" for name, value in values.items()
        )

    def as_list(self, value: Any, depth: int) -> str:
        return f"[{self.several(value, depth)}]"

    def as_tuple(self, value: Any, depth: int) -> str:
        return f"({self.several(value, depth)}{',' if len(value) == 1 else ''})"

    def as_set(self, value: Any, depth: int) -> str:
        """Return a set, which iterates in another order in each process."""
        return f"{{{self.join_texts(sorted(self.text(item, depth) for item in value))}}}"

    def as_dict(self, value: Any, depth: int) -> str:
        items = value.items()
        texts = (f"{self.text(key, depth)}: {self.text(item, depth)}" for key, item in items)
        return f"{{{self.join_texts(texts)}}}"

    def dataset(self, value: Any, data: DataType, depth: int) -> str:  # noqa: ARG002
        return self.other(value, depth)

    def record(self, value: Any, given: Mapping[str, Any], depth: int) -> str:
        return f"{self.name(type(value))}({self.named(given, depth)})"

    def name(self, kind: type) -> str:
        return kind.__name__

    def other(self, value: Any, depth: int) -> str:  # noqa: ARG002
        return safe_repr(value)


_CONTAINERS: tuple[tuple[Any, str], ...] = (
    (list, "as_list"),
    (tuple, "as_tuple"),
    ((set, frozenset), "as_set"),
    (dict, "as_dict"),
)
