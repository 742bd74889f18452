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
"""Elements of an iterator that are read: there may be no end of them. More take longer; fewer miss
what comes late."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The outcome of a run that raised, which can reveal its input like any other output.

    `kind` is the name of the type. The trace is for readers: outcomes that differ in it alone are
    equal.
    """

    kind: str
    trace: str = field(default="", compare=False)
    message: str = ""

    @classmethod
    def of(cls, error: BaseException, trace: str = "") -> Self:
        """Return an exception as an outcome, with its message, notes and attributes as text."""
        try:
            said = str(error)
        except Exception:  # raised by its own __str__
            said = safe_repr(error)
        extra = "".join(f"; {name}={value!s}" for name, value in vars(error).items())
        return cls(type(error).__name__, trace, without_addresses(said + extra))

    @property
    def is_stated(self) -> bool:
        """True if the trace ends in a ``raise`` statement, not in an operation that failed."""
        lines = re.findall(r"^ +File .*\n +(.*)$", self.trace, re.MULTILINE)
        return bool(lines) and re.search(r"\braise\b", lines[-1]) is not None

    def __repr__(self) -> str:
        return f"raises {self.kind}" + (f": {self.message}" if self.message else "")


def all_raised(outputs: Iterable[Any]) -> bool:
    """Return whether every output is an exception."""
    return all(isinstance(output, Raised) for output in outputs)


def all_equal(outputs: Outputs) -> bool:
    """Return whether all outputs are equal, by `same`."""
    return all(same(outputs[0], output) for output in outputs)


def same(left: Any, right: Any, deep: int = 4) -> bool:
    """Return whether two outputs are equal, whatever their types; NaN equals NaN.

    Objects without a comparison of their own are compared by their attributes, `deep` levels down,
    and then by their reprs.
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
        same(left_fields[key], right_fields[key], deep - 1) for key in left_fields
    )


class IteratorElements(list[Any]):
    """The elements that were read out of an iterator, in its order."""

    kind = "iterator"
    """Its type."""
    goes_on = False
    """Whether it had more than is read."""

    def __repr__(self) -> str:
        return f"<{self.kind} {super().__repr__()}>"


@lru_cache(maxsize=512)
def is_iterator(kind: Any) -> bool:
    """Return whether objects of this type are iterators, or views of a dictionary."""
    return issubclass(kind, Iterator | KeysView | ValuesView | ItemsView)


def read_out(output: Any) -> Any:
    """Return an output; of an iterator, its first `MAX_ELEMENTS` elements, which uses it up.

    An exception while it is read is the last element.
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
        read.append(Raised.of(error))
    read.goes_on = len(read) > MAX_ELEMENTS
    del read[MAX_ELEMENTS:]
    return read


def was_cut(output: Any) -> bool:
    """Return whether an output was read out of an iterator with more than `MAX_ELEMENTS`."""
    return isinstance(output, IteratorElements) and output.goes_on


@lru_cache(maxsize=512)
def opens(kind: Any) -> bool:
    """Return whether objects of this type are read attribute by attribute.

    Not objects that can be called, members of enumerations, exceptions, nor objects of the standard
    library, but for those made to hold attributes.
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
    """Return the attributes of an object by name, private ones too; None for objects without.

    None also for types that are not read by attributes: see `opens`.
    """
    kind: Any = type(instance)
    if not opens(kind):
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
"""What some objects, such as `pandas.NA`, say of their type: no data."""


def _is_mangled(name: str) -> bool:
    """Return whether Python prefixes this name with that of the class."""
    return name.startswith("__") and not name.endswith("__")
