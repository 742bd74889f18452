"""Mechanisms that lose more than they claim, and look as if they did not when they are traced.

Each would be private if real runs did what traced ones do. Families times parameters: numbers
treated by their type, by how they are written, copied or converted; counters; caches; draws that no
stand-in sees; functions of generators that were replaced; seeds; draws made at import.
"""

from __future__ import annotations

import collections
import contextvars
import copy
import ctypes
import decimal
import fractions
import functools
import itertools
import json
import math
import pickle
import random
import struct
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Mechanism = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Member:
    """A mechanism that claims eps = 1 on 0 and 1, and loses more."""

    name: str
    make: Callable[[], Any]
    often: float = 1.0
    """In which share of its first runs real ones do something else."""


def members(
    family: str,
    make: Callable[..., Any],
    *axes: Mapping[str, Any],
    often: Callable[..., float] = lambda *_: 1.0,
) -> Iterator[Member]:
    """A member for each combination of entries of tables."""
    for row in itertools.product(*(axis.items() for axis in axes)):
        names, values = zip(*row, strict=True)
        name = f"{family}: {', '.join(names)}"
        yield Member(name, functools.partial(make, *values), often(*values))


# --- numbers by their type ---


def _fails(convert: Callable[[Any], Any]) -> Callable[[Any], bool]:
    def real(number: Any) -> bool:
        try:
            convert(number)
        except Exception:
            return False
        return True

    return real


IS_REAL: dict[str, Callable[[Any], Any]] = {
    "type": lambda n: type(n) is float,
    "isinstance": lambda n: isinstance(n, float),
    "dispatch": functools.singledispatch(lambda n: False).register(float, lambda n: True),
    "json": _fails(json.dumps),
    "struct": _fails(lambda n: struct.pack("d", n)),
    "pickle": _fails(pickle.dumps),
    "hash": _fails(hash),
    "decimal": _fails(decimal.Decimal),
    "fraction": _fails(fractions.Fraction),
    "fromhex": _fails(lambda n: n.hex()),
    "ctypes": _fails(ctypes.c_double),
    "formatted": lambda n: len(f"{n:.3f}") < 12 and "draw" not in f"{n}",
    "percent": _fails(lambda n: "%.2f" % n),  # noqa: UP031
    "float": lambda n: type(float(n)) is float,
    "math": _fails(math.frexp),
    "same copy": lambda n: copy.copy(n) == n and isinstance(copy.copy(n), float),
}
EFFECTS: dict[str, tuple[Callable[[Any, Any], Any], float]] = {
    "half the noise": (lambda x, n: x + n / 2, 1.0),
    "a little less noise": (lambda x, n: x + n / 1.02, 1.0),
    "released if large": (lambda x, n: 5.0 * x if n > 2.0 else x + n, 0.07),
    "released if very large": (lambda x, n: 5.0 * x if n > 6.0 else x + n, 0.0012),
}


def _by_type(is_real: Callable[[Any], Any], effect: Any) -> Mechanism:
    def mechanism(x: Any, rng: Any) -> Any:
        noise = rng.laplace()
        return effect[0](x, noise) if is_real(noise) else x + noise

    return mechanism


ARE_REAL: dict[str, Callable[[Any], Any]] = {
    "dtype": lambda n: n.dtype == float,
    "type of array": lambda n: type(n) is np.ndarray,
    "bytes": lambda n: len(n.tobytes()) == n.nbytes and n.dtype.kind == "f",
    "view": _fails(lambda n: n.view(np.int64)),
    "first": lambda n: isinstance(n[0], np.floating),
    "flags": lambda n: n.base is None and n.dtype.char == "d",
}


def _by_array(are_real: Callable[[Any], Any], effect: Any) -> Mechanism:
    def mechanism(x: Any, rng: Any) -> Any:
        noise = rng.laplace(size=1)
        return effect[0](x, noise[0]) if are_real(noise) else x + noise[0]

    return mechanism


# --- counters and whatever is kept ---


class _Counting:
    runs = 0

    def __init__(self) -> None:
        self.own = 0

    def on_self(self) -> int:
        self.own += 1
        return self.own

    @classmethod
    def on_class(cls) -> int:
        cls.runs += 1
        return cls.runs


