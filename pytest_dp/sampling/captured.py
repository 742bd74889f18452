"""Captured generators: those that a mechanism keeps, on an object, in a module, in a closure.

Copied into several processes, such a generator would deal the same "random" numbers in each of
them, and counts that look independent would not be. So they are looked for, and given a stream of
their own before every chunk of work.
"""

from __future__ import annotations

import functools
import random
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

MAX_OBJECTS, MAX_FOREIGN_OBJECTS = 5_000, 500
"""How many objects the search looks at: reached from the mechanism's own code and data, and from
what packages that others wrote provide. Compiled functions, say, drag a whole compiler along. More
take longer at the start of every audit, fewer may miss a generator, which the trials in each
process then have to find. Chosen by hand."""
MAX_SEARCHED_MEMBERS = 1_000
"""Members of a container among which generators are looked for: larger ones hold data. Chosen by
hand."""

_LEAVES = {str, bytes, int, float, complex, bool, type(None), np.ndarray}
GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)


@dataclass(frozen=True, slots=True)
class Captured:
    """The generators in a mechanism, and where it keeps them."""

    generators: tuple[Any, ...]
    places: tuple[str, ...]

    @contextmanager
    def reseeded(self, sequence: np.random.SeedSequence) -> Iterator[None]:
        """Give each generator a stream of its own; its earlier state comes back at the end."""
        before = [state_of(generator) for generator in self.generators]
        children = sequence.spawn(len(self.generators)) if self.generators else []
        for generator, child in zip(self.generators, children, strict=True):
            reseed(generator, child)
        try:
            yield
        finally:
            for generator, state in zip(self.generators, before, strict=True):
                restore(generator, state)


NO_GENERATORS = Captured((), ())
"""Of a mechanism in which nobody looked yet, or that has none."""


def find(*roots: Any) -> Captured:
    """Look for generators reachable from `roots`: attributes, closures, globals, containers."""
    known = {id(random._inst), id(np.random.mtrand._rand)}  # noqa: SLF001
    generators: dict[int, tuple[Any, str]] = {}
    packages = {_package_of(_unwrapped(root)) for root in roots}
    # Nearest first, and in the same order in every process: it decides who gets which stream.
    queue = deque((root, getattr(root, "__name__", "mechanism")) for root in roots)
    others: deque[tuple[Any, str]] = deque()  # reached through packages that others wrote
    left, left_of_others = MAX_OBJECTS, MAX_FOREIGN_OBJECTS
    seen: set[int] = set()
    while queue or others:
        obj, place = queue.popleft() if queue else others.popleft()
        if id(obj) in seen:
            continue
        seen.add(id(obj))
        if issubclass(type(obj), GENERATORS):
            if id(obj) not in known and not isinstance(obj, random.SystemRandom):
                generators[id(obj)] = (obj, place)
            continue
        package = _package_of(obj)
        reachable = (item for item in _reachable(obj, place) if type(item[0]) not in _LEAVES)
        try:
            if package in packages or not is_installed(sys.modules.get(package)):
                reached = list(islice(reachable, left))
                left -= len(reached)
                queue += reached
            else:
                reached = list(islice(reachable, left_of_others))
                left_of_others -= len(reached)
                others += reached
        except Exception:
            continue
    return Captured(
        tuple(g for g, _ in generators.values()), tuple(place for _, place in generators.values())
    )


def _unwrapped(root: Any) -> Any:
    while isinstance(root, functools.partial):
        root = root.func
    return root


def _package_of(obj: Any) -> str:
    """The package that a function, a class or an object's class is from."""
    named = issubclass(type(obj), (types.FunctionType, types.BuiltinFunctionType, type))
    module = getattr(obj if named else type(obj), "__module__", None)
    return module.partition(".")[0] if isinstance(module, str) else ""


def is_installed(module: types.ModuleType | None) -> bool:
    """Whether a module is part of an installed package, as far as its place can tell."""
    return _is_in_site(getattr(module, "__file__", None) or "")


@functools.cache
def _is_in_site(file: str) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)


def _reachable(obj: Any, place: str) -> Iterator[tuple[Any, str]]:
    """What an object holds, with the places."""
    yield from next(inside for kinds, inside in _INSIDE if isinstance(obj, kinds))(obj, place)


def _of_method(method: Any, place: str) -> Iterator[tuple[Any, str]]:
    yield method.__self__, f"{place}.__self__"
    if isinstance(method, types.MethodType):
        yield method.__func__, place


def _of_partial(partial: functools.partial[Any], place: str) -> Iterator[tuple[Any, str]]:
    yield partial.func, place
    yield from ((value, f"{place}'s arguments") for value in partial.args)
    yield from ((value, f"{name}=") for name, value in partial.keywords.items())


def _of_dict(mapping: dict[Any, Any], place: str) -> Iterator[tuple[Any, str]]:
    items = list(islice(mapping.items(), MAX_SEARCHED_MEMBERS))
    if not _all_leaves(value for _, value in items):
        yield from ((value, f"{place}[{key!r}]") for key, value in items)


