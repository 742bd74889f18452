"""What objects hold, and what code they reach: the same text in every process."""

from __future__ import annotations

import ast
import contextvars
import copyreg
import functools
import hashlib
import importlib
import inspect
import os
import secrets
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from pytest_dp.black_boxes.boxes import BlackBox
from pytest_dp.checks import is_strategy
from pytest_dp.faults import note_fault, noting_faults
from pytest_dp.limits import THOUSAND
from pytest_dp.reach import GENERATORS, is_bound, names_in
from pytest_dp.records.syntax import digest, digest_of, imports, inside, source_of
from pytest_dp.reprs import shown
from pytest_dp.whose_code import is_project_file, is_project_module, is_project_space

Space = dict[str, Any]
"""The globals of a module."""
MACHINERY = {*vars(types.ModuleType("")), "__file__", "__cached__", "__path__", "__builtins__"}
MACHINERY |= {"__annotations__", "__warningregistry__", "pytestmark", "__dp_claims__"}
"""Names that the import system, pytest and claims put into modules, classes and functions."""
_RANDOM = (*GENERATORS, np.random.BitGenerator, np.random.SeedSequence)
_LOCKS = (type(__import__("_thread").allocate_lock()), type(__import__("_thread").RLock()))
_BUILTIN = (dict, list, tuple, set, frozenset, int, float, complex, str, bytes, bytearray)


class _OpaqueError(Exception):
    """Nothing tells what an object holds."""


