"""Numbers and strings in a mechanism's code, and in the project's functions that it calls.

What decides a branch is mostly written down somewhere: in a comparison, in a variable of the
module, in a default, on an object. Nothing is run to find it.
"""

from __future__ import annotations

import dis
import functools
import inspect
import math
import sys
import types
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pytest_dp.sampling.captured import is_installed, is_library, names_in

MAX_OBJECTS, MAX_MEMBERS, MAX_CONSTANTS = 2_000, 64, 200
"""Functions and objects that are looked into, members of a container, and constants in all."""
MAX_LENGTH = 100
"""Of a string."""
MAX_BITS = 1_000
"""Of a whole number: beyond, there is no float of its size."""
_DECIDING = frozenset(["COMPARE_OP", "CONTAINS_OP"])
_LOADING = frozenset(["LOAD_CONST", "LOAD_SMALL_INT", "LOAD_CONST_IMMORTAL"])


@dataclass(frozen=True, slots=True)
class Constant:
    """A number or a string, and where it was found: ``"a constant in stats.py:14"``."""

    value: int | float | str
    origin: str = ""


def corner_values() -> list[Constant]:
    """Numbers at which code that knows nothing of them may still go wrong."""
    small = (0, 1, -1, 2, 127, 128, 255, 256, 32767, 32768, -128, -129)
    large = (2**31 - 1, 2**31, -(2**31) - 1, 0.5, 1e-9, 1e6, -1e6, 1e9, -1e9)
    return [Constant(value, "an ordinary corner value") for value in (*small, *large)]


def constants_of(mechanism: Any, params: dict[str, Any]) -> list[Constant]:
    """The constants that a mechanism may compare its data with, those in comparisons first.

    Parameters
    ----------
    mechanism : callable
        Its closures, defaults, the variables and functions of modules that it names, and the
        attributes and methods of objects are followed; not into installed packages.
    params : dict
        Its further arguments.
    """
    found: dict[tuple[type, Any], tuple[int, Constant]] = {}
    for rank, constant in islice(_walk(mechanism, params), 50 * MAX_CONSTANTS):
        key = type(constant.value), constant.value
        if key not in found or found[key][0] > rank:
            found[key] = rank, constant
    ordered = sorted(found.values(), key=lambda entry: entry[0])
    return [constant for _, constant in ordered[:MAX_CONSTANTS]]


def _walk(mechanism: Any, params: dict[str, Any]) -> Iterator[tuple[int, Constant]]:
    queue: deque[tuple[Any, str]] = deque([(mechanism, "")])
    queue += ((value, f"the argument {name}") for name, value in params.items())
    seen: set[int] = set()
    held = []  # so that no id is used twice
    while queue and len(seen) < MAX_OBJECTS:
        thing, place = queue.popleft()
        if is_constant(thing):
            yield 1, Constant(_plain(thing), place)
            continue
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        held.append(thing)
        found, inside = _opened(thing, place)
        yield from found
        queue += inside


def _opened(thing: Any, place: str) -> tuple[list[tuple[int, Constant]], list[tuple[Any, str]]]:
    """The constants in the code of a thing, and what it holds; nothing if it does not let look."""
    try:
        if type(thing) is not types.FunctionType:
            return [], list(_inside(thing, place))
        if not is_project(thing.__code__, thing.__module__):
            return [], []
        return list(_in_code(thing.__code__)), list(_of_function(thing))
    except Exception:  # such as of an attribute that is computed, and cannot be
        return [], []


def is_constant(value: Any) -> bool:
    """Whether this is a number or a string that may stand in data."""
    kind = type(value)
    if issubclass(kind, str):
        return 0 < str.__len__(value) <= MAX_LENGTH
    if issubclass(kind, int):
        return kind is not bool and int.bit_length(value) <= MAX_BITS
    return issubclass(kind, float | np.integer | np.floating) and math.isfinite(value)