def _of_container(members: Iterable[Any], place: str) -> Iterator[tuple[Any, str]]:
    values = list(islice(members, MAX_SEARCHED_MEMBERS))
    if not _all_leaves(values):
        yield from ((value, place) for value in values)


def _all_leaves(values: Iterable[Any]) -> bool:
    """Whether no value can hold a generator: a quick test for containers of data."""
    return _LEAVES.issuperset(map(type, values))


def _of_function(function: types.FunctionType, place: str) -> Iterator[tuple[Any, str]]:
    if is_library(function.__module__):
        return
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if is_bound(cell):
            yield cell.cell_contents, f"closure variable {name}"
    yield from ((value, f"a default of {place}") for value in function.__defaults__ or ())
    yield from (
        (value, f"a default of {place}") for value in (function.__kwdefaults__ or {}).values()
    )
    yield from ((value, f"{place}.{name}") for name, value in function.__dict__.items())
    names = sorted(names_in(function.__code__))
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, types.ModuleType):
            yield from _of_module(value, names)
        elif value is not None:
            yield value, f"module variable {name}"


def _of_module(module: types.ModuleType, names: list[str]) -> Iterator[tuple[Any, str]]:
    if is_library(module.__name__):
        return
    for name in names:
        value = vars(module).get(name)
        if not isinstance(value, types.ModuleType):
            yield value, f"{module.__name__}.{name}"
        elif value.__name__.startswith(f"{module.__name__}."):
            yield from _of_module(value, names)


def _of_object(obj: Any, place: str) -> Iterator[tuple[Any, str]]:
    if is_library(type(obj).__module__) and not isinstance(obj, types.SimpleNamespace):
        # Library objects (scikit-learn estimators, say) may carry a random state; look no deeper.
        attributes = getattr(obj, "__dict__", None) or {}
        yield from (
            (value, f"{place}.{name}")
            for name, value in attributes.items()
            if isinstance(value, GENERATORS)
        )
        return
    for name, value in (getattr(obj, "__dict__", None) or {}).items():
        yield value, f"{place}.{name}"
    for cls in type(obj).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(obj, name):
                yield getattr(obj, name), f"{place}.{name}"
        yield from _of_class(cls)


def _of_class(cls: type, _: str = "") -> Iterator[tuple[Any, str]]:
    if is_library(cls.__module__):
        return
    for name, value in list(vars(cls).items()):
        inner = getattr(value, "__func__", value)
        if isinstance(inner, (types.FunctionType, *GENERATORS)):
            yield inner, f"{cls.__name__}.{name}"


_INSIDE: tuple[tuple[Any, Callable[[Any, str], Iterator[tuple[Any, str]]]], ...] = (
    (types.FunctionType, _of_function),
    ((types.MethodType, types.BuiltinMethodType), _of_method),
    (functools.partial, _of_partial),
    (dict, _of_dict),
    ((list, tuple, set, frozenset), _of_container),
    (type, _of_class),
    (types.ModuleType, lambda *_: iter(())),
    (object, _of_object),
)
"""How to look inside of an object: by the first of these types that fits."""


def is_bound(cell: types.CellType) -> bool:
    """Whether a closure's variable has a value yet."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def names_in(code: types.CodeType) -> set[str]:
    """Names used by a function and by the functions written inside it."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= names_in(constant)
    return names


@functools.cache
def _library_names() -> frozenset[str]:
    ours = "numpy scipy pandas sklearn joblib pytest _pytest hypothesis pytest_dp"
    return frozenset(sys.stdlib_module_names) | set(ours.split())


def is_library(module: str | None) -> bool:
    """Whether a module is of the standard library, or of one that keeps no noise."""
    root = (module or "").partition(".")[0]
    return root in _library_names() and root != "__main__"


def state_of(generator: Any) -> Any:
    """The state of a generator, with the seed sequence that it spawns from."""
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state, generator.bit_generator.seed_seq
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    return generator.getstate()


def restore(generator: Any, state: Any) -> None:
    """Put a generator back to where it was."""
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state, sequence = state
        set_sequence(generator.bit_generator, sequence)
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        generator.setstate(state)


def set_sequence(bits: Any, sequence: Any) -> None:
    """Let a bit generator spawn from another sequence, where this numpy can (from 2.0)."""
    if bits.seed_seq is not sequence and type(bits.__getstate__()) is tuple:
        bits.__setstate__((bits.state, sequence))


def reseed(generator: Any, sequence: np.random.SeedSequence) -> None:
    """Give such a generator a stream of its own."""
    if isinstance(generator, random.Random):
        generator.seed(int.from_bytes(sequence.generate_state(4).tobytes(), "big"))
    elif isinstance(generator, np.random.Generator):
        restore(generator, (type(generator.bit_generator)(sequence).state, sequence))
    else:
        bits = type(generator._bit_generator)  # noqa: SLF001
        restore(generator, bits(sequence).state)
