"""Objects as the attributes that they hold."""

from __future__ import annotations

import enum
import sys
from functools import lru_cache
from types import ModuleType
from typing import Any


@lru_cache(maxsize=512)
def opens(kind: Any) -> bool:
    """Return whether objects of this type are read attribute by attribute.

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
    """Return the attributes of an object by name, or None if it is not one to look into.

    Private ones count: properties may show them, and they are written to files with the object.
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
    return name.startswith("__") and not name.endswith("__")
