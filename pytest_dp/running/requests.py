"""Requests of mechanisms for random numbers, the lines of code that make them, and real answers."""

from __future__ import annotations

import base64
import functools
import inspect
import os
import random
import secrets
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import MT19937, Generator, Philox, RandomState

from pytest_dp.basics.whose_code import OURS

PASSED_ON = {"seed", "get_state", "set_state", "getstate", "setstate", "spawn", "bit_generator"}
"""Public attributes of generators that do not draw."""


def _draws_of(cls: type) -> frozenset[str]:
    public = {name for name in dir(cls) if not name.startswith("_")}
    return frozenset(public - PASSED_ON - {"VERSION"})


_OF_SECRETS: dict[str, Callable[..., Any]] = {
    name: getattr(secrets, name)
    for name in ("randbelow", "randbits", "token_bytes", "token_hex", "token_urlsafe")
} | {"urandom": os.urandom}
"""Functions of modules that are no methods of `random.SystemRandom`."""
GENERATOR, DRAWS_OF_RANDOM = _draws_of(Generator), _draws_of(random.Random)
SYSTEM = DRAWS_OF_RANDOM | _OF_SECRETS.keys()
_DRAWS: dict[type, frozenset[str]] = {
    Generator: GENERATOR,
    RandomState: _draws_of(RandomState),
    random.Random: DRAWS_OF_RANDOM,
    random.SystemRandom: SYSTEM,
}
"""Methods that draw, of each kind of generator; of `secrets` and ``os.urandom`` in the last."""
KINDS = tuple(_DRAWS)


@dataclass(frozen=True, slots=True)
class Source:
    """A generator, or a module that draws."""

    name: str
    """As in code: ``"rng"``, ``"np.random"``, ``"random"``, ``"secrets"``, ``"self.rng"``."""
    kind: type
    """The class whose methods it has; `random.SystemRandom` for the operating system."""
    number: int = 0
    """Of those that the mechanism made itself in a run, which one it is; else 0."""

    @property
    def draws(self) -> frozenset[str]:
        """Names of its methods that draw."""
        return _DRAWS[self.kind]


RNG = Source("rng", Generator)
"""The generator that is an argument of a mechanism."""


@dataclass(frozen=True, slots=True)
class Site:
    """A line of code."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a method that draws."""

    source: Source
    method: str
    args: tuple[Any, ...]
    keywords: dict[str, Any]

    @property
    def arguments(self) -> dict[str, Any]:
        """All arguments by their names, with defaults.

        Raises TypeError if the method does not take them.
        """
        bound = _signature(self.source.kind, self.method).bind(*self.args, **self.keywords)
        bound.apply_defaults()
        return bound.arguments

    def __str__(self) -> str:
        arguments = [repr(value) for value in self.args]
        arguments += [f"{name}={value!r}" for name, value in self.keywords.items()]
        return f"{self.source.name}.{self.method}({', '.join(arguments)})"


@functools.cache
def _signature(kind: type, method: str) -> inspect.Signature:
    function = getattr(kind, method, None)
    if function is None:
        return inspect.signature(_OF_SECRETS[method])
    try:
        signature = inspect.signature(function)
    except ValueError:  # compiled, by an older numpy: it stands in the first line of the docstring
        line = (function.__doc__ or "").strip().partition("\n")[0]
        listed = line.partition("(")[2].rpartition(")")[0]
        names: dict[str, Any] = {}
        exec(f"def function(self, {listed}): pass", {"np": np}, names)
        signature = inspect.signature(names["function"])
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].name == "self":
        parameters = parameters[1:]
    return signature.replace(parameters=parameters)


_NUMPY = str(Path(np.__file__).parent) + os.sep
_MODULES = {random.__file__, secrets.__file__, functools.__file__}


def stack() -> tuple[Site, ...]:
    """Return the lines that lead to the current draw, innermost first; no lines of libraries.

    Ends where the mechanism was called.
    """
    frame: types.FrameType | None = sys._getframe(1)  # noqa: SLF001
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    sites = []
    while frame is not None and not frame.f_code.co_filename.startswith(OURS):
        code = frame.f_code
        if code.co_filename not in _MODULES and not code.co_filename.startswith(
            (_NUMPY, "<frozen")
        ):
            sites.append(Site(code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return tuple(sites)


def plain_generator(kind: type, words: bytes) -> Any:
    """Return a generator of a kind, with 32 bytes as its seed."""
    if kind is Generator:
        return Generator(Philox(np.frombuffer(words, np.uint32)))
    if kind is RandomState:
        return RandomState(MT19937(np.frombuffer(words, np.uint32)))
    return SystemFunctions(words)


class SystemFunctions(random.Random):
    """A generator with the functions of `secrets` and ``os.urandom`` as well."""

    def randbelow(self, bound: int) -> int:
        return self.randrange(bound)

    def randbits(self, k: int) -> int:
        return self.getrandbits(k)

    def urandom(self, size: int) -> bytes:
        return self.randbytes(size)

    def token_bytes(self, size: int | None = None) -> bytes:
        return self.randbytes(size or 32)

    def token_hex(self, size: int | None = None) -> str:
        return self.token_bytes(size).hex()

    def token_urlsafe(self, size: int | None = None) -> str:
        return base64.urlsafe_b64encode(self.token_bytes(size)).rstrip(b"=").decode()


def answer_request(generator: Any, request: Request) -> Any:
    """Answer a request by a generator."""
    return getattr(generator, request.method)(*request.args, **request.keywords)
