"""Objects that a mechanism can reach: closures, defaults, globals, members. No user code is run."""

from __future__ import annotations

import dis
import functools
import inspect
import random
import sys
import types
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np

from pytest_dp.basics.errors import noting_faults
from pytest_dp.basics.whose_code import is_installed, is_library, is_project_file, root_of

MAX_LOOKED_INTO = 64
"""First members of a container that are yielded. Fewer: constants in a list are not seen."""
MAX_MEMBERS = 1_000
"""Members yielded if they are no numbers or texts. Fewer: objects far back are not seen."""
GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
_IMPORTS = dis.opmap["IMPORT_NAME"]
_VALUES = (str, bytes, bool, int, float, complex, np.generic, type(None))


def reach(*roots: tuple[Any, str], foreign: bool = False) -> Iterator[tuple[Any, str]]:
    """Yield the objects that roots reach, nearest first, with places: ``"the variable LIMIT"``.

    Roots are mechanisms and arguments, with their places; they come first. Objects are yielded
    once, numbers and texts as often as they are found, in the same order in every process. Objects
    of installed packages are left out; with `foreign`, some 500 come last. The search ends after
    some 5,000 others. An error in an object ends the search inside of that object.
    """
    seen: dict[int, Any] = {}  # objects are held, so that no id is used twice
    homes = {root_of(_module_name_of(_unwrap(root))) for root, _ in roots}
    near, far = deque(roots), deque[tuple[Any, str]]()
    left = {True: 5 * 1_000, False: 1_000 // 2 if foreign else 0}
    while near or far:
        value, place = (near or far).popleft()
        if _is_value(value):
            yield value, place
        elif id(value) not in seen:
            seen[id(value)] = value
            home = root_of(_module_name_of(value))
            is_near = home in (*homes, "numpy") or not is_installed(sys.modules.get(home))
            if not (is_near or foreign):
                continue
            yield value, place
            with noting_faults("looking for objects of a mechanism"):  # as of computed attributes
                inside = list(islice(_inside(value, place, foreign), left[is_near]))
                left[is_near] -= sum(not _is_value(member) for member, _ in inside)
                (near if is_near else far).extend(inside)


def _is_value(obj: Any) -> bool:
    """Return whether an object is a number, a text, bytes or None."""
    return issubclass(type(obj), _VALUES)


def _unwrap(root: Any) -> Any:
    """Return the function inside of partials and bound methods; any other object as it is."""
    while issubclass(type(root), functools.partial | types.MethodType):
        root = root.__func__ if type(root) is types.MethodType else root.func
    return root


def _module_name_of(obj: Any) -> Any:
    """Return the name of the module of a function, of a class, or of an object's class."""
    if type(obj) in (types.FunctionType, types.BuiltinFunctionType):
        return obj.__module__
    return type.__getattribute__(obj if issubclass(type(obj), type) else type(obj), "__module__")


def _inside(obj: Any, place: str, foreign: bool) -> Iterator[tuple[Any, str]]:
    """Yield the objects that an object holds, with places; nothing for modules and generators."""
    kind = type(obj)
    if issubclass(kind, (*GENERATORS, types.ModuleType)):
        return
    if kind is types.FunctionType:
        yield from _objects_of_function(obj, foreign)
    elif kind in (types.MethodType, types.BuiltinMethodType):
        yield obj.__self__, place
        yield getattr(obj, "__func__", None), place
    elif issubclass(kind, functools.partial):
        yield from ((part, place) for part in (obj.func, *obj.args, *obj.keywords.values()))
    elif issubclass(kind, dict):
        yield from _members(dict.values(obj), place)
        yield from _members(dict.keys(obj), place)
    elif issubclass(kind, list | tuple | set | frozenset):
        base = next(base for base in (list, tuple, set, frozenset) if issubclass(kind, base))
        yield from _members(base.__iter__(obj), place)
    elif issubclass(kind, np.ndarray):
        yield from _members(np.asarray(obj).flat, place)
    elif issubclass(kind, type):
        yield from _objects_of_class(obj)
    else:
        yield from _objects_of_instance(obj)


def _members(values: Iterable[Any], place: str) -> Iterator[tuple[Any, str]]:
    """Yield the first `MAX_MEMBERS` members of a container, each with the container's place.

    Numbers and texts after the first `MAX_LOOKED_INTO` members are left out.
    """
    for at, value in enumerate(islice(values, MAX_MEMBERS)):
        if at < MAX_LOOKED_INTO or not _is_value(value):
            yield value, place


def _objects_of_function(function: types.FunctionType, foreign: bool) -> Iterator[tuple[Any, str]]:
    """Yield the values in a function's closure, defaults and attributes, and the globals it names.

    Yields nothing for functions of libraries, and no globals of installed functions unless
    `foreign`.
    """
    if is_library(function.__module__):
        return
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        if is_bound(cell):
            yield cell.cell_contents, f"the variable {name}"
    for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield value, f"a default of {function.__name__}"
    for name, value in function.__dict__.items():
        yield value, f"the attribute {name}"
    if foreign or is_project_file(code.co_filename):
        names = sorted(names_in(code))
        for name in names:
            held: Any = function.__globals__.get(name)
            if issubclass(type(held), types.ModuleType):
                yield from _objects_of_module(held, names, foreign)
            elif held is not None:
                yield held, f"the variable {name}"


def _objects_of_module(
    module: types.ModuleType, names: list[str], foreign: bool
) -> Iterator[tuple[Any, str]]:
    """Yield the variables with these names in a module, and in submodules that `names` has as well.

    Yields nothing for libraries, or for installed packages unless `foreign`.
    """
    if is_library(module.__name__) or (is_installed(module) and not foreign):
        return
    for name in names:
        value: Any = vars(module).get(name)
        if not issubclass(type(value), types.ModuleType):
            yield value, f"{module.__name__}.{name}"
        elif value.__name__.startswith(f"{module.__name__}."):
            yield from _objects_of_module(value, names, foreign)


def _objects_of_class(cls: type) -> Iterator[tuple[Any, str]]:
    """Yield the members of a class and of its bases, except for classes of libraries."""
    for base in type.__getattribute__(cls, "__mro__"):
        if not is_library(base.__module__):
            for name, value in list(vars(base).items()):
                if name not in ("__module__", "__qualname__", "__doc__"):
                    yield getattr(value, "__func__", value), f"{base.__name__}.{name}"


def _objects_of_instance(instance: Any) -> Iterator[tuple[Any, str]]:
    """Yield an object's class, attributes and slots, and the function that it wraps.

    Of objects of libraries, yields only that function and random generators among the attributes.
    """
    cls = type(instance)
    wrapped = inspect.getattr_static(instance, "__wrapped__", None)
    if callable(wrapped):
        yield wrapped, "the function inside"
    attributes: dict[str, Any] = {}
    with suppress(Exception):
        attributes |= object.__getattribute__(instance, "__dict__")
    if is_library(cls.__module__) and cls is not types.SimpleNamespace:
        # Library objects (scikit-learn estimators, say) may carry a random state; look no deeper.
        attributes = {k: v for k, v in attributes.items() if issubclass(type(v), GENERATORS)}
    else:
        yield cls, cls.__name__
        for base in cls.__mro__:
            for name, slot in vars(base).items():
                if type(slot) is types.MemberDescriptorType:
                    with suppress(Exception):
                        attributes[name] = object.__getattribute__(instance, name)
    yield from ((value, f"the attribute {name}") for name, value in attributes.items())


def is_bound(cell: types.CellType) -> bool:
    """Return whether a variable of a closure has a value yet."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def names_in(code: types.CodeType) -> set[str]:
    """Return the names of globals and attributes in a function's code, and in inner functions."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= names_in(constant)
    return names


def modules_imported_in(code: types.CodeType) -> list[str]:
    """List modules that a function and inner ones import; relative names begin with their dots."""
    names = []
    if _IMPORTS in code.co_code[::2]:
        level = 0
        for step in dis.get_instructions(code):
            if step.opname in ("LOAD_CONST", "LOAD_SMALL_INT") and isinstance(step.argval, int):
                level = step.argval
            elif step.opname == "IMPORT_NAME":
                names.append("." * level + step.argval)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += modules_imported_in(constant)
    return names


def functions_of(*roots: Any) -> Iterator[types.FunctionType]:
    """Yield the Python functions that roots reach, and those of properties; none of libraries."""
    for value, _ in reach(*((root, "") for root in roots)):
        members = [value]
        if isinstance(value, property):
            members = [value.fget, value.fset]
        elif isinstance(value, functools.cached_property):
            members = [value.func]
        for member in members:
            if isinstance(member, types.FunctionType) and not is_library(member.__module__):
                yield member