def _growing(
    kept: Any, add: Callable[[Any], Any] = lambda kept: kept.append(0)
) -> Callable[[], int]:
    def count() -> int:
        add(kept)
        return len(kept)

    return count


def _entry(kept: Any) -> Callable[[], int]:
    def count() -> int:
        kept[0] += 1
        return int(kept[0])

    return count


def _attribute(owner: Any) -> Callable[[], int]:
    name = f"_runs_{uuid.uuid4().hex}"

    def count() -> int:
        setattr(owner, name, getattr(owner, name, 0) + 1)
        return int(getattr(owner, name))

    return count


def _in_closure() -> Callable[[], int]:
    runs = 0

    def count() -> int:
        nonlocal runs
        runs += 1
        return runs

    return count


def _in_default() -> Callable[[], int]:
    def count(kept: list[int] = []) -> int:  # noqa: B006
        kept.append(0)
        return len(kept)

    return count


def _on_function() -> Callable[[], int]:
    def count() -> int:
        count.runs += 1  # type: ignore[attr-defined]
        return count.runs  # type: ignore[attr-defined]

    count.runs = 0  # type: ignore[attr-defined]
    return count


def _in_cache() -> Callable[[], int]:
    @functools.cache
    def seen(number: int) -> int:
        return number

    return lambda: seen(seen.cache_info().currsize) + 1


def _in_context() -> Callable[[], int]:
    runs = contextvars.ContextVar("runs", default=0)

    def count() -> int:
        runs.set(runs.get() + 1)
        return runs.get()

    return count


def _in_rare_runs() -> Callable[[], int]:
    kept: list[int] = []

    def count() -> int:
        if random.random() < 0.2:
            kept.append(0)
        return 5 * len(kept)

    return count


COUNTERS: dict[str, Callable[[], Callable[[], int]]] = {
    "in list": lambda: _growing([]),
    "in dict": lambda: _entry({0: 0}),
    "in closure": _in_closure,
    "in default": _in_default,
    "on function": _on_function,
    "in iterator": lambda: functools.partial(next, itertools.count(1)),
    "in generator": lambda: functools.partial(next, iter(range(1, 10**9))),
    "in deque": lambda: _growing(collections.deque(maxlen=100_000)),
    "in array": lambda: _entry(np.zeros(1, int)),
    "on object": lambda: _Counting().on_self,
    "on class": lambda: type("Fresh", (_Counting,), {"runs": 0}).on_class,
    "in cache": _in_cache,
    "in context": _in_context,
    "in thread": lambda: _attribute(threading.local()),
    "in rare runs": _in_rare_runs,
    "in bytes": lambda: _growing(bytearray()),
    "in set": lambda: _growing(set(), lambda kept: kept.add(len(kept))),
}


def _by_counter(counter: Callable[[], Callable[[], int]], after: int) -> Mechanism:
    count = counter()

    def mechanism(x: Any, rng: Any) -> Any:
        return x + rng.laplace() / (3.0 if count() > after else 1.0)

    return mechanism


def _by_cache(size: int) -> Mechanism:
    kept: dict[Any, float] = {}

    def mechanism(x: Any, rng: Any) -> Any:
        key = (x, int(rng.integers(size)))
        if key not in kept:
            kept[key] = x + rng.laplace()
        return kept[key]

    return mechanism


def _by_lru(size: int) -> Mechanism:
    @functools.lru_cache
    def noisy(x: Any, key: int) -> Any:
        return x + random.gauss(0, 1) / 5 + random.expovariate(1.0) - random.expovariate(1.0)

    return lambda x, rng: noisy(x, int(rng.integers(size)))


CACHES = {
    f"{how} of {size}": functools.partial(make, size)
    for size in (1, 10, 1_000, 100_000)
    for how, make in (("dict", _by_cache), ("lru", _by_lru))
}


# --- draws that no stand-in sees ---


class _Own(np.random.Generator):
    def laplace(self, *args: Any, **keywords: Any) -> Any:
        return super().laplace(*args, **keywords)


class _OwnPython(random.Random):
    pass


_raw = np.random.PCG64(7)


