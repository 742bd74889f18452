"""Mechanisms of the zoo of state that keep noise for later: buffers, pools and generators.

`LOSS` holds what one record moves, in units of the noise.
"""

from __future__ import annotations

import collections
import itertools
import random
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

Mechanism = Callable[..., Any]
Place = Callable[..., Any]
"""Where something is kept: looked up in each run, by the data."""
Make = Callable[[], Mechanism]
LOSS = [1]
"""What one record moves, in units of the noise: 1, or more with `--leaky`."""


def total(data: Any) -> Any:
    return LOSS[0] * sum(data)


def noisy(data: Any, rng: Any) -> Any:
    return total(data) + rng.laplace()


def whole(data: Any, rng: Any) -> Any:
    return total(data) + int(rng.geometric(1 - np.exp(-1)) - rng.geometric(1 - np.exp(-1)))


def bit(data: Any, rng: Any) -> Any:
    odds = np.exp(0.9 * LOSS[0])  # a loss of 0.9
    return len(data) % 2 if rng.random() < odds / (1 + odds) else 1 - len(data) % 2


# --- buffers of noise ---


def buffer(
    place: Place, size: int, take: Callable[[Any, Any], Any] = lambda kept, rng: kept.pop()
) -> Mechanism:
    """Takes its noise from what is kept at a place, which is filled again once it is empty."""

    def mechanism(data: Any, rng: Any) -> Any:
        kept = place(data)
        if not kept:
            kept.extend(rng.laplace(size=size))
        return total(data) + take(kept, rng)

    return mechanism


def kept_in_a_closure() -> Place:
    kept: list[float] = []
    return lambda data: kept


def _for_each_input() -> Place:
    kept: dict[int, list[float]] = collections.defaultdict(list)
    return lambda data: kept[len(data)]


class _Shared:
    noise: ClassVar[collections.deque[float]] = collections.deque()


_IN_A_MODULE: list[float] = []


def _as_attribute() -> Place:
    def place(data: Any) -> Any:
        return place.noise  # type: ignore[attr-defined]

    place.noise = []  # type: ignore[attr-defined]
    return place


def _as_default() -> Place:
    def place(data: Any, kept: list[float] = []) -> Any:  # noqa: B006
        return kept

    return place


def _shuffled(kept: Any, rng: Any) -> Any:
    rng.shuffle(kept)
    return kept.pop()


class _Pool:
    """Noise in an array, with the place of the next one; behind a lock."""

    def __init__(self) -> None:
        self.noise, self.next, self.lock = np.empty(0), 0, threading.Lock()

    def __call__(self, data: Any, rng: Any) -> Any:
        with self.lock:
            if self.next == len(self.noise):
                self.noise, self.next = rng.laplace(size=500), 0
            self.next += 1
            return total(data) + self.noise[self.next - 1]


BUFFERS: dict[str, Make] = {
    **{
        f"buffer_of_{size}": lambda size=size: buffer(kept_in_a_closure(), size)  # type: ignore[misc]
        for size in (150, 1_000, 20_000)
    },
    "buffer_for_each_input": lambda: buffer(_for_each_input(), 200),
    "array_on_an_object": _Pool,
    "deque_on_the_class": lambda: buffer(
        lambda data: _Shared.noise, 300, lambda kept, rng: kept.popleft()
    ),
    "list_in_a_module": lambda: buffer(lambda data: _IN_A_MODULE, 700),
    "attribute_of_the_function": lambda: buffer(_as_attribute(), 400),
    "default_argument": lambda: buffer(_as_default(), 250),
    "shuffled_pool": lambda: buffer(kept_in_a_closure(), 600, _shuffled),
    "pool_that_is_drawn_from": lambda: buffer(
        kept_in_a_closure(), 2_000, lambda kept, rng: kept[rng.integers(len(kept))]
    ),
}


# --- generators that are held ---


def _held(held: Any, noise: Callable[[Any], Any]) -> Mechanism:
    return lambda data: total(data) + noise(held)


def _jumped(rng: Any) -> Any:
    rng.random()
    return np.random.Generator(rng.bit_generator.jumped())


GENERATORS: dict[str, Make] = {
    "generator_object": lambda: _held(
        (random.expovariate(1.0) - random.expovariate(1.0) for _ in itertools.count()), next
    ),
    "generator_that_is_held": lambda: _held(
        SimpleNamespace(rng=np.random.default_rng(7)), lambda held: held.rng.laplace()
    ),
    "generator_out_of_reach": lambda: _held(
        np.array([np.random.default_rng(7), None], dtype=object), lambda held: held[0].laplace()
    ),
    "spawns": lambda: lambda data, rng: noisy(data, rng.spawn(1)[0]),
    "jumps": lambda: lambda data, rng: noisy(data, _jumped(rng)),
}
