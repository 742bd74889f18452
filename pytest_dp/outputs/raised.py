"""Outcomes of single runs of a mechanism: an output, or the exception that it raised.

Of an iterator, the elements are the output: they can be read only once, and are read when they
come. Objects are as good as the attributes that they hold.
"""

from __future__ import annotations

import copy
import enum
import re
import sys
from collections.abc import ItemsView, Iterable, Iterator, KeysView, ValuesView
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from types import ModuleType
from typing import Any, Self

import numpy as np

from pytest_dp.basics.arrays import Outputs
from pytest_dp.basics.reprs import safe_repr, without_addresses

MAX_ELEMENTS = 1_000
"""Elements that are read of an iterator, which may have no end. More take longer; fewer miss late
ones."""


@dataclass(frozen=True, slots=True)
class Raised:
    """An outcome of a run that raised, which can reveal its input as any output can.

    `kind` is the name of the type. `trace` is for readers, and does not count in comparisons.
    """

    kind: str
    trace: str = field(default="", compare=False)
    message: str = ""

    @classmethod
    def from_error(cls, error: BaseException, trace: str = "") -> Self:
        """Return an exception as an outcome, its message with its attributes, notes among them."""
        try:
            said = str(error)
        except Exception:  # raised by its own __str__
            said = safe_repr(error)
        extra = "".join(f"; {name}={value!s}" for name, value in vars(error).items())
        return cls(type(error).__name__, trace, without_addresses(said + extra))

    @property
    def is_stated(self) -> bool:
        """True if the last line of the trace is a ``raise`` statement; False without a trace."""
        lines = re.findall(r"^ +File .*\n +(.*)$", self.trace, re.MULTILINE)
        return bool(lines) and re.search(r"\braise\b", lines[-1]) is not None

    def __repr__(self) -> str:
        return f"raises {self.kind}" + (f": {self.message}" if self.message else "")


def all_raised(outputs: Iterable[Any]) -> bool:
    """Return whether every output is an exception; True for no outputs."""
    return all(isinstance(output, Raised) for output in outputs)


def all_equal(outputs: Outputs) -> bool:
    """Return whether all outputs equal the first by `equal_outputs`; True for no outputs."""
    return all(equal_outputs(outputs[0], output) for output in outputs)


def equal_outputs(left: Any, right: Any, deep: int = 4) -> bool:
    """Return whether two outputs are equal; NaN equals NaN.

    Arrays are compared by elements alone, other objects by ``==`` if they are of one type. Failing
    that, objects of one type are compared by their attributes, `deep` levels down, all others by
    repr.
    """
    try:
        with np.errstate(all="ignore"):
            if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
                return np.array_equal(left, right, equal_nan=left.dtype.kind in "fc")
            if type(left) is type(right) and bool(left == right):
                return True
    except Exception:  # objects that cannot be compared are told apart by what they hold
        pass
    left_fields, right_fields = attributes(left), attributes(right)
    if left_fields is None or right_fields is None or type(left) is not type(right) or not deep:
        return safe_repr(left) == safe_repr(right)
    return left_fields.keys() == right_fields.keys() and all(
        equal_outputs(left_fields[key], right_fields[key], deep - 1) for key in left_fields
    )


class IteratorElements(list[Any]):
    """A list of the elements that were read out of an iterator, in its order."""

    kind = "iterator"
    """The name of the iterator's type."""
    has_more = False
    """Whether the iterator had more elements than were read."""

    def __repr__(self) -> str:
        return f"<{self.kind} {super().__repr__()}>"


@lru_cache(maxsize=512)
def is_iterator(kind: Any) -> bool:
    """Return whether objects of a type are iterators, or views of a dictionary."""
    return issubclass(kind, Iterator | KeysView | ValuesView | ItemsView)


def read_out(output: Any) -> Any:
    """Return an output; in place of an iterator, read and return its first `MAX_ELEMENTS` elements.

    Reading uses the iterator up. An exception, or SystemExit, while reading is the last element.
    """
    kind: Any = type(output)
    if not is_iterator(kind):
        return output
    read = IteratorElements()
    read.kind = kind.__name__
    try:
        for element in islice(output, MAX_ELEMENTS + 1):
            read.append(copy.copy(element) if type(element) in (np.ndarray, list) else element)
    except (Exception, SystemExit) as error:
        read.append(Raised.from_error(error))
    read.has_more = len(read) > MAX_ELEMENTS
    del read[MAX_ELEMENTS:]
    return read


def is_cut(output: Any) -> bool:
    """Return whether an output was read out of an iterator that had more elements."""
    return isinstance(output, IteratorElements) and output.has_more


@lru_cache(maxsize=512)
def is_read_by_attributes(kind: Any) -> bool:
    """Return whether objects of a type are read attribute by attribute.

    False for callables, members of enumerations, modules, types, exceptions, objects without
    attributes of their own, and objects of the standard library except for those of `types` and
    `argparse`.
    """
    if issubclass(kind, type | ModuleType | enum.Enum | BaseException) or "__call__" in dir(kind):
        return False
    module = kind.__module__
    if module.partition(".")[0] in sys.stdlib_module_names and module not in _OPEN_MODULES:
        return False
    return kind.__dictoffset__ != 0 or any(vars(base).get("__slots__") for base in kind.__mro__)


_OPEN_MODULES = ("types", "argparse")
"""Those of the standard library with objects that are made to hold attributes."""


def attributes(instance: Any) -> dict[str, Any] | None:
    """Return the attributes of an object by sorted name, private ones too.

    None for objects without attributes, and for types that are not `is_read_by_attributes`.
    """
    kind: Any = type(instance)
    if not is_read_by_attributes(kind):
        return None
    fields: dict[str, Any] = {}
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            full = f"_{base.__name__.lstrip('_')}{name}" if _is_mangled(name) else name
            if name not in ("__dict__", "__weakref__") and hasattr(instance, full):
                fields[full] = getattr(instance, full)
    fields.update(getattr(instance, "__dict__", {}))
    return {name: fields[name] for name in sorted(fields) if name not in _OF_TYPES} or None


_OF_TYPES = ("__module__", "__doc__", "__qualname__")
"""Attributes of some objects, such as `pandas.NA`, that describe the type and are no data."""


def _is_mangled(name: str) -> bool:
    """Return whether Python prefixes an attribute's name with the name of its class."""
    return name.startswith("__") and not name.endswith("__")