HIDDEN: dict[str, Callable[[], float]] = {
    "raw bits": lambda: _raw.random_raw() / 2**64,
    "own class": lambda: _own.random(),
    "own class of Python": lambda: _own_python.random(),
    "base method": lambda: random.Random.random(_own_python),
    "uuid4": lambda: uuid.uuid4().int / 2**128,
}
_own, _own_python = _Own(np.random.PCG64(3)), _OwnPython(3)


def _by_hidden(draw: Callable[[], float], often: float) -> Mechanism:
    def mechanism(x: Any, rng: Any) -> Any:
        noise = rng.laplace()
        return 5.0 * x if draw() < often else x + noise

    return mechanism


# --- draws made before, seeds, and functions that were replaced ---


def _by_pool(size: int, counted: bool) -> Mechanism:
    noise = np.random.default_rng(size).laplace(size=size)
    turn = itertools.count()

    def mechanism(x: Any, rng: Any) -> Any:
        return x + noise[next(turn) % size if counted else int(rng.integers(size))]

    return mechanism


SEEDS: dict[str, Callable[[Any, Any], Any]] = {
    "fixed": lambda x, rng: np.random.default_rng(5).laplace() + rng.laplace() / 50,
    "few": lambda x, rng: np.random.default_rng(int(rng.integers(20))).laplace(),
    "many": lambda x, rng: np.random.default_rng(int(rng.integers(5_000))).laplace(),
    "the data": lambda x, rng: np.random.default_rng(x).laplace() + rng.laplace() / 50,
    "few of Python": lambda x, rng: _laplace(random.Random(int(rng.integers(20)))),
    "many of Python": lambda x, rng: _laplace(random.Random(int(rng.integers(5_000)))),
    "few states": lambda x, rng: np.random.RandomState(int(rng.integers(20))).laplace(),
    "sequence": lambda x, rng: np.random.Generator(
        np.random.PCG64(np.random.SeedSequence(int(rng.integers(50))))
    ).laplace(),
    "global": lambda x, rng: (np.random.seed(int(rng.integers(50))), np.random.laplace())[1],
    "global of Python": lambda x, rng: (
        random.seed(int(rng.integers(50))),
        _laplace(random),
    )[1],
}


def _laplace(source: Any) -> Any:
    return source.expovariate(1.0) - source.expovariate(1.0)


def _by_seed(noise: Callable[[Any, Any], Any]) -> Mechanism:
    return lambda x, rng: x + noise(x, rng)


REPLACED: dict[str, tuple[Any, str, Mechanism]] = {
    "laplace": (np.random, "laplace", lambda x: x + np.random.laplace()),
    "normal": (np.random, "normal", lambda x: x + np.random.normal(0, 5.0)),
    "exponential": (
        np.random,
        "exponential",
        lambda x: x + np.random.exponential() - np.random.exponential(),
    ),
    "expovariate": (random, "expovariate", lambda x: x + _laplace(random)),
    "gauss": (random, "gauss", lambda x: x + random.gauss(0, 5.0)),
    "random": (random, "random", lambda x: (x + (random.random() < 0.27)) % 2),
}


@dataclass
class Patched:
    """A mechanism with what is replaced while it is audited."""

    owner: Any
    name: str
    other: Callable[..., Any]
    mechanism: Mechanism


def _replaced(replaced: tuple[Any, str, Mechanism], share: float) -> Any:
    owner, name, mechanism = replaced
    draw = getattr(owner, name)
    return Patched(owner, name, lambda *args, **kw: share * draw(*args, **kw), mechanism)


def _named(*values: Any) -> dict[str, Any]:
    return {str(value): value for value in values}


MEMBERS = [
    *members("by type", _by_type, IS_REAL, EFFECTS, often=lambda _, effect: effect[1]),
    *members("by type of array", _by_array, ARE_REAL, EFFECTS, often=lambda _, effect: effect[1]),
    *members("by counter", _by_counter, COUNTERS, _named(2, 45, 3_000, 30_000)),
    *members("by cache", lambda make: make(), CACHES),
    *members("by hidden draws", _by_hidden, HIDDEN, _named(0.5, 0.05, 0.002), often=lambda _, p: p),
    *members("made at import", _by_pool, _named(1, 10, 1_000), _named(True, False)),
    *members("seeded", _by_seed, SEEDS),
    *members("replaced", _replaced, REPLACED, _named(0.5, 0.9)),
]
