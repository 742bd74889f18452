"""Constants, functions and objects that a mechanism can reach in the project's code.

No code of the project is run to find them.
"""

from __future__ import annotations

import dis
import functools
import inspect
import math
import sys
import types
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from pytest_dp.sampling.captured import is_installed, is_library, names_in

MAX_OBJECTS, MAX_MEMBERS = 2_000, 64
"""Functions and objects that are looked into, and members of a container. More reach constants
further away, and take longer before each audit. Chosen by hand."""
MAX_LENGTH = 100
"""Of a string that is taken for a constant: longer ones are mostly texts, such as queries or
messages. Chosen by hand."""
MAX_BITS = 1_000
"""Of a whole number: beyond, there is no float of its size."""


def reachable(mechanism: Any, params: dict[str, Any]) -> Iterator[tuple[Any, str]]:
    """Constants, functions and objects, each once, with its place: ``"the variable LIMIT"``.

    Parameters
    ----------
    mechanism : callable
        Its closures, defaults, the variables and functions of modules that it names, and the
        attributes and methods of objects are followed; not into installed packages.
    params : dict
        Its further arguments.
    """
    queue: deque[tuple[Any, str]] = deque([(mechanism, "")])
    queue += ((value, f"the argument {name}") for name, value in params.items())
    seen: set[int] = set()
    held = []  # so that no id is used twice
    while queue and len(seen) < MAX_OBJECTS:
        value, place = queue.popleft()
        if is_constant(value):
            yield value, place
            continue
        if id(value) in seen:
            continue
        seen.add(id(value))
        held.append(value)
        inside = _opened(value, place)
        if inside is not None:
            yield value, place
            queue += inside


def _opened(value: Any, place: str) -> list[tuple[Any, str]] | None:
    """What an object holds; None if it is not of the project, or raises when it is looked into."""
    try:
        if type(value) is not types.FunctionType:
            return list(_inside(value, place))
        is_ours = is_project(value.__code__, value.__module__)
        return list(_of_function(value)) if is_ours else None
    except Exception:  # such as of an attribute that is computed, and cannot be
        return None


def is_constant(value: Any) -> bool:
    """Whether this is a number or a string that may stand in data."""
    kind = type(value)
    if issubclass(kind, str):
        return 0 < str.__len__(value) <= MAX_LENGTH
    if issubclass(kind, int):
        return kind is not bool and int.bit_length(value) <= MAX_BITS
    return issubclass(kind, float | np.integer | np.floating) and math.isfinite(value)


def is_project(code: types.CodeType, module: str | None = None) -> bool:
    """Whether code is neither of the standard library nor of an installed package."""
    if module is not None and (is_library(module) or is_installed(sys.modules.get(module))):
        return False
    return is_project_file(code.co_filename)


_PYTEST_DP = str(Path(__file__).parents[1])
_STANDARD = str(Path(dis.__file__).parent)


@functools.cache
def is_project_file(file: str) -> bool:
    """Whether the code in a file is of the project, by the file's name."""
    installed = {"site-packages", "dist-packages"}.intersection(Path(file).parts)
    return not (installed or file.startswith((_PYTEST_DP, _STANDARD, "<frozen")))


def _of_function(function: types.FunctionType) -> Iterator[tuple[Any, str]]:
    """What a function can reach, each with its place."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield cell.cell_contents, f"the variable {name}"
        except ValueError:  # not bound yet
            continue
    for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield value, f"a default of {function.__name__}"
    names = sorted(names_in(function.__code__))
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, types.ModuleType):
            if not (is_library(value.__name__) or is_installed(value)):
                yield from (
                    (vars(value)[inner], f"{value.__name__}.{inner}")
                    for inner in names
                    if inner in vars(value)
                )
        elif value is not None:
            yield value, f"the variable {name}"


def _inside(value: Any, place: str) -> Iterator[tuple[Any, str]]:
    """What an object that is no function holds; none of its methods is called."""
    kind = type(value)
    if kind is types.MethodType:
        yield from ((value.__self__, place), (value.__func__, place))
    elif issubclass(kind, functools.partial):
        yield from ((part, place) for part in (value.func, *value.args, *value.keywords.values()))
    elif issubclass(kind, dict):
        for key, member in islice(dict.items(value), MAX_MEMBERS):
            yield from ((key, place), (member, place))
    elif issubclass(kind, list | tuple | set | frozenset):
        base = next(cls for cls in (list, tuple, set, frozenset) if issubclass(kind, cls))
        yield from ((member, place) for member in islice(base.__iter__(value), MAX_MEMBERS))
    elif issubclass(kind, np.ndarray):
        yield from ((member, place) for member in np.asarray(value).flat[:MAX_MEMBERS])
    elif issubclass(kind, type):
        yield from _of_class(value)
    else:
        wrapped = inspect.getattr_static(value, "__wrapped__", None)
        yield from [(wrapped, place)] if callable(wrapped) else _of_object(value)


def _of_class(cls: type) -> Iterator[tuple[Any, str]]:
    for base in cls.__mro__:
        if is_library(base.__module__) or is_installed(sys.modules.get(base.__module__)):
            continue
        for name, value in list(vars(base).items()):
            if name not in ("__module__", "__qualname__", "__doc__"):
                yield getattr(value, "__func__", value), f"{base.__name__}.{name}"


def _of_object(instance: Any) -> Iterator[tuple[Any, str]]:
    cls = type(instance)
    if is_library(cls.__module__) or is_installed(sys.modules.get(cls.__module__)):
        return
    with suppress(Exception):
        attributes = object.__getattribute__(instance, "__dict__")
        yield from ((value, f"the attribute {name}") for name, value in list(attributes.items()))
    for slot in _slots(cls):
        with suppress(Exception):
            yield object.__getattribute__(instance, slot), f"the attribute {slot}"
    yield cls, cls.__name__


def _slots(cls: type) -> list[str]:
    """The names of all attributes that are stored outside of a dict."""
    return [
        name
        for base in cls.__mro__
        for name, value in vars(base).items()
        if type(value) is types.MemberDescriptorType and name != "__dict__"
    ]