class Walk:
    """The contents of objects, and what code they reach.

    `whole` says whether whole modules count, which are then in `spaces`; else what functions name
    does. Paths are relative to `folder`. `unknown` has the types of objects that cannot be compared
    with those of other processes.
    """

    def __init__(self, *, whole: bool, folder: Path | None = None) -> None:
        self.whole, self.folder = whole, folder
        self.spaces: list[Space] = []
        self.packages: set[str] = set()
        self.unknown: list[str] = []
        self._done: dict[int, tuple[Any, str]] = {}
        self._path: list[int] = []

    def content(self, value: Any) -> str:
        """The same text for equal content."""
        kind = type(value)
        if kind is float:
            return f"float {value.hex()}"
        if kind is str:
            return f"str {self.relative(value)}"
        if value is None or kind in (bool, int, complex, type(...), type(NotImplemented)):
            return (
                f"{kind.__name__} {value.real:x}" if kind is int else f"{kind.__name__} {value!r}"
            )
        if kind in (bytes, bytearray):
            return f"{kind.__name__} {hashlib.sha256(value).hexdigest()}"
        known = self._done.get(id(value))
        if known is not None:
            return known[1]
        if id(value) in self._path:
            return f"^{len(self._path) - self._path.index(id(value))}"
        self._path.append(id(value))
        try:
            text = digest(repr([kind.__name__, *self._members(value)]))
        except Exception as error:  # of the user's objects, anything may be raised
            if not isinstance(error, _OpaqueError):
                note_fault(error, "identifying code")
            text = new() if self.whole else kind.__name__
            self.unknown.append(f"{kind.__module__}.{kind.__qualname__}")
        finally:
            self._path.pop()
        self._done[id(value)] = value, text  # held, so that no other has its address
        return text

    def follow(self, wanted: Iterable[tuple[str, bool]]) -> None:
        """Reach the modules that code imports; what a run would import is imported now."""
        for name, late in wanted:
            parts = name.split(".")
            if late and name not in sys.modules and _is_project_root(parts[0]):
                with suppress(Exception, SystemExit):
                    importlib.import_module(name)
            for end in range(1, len(parts) + 1):
                self._reach(".".join(parts[:end]))

    def _reach(self, name: Any) -> bool:
        """Whether a module is of the project; if so it is followed, else its version counts."""
        if is_project_module(name):
            space = _space_of(name) or {}
            if self.whole and isinstance(space.get("__file__"), str):
                self.spaces.append(space)
            return True
        root = str(name).partition(".")[0]
        if root not in sys.stdlib_module_names and root != "pytest_dp":
            self.packages.add(root)
        return False

    def relative(self, text: str) -> str:
        """A path below the same root as the module, from there: projects may lie anywhere."""
        if self.folder is None or len(text) > 4_096 or not Path(text).is_absolute():
            return text
        with suppress(ValueError):  # of another drive
            common = os.path.commonpath([text, self.folder])
            return os.path.relpath(text, self.folder) if len(Path(common).parts) > 1 else text
        return text

    def _members(self, value: Any) -> Iterable[str]:
        """Of containers; of all else, its parts."""
        kind = type(value)
        if kind in (list, tuple):
            return map(self.content, value)
        if kind is dict:
            return (self.content(part) for pair in value.items() for part in pair)
        if kind in (set, frozenset):
            return sorted(map(self.content, value))
        return self._parts(value)

    def _parts(self, value: Any) -> Iterator[str]:
        """What identifies an object, by the first of the types that fits."""
        for kinds, inside_of in _PARTS:
            if isinstance(value, kinds):
                yield from inside_of(self, value)
                return
        if is_strategy(value):
            yield shown(value)
            yield from sorted({self.content(piece) for piece in pieces(value)})
        else:
            yield from self._of_object(value)

    def _of_module(self, module: types.ModuleType) -> Iterator[str]:
        self._reach(module.__name__)
        yield module.__name__

    def _of_function(self, function: types.FunctionType) -> Iterator[str]:
        code, space = function.__code__, function.__globals__
        yield function.__qualname__
        if not (is_project_file(code.co_filename) and is_project_space(space)):
            self._reach(space.get("__name__"))
            if _named(space.get("__name__"), function.__qualname__) is function:
                return
        yield from map(self.content, (function.__defaults__, function.__kwdefaults__))
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            yield self.content(cell.cell_contents) if is_bound(cell) else name
        yield from self._attributes(vars(function))
        if not is_project_file(code.co_filename):
            return
        self._reach(space.get("__name__"))
        if not self.whole or code.co_filename != space.get("__file__"):
            if code.co_filename != "<string>":  # by which dataclasses make their methods
                yield digest_of(code)
            if self.whole:
                yield self.content(code)
            yield from self._named_by(code, space)

    def _named_by(self, code: types.CodeType, space: Space) -> Iterator[str]:
        """What a function names: of its module, and of what it imports."""
        names = sorted(names_in(code))
        values = [space[name] for name in names if name in space]
        with suppress(OSError), noting_faults("finding what code imports"):  # code without source
            tree = ast.parse(source_of(code))
            wanted = [name for name, _ in imports(tree, space)]
            self.follow((name, True) for name in wanted)
            values += [sys.modules[name] for name in wanted if name in sys.modules]
        seen: set[int] = set()
        while values:
            value = values.pop(0)
            if not isinstance(value, types.ModuleType):
                yield self.content(value)
            elif id(value) not in seen:
                seen.add(id(value))
                if self._reach(value.__name__):
                    values += [vars(value)[name] for name in names if name in vars(value)]

    def _of_class(self, cls: type) -> Iterator[str]:
        yield cls.__qualname__
        if not self._reach(cls.__module__):
            yield cls.__module__
            return
        yield from map(self.content, cls.__bases__)
        yield from self._attributes(vars(cls))
        space = _space_of(cls.__module__) or {}
        if not self.whole or not isinstance(space.get("__file__"), str):
            yield digest_of(cls)

    def _attributes(self, attributes: Mapping[str, Any]) -> Iterator[str]:
        """Attributes by their names; data under special names is made of the rest."""
        descriptors = types.MemberDescriptorType | types.GetSetDescriptorType
        for name, value in sorted(attributes.items()):
            special = (name.startswith("__") and name.endswith("__")) or name == "_abc_impl"
            if name in MACHINERY or isinstance(value, descriptors):
                continue
            if not special or isinstance(value, types.FunctionType | classmethod | staticmethod):
                yield name
                yield self.content(value)

    def _of_object(self, value: Any) -> Iterator[str]:
        """Of an instance: what pickle would keep; of the project's classes, all that it holds."""
        cls = type(value)
        yield self.content(cls)
        self._reach(getattr(value, "__module__", None) or cls.__module__)
        if not is_project_module(cls.__module__):
            with suppress(Exception):  # raised by what the object does to be pickled
                registered = copyreg.dispatch_table.get(cls)
                reduced = registered(value) if registered else value.__reduce_ex__(4)
                if isinstance(reduced, str):
                    yield from (reduced, self.content(inspect.unwrap(value)))
                else:
                    made, given, state, *items = (*reduced, *[None] * 6)[:5]
                    members = (list(part) if part is not None else None for part in items)
                    yield from map(self.content, (made, given, state, *members))
                return
        base = next((base for base in _BUILTIN if isinstance(value, base)), None)
        if base is not None:
            yield self.content(base(value))
        elif isinstance(value, np.ndarray):
            yield self.content(np.asarray(value))
        elif isinstance(value, BaseException):
            yield self.content(value.args)
        held = _held_by(value)
        if not held and base is None and not is_project_module(cls.__module__):
            raise _OpaqueError(cls)
        yield from self._attributes(held)


def _outside(_: Walk, value: Any) -> Iterator[str]:
    """Nobody knows when a program or a service becomes another."""
    raise _OpaqueError(value)