def _plain(value: Any) -> Any:
    """The same as Python's own type, whatever a subclass makes of it."""
    kind = type(value)
    if issubclass(kind, np.generic):
        return np.generic.item(value)
    if issubclass(kind, str):
        return str.__str__(value)
    return int.__int__(value) if issubclass(kind, int) else float.__float__(value)


def is_project(code: types.CodeType, module: str | None = None) -> bool:
    """Whether code is neither of the standard library nor of an installed package."""
    if module is not None and (is_library(module) or is_installed(sys.modules.get(module))):
        return False
    return _is_project_file(code.co_filename)


_OWN = str(Path(__file__).parents[1])
_STANDARD = str(Path(dis.__file__).parent)


@functools.cache
def _is_project_file(file: str) -> bool:
    installed = {"site-packages", "dist-packages"}.intersection(Path(file).parts)
    return not (installed or file.startswith((_OWN, _STANDARD, "<frozen")))


def _in_code(code: types.CodeType) -> Iterator[tuple[int, Constant]]:
    """The constants that code loads, and what is written inside of it."""
    file, line = Path(code.co_filename).name, code.co_firstlineno
    for step, after in pairwise([*dis.get_instructions(code), None]):
        assert step is not None
        line = (step.positions.lineno if step.positions else None) or line
        if step.opname not in _LOADING:
            continue
        if isinstance(step.argval, types.CodeType):
            yield from _in_code(step.argval)
            continue
        decides = after is not None and after.opname in _DECIDING
        for value in _members(step.argval):
            if is_constant(value):
                yield 0 if decides else 1, Constant(value, f"a constant in {file}:{line}")


def _members(value: Any) -> Iterable[Any]:
    return value if isinstance(value, tuple | frozenset) else (value,)


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


def _inside(thing: Any, place: str) -> Iterator[tuple[Any, str]]:
    """What an object that is no function holds; none of its own methods is called."""
    kind = type(thing)
    if kind is types.MethodType:
        yield from ((thing.__self__, place), (thing.__func__, place))
    elif issubclass(kind, functools.partial):
        yield from ((part, place) for part in (thing.func, *thing.args, *thing.keywords.values()))
    elif issubclass(kind, dict):
        for key, value in islice(dict.items(thing), MAX_MEMBERS):
            yield from ((key, place), (value, place))
    elif issubclass(kind, list | tuple | set | frozenset):
        base = next(one for one in (list, tuple, set, frozenset) if issubclass(kind, one))
        yield from ((value, place) for value in islice(base.__iter__(thing), MAX_MEMBERS))
    elif issubclass(kind, np.ndarray):
        yield from ((value, place) for value in np.asarray(thing).flat[:MAX_MEMBERS])
    elif issubclass(kind, type):
        yield from _of_class(thing)
    else:
        wrapped = inspect.getattr_static(thing, "__wrapped__", None)
        yield from [(wrapped, place)] if callable(wrapped) else _of_object(thing)


def _of_class(cls: type) -> Iterator[tuple[Any, str]]:
    for base in cls.__mro__:
        if is_library(base.__module__) or is_installed(sys.modules.get(base.__module__)):
            continue
        for name, value in list(vars(base).items()):
            if name not in ("__module__", "__qualname__", "__doc__"):
                yield getattr(value, "__func__", value), f"{base.__name__}.{name}"


def _of_object(thing: Any) -> Iterator[tuple[Any, str]]:
    cls = type(thing)
    if is_library(cls.__module__) or is_installed(sys.modules.get(cls.__module__)):
        return
    with suppress(Exception):
        own = object.__getattribute__(thing, "__dict__")
        yield from ((value, f"the attribute {name}") for name, value in list(own.items()))
    for slot in _slots(cls):
        with suppress(Exception):
            yield object.__getattribute__(thing, slot), f"the attribute {slot}"
    yield cls, cls.__name__


def _slots(cls: type) -> list[str]:
    """The names of all attributes that are kept outside of a dict."""
    own = (name for base in cls.__mro__ for name, value in vars(base).items() if _is_slot(value))
    return [name for name in own if name != "__dict__"]


def _is_slot(value: Any) -> bool:
    return type(value) is types.MemberDescriptorType
