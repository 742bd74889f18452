"""Stand-ins for functions and classes of modules: ``np.random.laplace``, `secrets`, ...

They are in place while a mechanism runs, and for its thread only: other threads call the originals.
"""

from __future__ import annotations

import functools
import os
import random
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator, RandomState

from pytest_dp.randomness.requests import PYTHON, SYSTEM, Source
from pytest_dp.randomness.stand_ins import Instrument, drawn_past_methods, stand_in

NUMPY, PYTHONS = Source("np.random", RandomState), Source("random", random.Random)
SECRETS, OS = Source("secrets", random.SystemRandom), Source("os", random.SystemRandom)
SYSTEMS = Source("SystemRandom", random.SystemRandom)
"""Generators of modules, and what draws on the operating system."""
_RUNNING: list[tuple[Instrument, int]] = []
"""The instruments in place, each with its thread; the last one is asked."""
Place = tuple[Any, str, Any]
"""A module or class, the name of an attribute, and its stand-in."""


@contextmanager
def functions_replaced(instrument: Instrument) -> Iterator[None]:
    """Let functions of ``np.random`` and `random` ask an instrument."""
    with _replaced(instrument, _places_of_functions()):
        yield


@contextmanager
def modules_replaced(instrument: Instrument) -> Iterator[None]:
    """Let everything in Python and numpy that draws, or makes a generator, ask an instrument."""
    with _replaced(instrument, _places()):
        yield


def running() -> Instrument | None:
    """The instrument in place for this thread, if any."""
    if _RUNNING and _RUNNING[-1][1] == threading.get_ident():
        return _RUNNING[-1][0]
    return None


@contextmanager
def _replaced(instrument: Instrument, places: _Places) -> Iterator[None]:
    drawn_past_methods()  # by what ran before
    _RUNNING.append((instrument, threading.get_ident()))
    names = [(space, {name: space[name] for name in new}) for space, new in places.of_modules]
    attributes = [(owner, name, vars(owner).get(name)) for owner, name, _ in places.of_classes]
    for space, new in places.of_modules:  # all names at once: this is done around each run
        space.update(new)
    for owner, name, replacement in places.of_classes:
        setattr(owner, name, replacement)
    try:
        yield
    finally:
        for space, originals in names:
            space.update(originals)
        for owner, name, value in attributes:
            if value is None:  # it was inherited
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        _RUNNING.pop()


@dataclass(frozen=True, slots=True)
class _Places:
    """Stand-ins for the namespaces of modules, and for attributes of classes."""

    of_modules: list[tuple[dict[str, Any], dict[str, Any]]]
    of_classes: list[tuple[type, str, Any]]


@functools.cache
def _places_of_functions() -> _Places:
    return _sorted_by_owner(_functions())


@functools.cache
def _places() -> _Places:
    return _sorted_by_owner((*_functions(), *_further(), *_makers()))


def _sorted_by_owner(places: Iterable[Place]) -> _Places:
    modules: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    of_classes = []
    for owner, name, replacement in places:
        if isinstance(owner, type):
            of_classes.append((owner, name, replacement))
        else:
            modules.setdefault(owner.__name__, (owner.__dict__, {}))[1][name] = replacement
    return _Places(list(modules.values()), of_classes)


def _asking(source: Source, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that asks the instrument; in other threads, it calls the original."""

    @functools.wraps(function)
    def ask(*args: Any, **keywords: Any) -> Any:
        instrument = running()
        if instrument is None:
            return function(*args, **keywords)
        return instrument.attribute(source, name)(*args, **keywords)

    return ask


@functools.cache
def _functions() -> tuple[Place, ...]:
    """Functions of modules that draw on a global generator."""
    return tuple(
        (module, name, _asking(source, name, function))
        for module, owner, source in (
            (np.random, np.random.mtrand._rand, NUMPY),  # noqa: SLF001
            (random, random._inst, PYTHONS),  # noqa: SLF001
        )
        for name, function in list(vars(module).items())
        if getattr(function, "__self__", None) is owner
    )


@functools.cache
def _further() -> tuple[Place, ...]:
    """Functions that draw on the operating system, and a few of ``np.random`` that remain."""
    places: list[Place] = [
        (secrets, name, _asking(SECRETS, name, vars(secrets)[name]))
        for name in sorted(SYSTEM & vars(secrets).keys())
    ]
    places.append((os, "urandom", _asking(OS, "urandom", os.urandom)))
    for name, method in (("sample", "random_sample"), ("ranf", "random_sample"), ("seed", "seed")):
        function = vars(np.random)[name]  # no methods of its global generator, as the others are
        places.append((np.random, name, _asking(NUMPY, method, function)))
    cls = random.SystemRandom
    places += [(cls, name, _method(name, getattr(cls, name))) for name in sorted(PYTHON)]
    below: Any = cls._randbelow  # type: ignore[attr-defined]
    places.append((cls, "_randbelow", _method("randbelow", below)))
    return tuple(places)


def _method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A method that asks the instrument; its first argument is the generator."""

    @functools.wraps(function)
    def ask(generator: Any, *args: Any, **keywords: Any) -> Any:
        instrument = running()
        if instrument is None:
            return function(generator, *args, **keywords)
        return instrument.attribute(SYSTEMS, name)(*args, **keywords)

    return ask


class _GeneratorClass(type):
    """A class of generators whose instances are stand-ins while an instrument is in place."""

    original: type
    name: str

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        instrument = running()
        if instrument is None:
            return cls.original(*args, **keywords)
        return _made(instrument, Source(cls.name, cls.original), args, keywords)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.original, name)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.original)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.original)


def _made(instrument: Instrument, source: Source, args: Any, keywords: Any) -> Any:
    instrument.make(source, *args, **keywords)
    return stand_in(instrument, source)


@functools.cache
def _makers() -> tuple[Place, ...]:
    """Classes and functions that make generators."""
    classes: tuple[tuple[Any, str, str], ...] = (
        (np.random, "Generator", "np.random.Generator"),
        (np.random, "RandomState", "np.random.RandomState"),
        (random, "Random", "random.Random"),
    )
    places: list[Place] = []
    for module, name, shown_name in classes:
        attributes = {"original": getattr(module, name), "name": shown_name}
        places.append((module, name, _GeneratorClass(name, (), attributes)))
    places.append((np.random, "default_rng", _default_rng))
    inner = np.random._generator  # noqa: SLF001  by "from numpy.random import"
    places.append((inner, "default_rng", _default_rng))
    return tuple(places)


_original_default_rng = np.random.default_rng


@functools.wraps(np.random.default_rng)
def _default_rng(seed: Any = None) -> Any:
    instrument = running()
    if isinstance(seed, Generator):
        return seed
    if instrument is None:
        return _original_default_rng(seed)
    source = Source("np.random.default_rng()", Generator)
    return _made(instrument, source, () if seed is None else (seed,), {})