def _all(*attributes: str) -> Callable[[Walk, Any], Iterator[str]]:
    """Objects that are what these attributes of them are."""
    return lambda walk, value: (walk.content(getattr(value, name)) for name in attributes)


_PARTS: tuple[tuple[Any, Callable[[Walk, Any], Iterator[str]]], ...] = (
    (types.FunctionType, Walk._of_function),  # noqa: SLF001
    (type, Walk._of_class),  # noqa: SLF001
    (types.ModuleType, Walk._of_module),  # noqa: SLF001
    (_RANDOM, lambda _, value: iter([type(getattr(value, "bit_generator", 0)).__name__])),
    (_LOCKS, lambda *_: iter(())),  # the state of neither is code
    (PurePath, lambda walk, value: iter([walk.relative(str(value))])),
    (BlackBox, _outside),
    (types.MethodType, _all("__self__", "__func__")),
    (types.BuiltinFunctionType, _all("__qualname__", "__self__")),
    (staticmethod | classmethod, _all("__func__")),
    (property, _all("fget", "fset", "fdel")),
    (
        types.CodeType,
        lambda walk, value: map(walk.content, (inside(value), value.co_code, value.co_consts)),
    ),
    (weakref.ref, lambda walk, value: iter([walk.content(value())])),
    (threading.local, lambda walk, value: iter([walk.content(dict(vars(value)))])),
    (contextvars.ContextVar, lambda walk, value: iter([value.name, walk.content(value.get(None))])),
    (memoryview, lambda walk, value: iter([walk.content(bytes(value))])),
    (types.MappingProxyType, lambda walk, value: iter([walk.content(dict(value))])),
)
"""What identifies an object of these types."""


def _held_by(value: Any) -> dict[str, Any]:
    """The attributes of an object, whatever its class says of them."""
    held: dict[str, Any] = {}
    for base in type(value).__mro__:
        for name, slot in vars(base).items() if "__slots__" in vars(base) else ():
            if isinstance(slot, types.MemberDescriptorType):
                with suppress(AttributeError):
                    held[name] = slot.__get__(value)
    with suppress(AttributeError):
        held |= object.__getattribute__(value, "__dict__")
    return held


def _named(module: Any, name: str) -> Any:
    """What a name stands for in a module."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _is_project_root(name: str) -> bool:
    """Whether a package or module that is not imported yet is of the project."""
    try:
        spec = find_spec(name) if name and name not in sys.stdlib_module_names else None
    except (ImportError, ValueError):
        return False
    places = [spec.origin, *(spec.submodule_search_locations or ())] if spec is not None else []
    return any(isinstance(place, str) and is_project_file(place) for place in places)


def is_project(value: Any) -> bool:
    """Whether this is a function or class of the project."""
    if isinstance(value, types.FunctionType):
        return is_project_file(value.__code__.co_filename) and is_project_space(value.__globals__)
    return isinstance(value, type) and is_project_module(value.__module__)


def pieces(root: Any) -> list[Any]:
    """The project's functions and classes that an object holds: a strategy, an estimator."""
    found: list[Any] = []
    seen: dict[int, Any] = {}
    ahead = [root]
    while ahead and len(seen) < 2 * THOUSAND:
        value = ahead.pop(0)
        if id(value) in seen or isinstance(value, str | bytes | int | float | np.ndarray):
            continue
        seen[id(value)] = value
        if is_project(value):
            found.append(value)
        elif isinstance(value, types.MethodType):
            ahead += [value.__self__, value.__func__]
        elif isinstance(value, types.FunctionType):
            ahead += [cell.cell_contents for cell in value.__closure__ or () if is_bound(cell)]
        elif isinstance(value, dict):
            ahead += dict.values(value)
        elif isinstance(value, list | tuple | set | frozenset):
            ahead += value
        elif isinstance(value, functools.partial):
            ahead += [value.func, *value.args, *value.keywords.values()]
        elif not isinstance(value, type | types.ModuleType):
            ahead += [type(value), *_held_by(value).values()]
    return found


def _space_of(name: Any) -> Space | None:
    module = sys.modules.get(name) if isinstance(name, str) else None
    return getattr(module, "__dict__", None)


def version(root: str) -> str:
    """A package with the version that is installed."""
    stated = getattr(sys.modules.get(root), "__version__", None)
    if isinstance(stated, str):
        return f"{root} {stated}"
    found = [f"{name} {metadata.version(name)}" for name in sorted(set(_distributions(root)))]
    return f"{root} {' '.join(found)}"


@functools.cache
def _distributions(root: str) -> list[str]:
    return list(metadata.packages_distributions().get(root, ()))


def new() -> str:
    """What cannot be compared: different each time."""
    return secrets.token_hex()
