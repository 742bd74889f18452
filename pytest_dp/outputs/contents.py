"""What objects hold, and what is handed out only once."""

from __future__ import annotations

import copy
import enum
import sys
from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from functools import lru_cache
from itertools import islice
from types import ModuleType
from typing import Any

import numpy as np

MAX_READ = 1_000
"""Elements that are read out of an iterator, which may be endless. Larger: endless iterators cost
more time for each run; smaller: what comes later goes unseen (users are told). By hand."""
_MAX_ITERATOR_DEPTH = 3
"""Levels of containers in which iterators are looked for. More cost time for every output; deeper
iterators are only compared by their types. By hand."""


class Read(list[Any]):
    """The elements of an iterator, in the order in which it gave them.

    Attributes
    ----------
    kind : str
        Its type.
    goes_on : bool
        Whether it had more than `MAX_READ`.
    """

    kind = "iterator"
    goes_on = False

    def __repr__(self) -> str:
        return f"<{self.kind} {super().__repr__()}>"


def holds_iterator(output: Any, deep: int = _MAX_ITERATOR_DEPTH) -> bool:
    """Whether an output has an iterator, which can be read only once, or a view of a dict."""
    if isinstance(output, list | tuple):
        return deep > 0 and any(holds_iterator(element, deep - 1) for element in output)
    if isinstance(output, dict):
        return deep > 0 and any(holds_iterator(element, deep - 1) for element in output.values())
    kind: Any = type(output)
    return is_iterator(kind)


@lru_cache(maxsize=512)
def is_iterator(kind: Any) -> bool:
    """Whether objects of this type are iterators, or views of a dictionary."""
    return issubclass(kind, Iterator | KeysView | ValuesView | ItemsView)


def read_out(
    output: Any, failed: Callable[[BaseException], Any], deep: int = _MAX_ITERATOR_DEPTH
) -> Any:
    """An output with its iterators replaced by what they give.

    Where one raises, `failed` says what stands for the rest.
    """
    if type(output) in (list, tuple) and deep:
        return type(output)(read_out(element, failed, deep - 1) for element in output)
    if type(output) is dict and deep:
        return {key: read_out(element, failed, deep - 1) for key, element in output.items()}
    kind: Any = type(output)
    if not is_iterator(kind):
        return output
    read = Read()
    read.kind = kind.__name__
    try:
        iterator = iter(output)
        for element in islice(iterator, MAX_READ):
            read.append(copy.copy(element) if type(element) in (np.ndarray, list) else element)
        read.goes_on = len(read) == MAX_READ and _goes_on(iterator)
    except (Exception, SystemExit) as error:
        read.append(failed(error))
    return read


def _goes_on(iterator: Iterator[Any]) -> bool:
    try:
        next(iterator)
    except StopIteration:
        return False
    except (Exception, SystemExit):  # which would have been read, had it come before
        return True
    return True


def was_cut(output: Any, deep: int = _MAX_ITERATOR_DEPTH) -> bool:
    """Whether an iterator in an output had more elements than were read."""
    if isinstance(output, Read):
        return output.goes_on
    inside = output.values() if isinstance(output, dict) else output
    is_container = isinstance(output, list | tuple | dict)
    return is_container and deep > 0 and any(was_cut(element, deep - 1) for element in inside)


@lru_cache(maxsize=512)
def opens(kind: Any) -> bool:
    """Whether objects of this type are looked into, attribute by attribute.

    Not if they are made to be called, like functions, and not members of an enumeration, nor what
    the standard library keeps inside its own objects.
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
    """The attributes of an object by name: the public ones, or all if there are no others.

    None if it is not one to look into, or has none.
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
    public = {name: value for name, value in fields.items() if not name.startswith("_")}
    chosen = public or fields
    return {name: chosen[name] for name in sorted(chosen)} or None


def _is_mangled(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__")
