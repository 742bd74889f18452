"""Mechanisms that keep something from run to run, and keep their claim: none may be red.

Each keeps its claim of eps = 1 when it is asked once, and most whenever they are asked: noise from
buffers, pools and generators that are held, answers from caches, counters, quotas. Their runs need
not be independent, though, which is all that the evidence of an audit rests on. Errors,
inconclusive audits and audits without a violation are all fine; exit status 1 if there is a
violation.
"""

from __future__ import annotations

import argparse
import collections
import colorsys
import contextvars
import ctypes
import functools
import itertools
import os
import random
import socket
import sqlite3
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from benchmarks.common import cpu_seconds, progress, table
from pytest_dp import audit
from pytest_dp.errors import PytestDPError

Mechanism = Callable[..., Any]
ZOO: list[Callable[[], Mechanism]] = []
TRUTH_KEPT = np.exp(0.9) / (1 + np.exp(0.9))
"""How often a bit is kept as it is: a loss of 0.9."""


def zoo(make: Callable[[], Mechanism]) -> Callable[[], Mechanism]:
    """Add what makes a mechanism to the zoo."""
    ZOO.append(make)
    return make


def _buffer(size: int) -> Mechanism:
    kept: list[float] = []

    def mechanism(data: Any, rng: Any) -> Any:
        if not kept:
            kept.extend(rng.laplace(size=size))
        return sum(data) + kept.pop()

    return mechanism


for _size in (150, 1_000, 20_000):
    ZOO.append(functools.partial(_buffer, _size))
    ZOO[-1].__name__ = f"buffer_of_{_size}"  # type: ignore[attr-defined]


@zoo
def buffer_for_each_input() -> Mechanism:
    kept: dict[int, list[float]] = collections.defaultdict(list)

    def mechanism(data: Any, rng: Any) -> Any:
        if not kept[len(data)]:
            kept[len(data)].extend(rng.laplace(size=200))
        return sum(data) + kept[len(data)].pop()

    return mechanism


class _Pool:
    """Noise in an array, with the place of the next one; behind a lock."""

    def __init__(self) -> None:
        self.noise, self.next, self.lock = np.empty(0), 0, threading.Lock()

    def __call__(self, data: Any, rng: Any) -> Any:
        with self.lock:
            if self.next == len(self.noise):
                self.noise, self.next = rng.laplace(size=500), 0
            self.next += 1
            return sum(data) + self.noise[self.next - 1]


@zoo
def array_on_an_object() -> Mechanism:
    return _Pool()


class _OnTheClass:
    shared: ClassVar[collections.deque[float]] = collections.deque()

    def __call__(self, data: Any, rng: Any) -> Any:
        if not self.shared:
            self.shared.extend(rng.laplace(size=300))
        return sum(data) + self.shared.popleft()


@zoo
def deque_on_the_class() -> Mechanism:
    _OnTheClass.shared.clear()
    return _OnTheClass()


_IN_A_MODULE: list[float] = []


@zoo
def list_in_a_module() -> Mechanism:
    def mechanism(data: Any, rng: Any) -> Any:
        if not _IN_A_MODULE:
            _IN_A_MODULE.extend(rng.laplace(size=700))
        return sum(data) + _IN_A_MODULE.pop()

    return mechanism


@zoo
def attribute_of_the_function() -> Mechanism:
    def mechanism(data: Any, rng: Any) -> Any:
        if not mechanism.noise:  # type: ignore[attr-defined]
            mechanism.noise = list(rng.laplace(size=400))  # type: ignore[attr-defined]
        return sum(data) + mechanism.noise.pop()  # type: ignore[attr-defined]

    mechanism.noise = []  # type: ignore[attr-defined]
    return mechanism


@zoo
def default_argument() -> Mechanism:
    def mechanism(data: Any, rng: Any, kept: list[float] = []) -> Any:  # noqa: B006
        if not kept:
            kept.extend(rng.laplace(size=250))
        return sum(data) + kept.pop()

    return mechanism


@zoo
def shuffled_pool() -> Mechanism:
    kept: list[float] = []

    def mechanism(data: Any, rng: Any) -> Any:
        if not kept:
            kept.extend(rng.laplace(size=600))
            rng.shuffle(kept)
        return sum(data) + kept.pop()

    return mechanism


@zoo
def pool_that_is_drawn_from() -> Mechanism:
    kept: list[float] = []

    def mechanism(data: Any, rng: Any) -> Any:
        if not kept:
            kept.extend(rng.laplace(size=2_000))
        return sum(data) + kept[rng.integers(len(kept))]

    return mechanism


@zoo
def generator_object() -> Mechanism:
    noise = (random.expovariate(1.0) - random.expovariate(1.0) for _ in itertools.count())
    return lambda data: sum(data) + next(noise)


@zoo
def generator_that_is_held() -> Mechanism:
    held = SimpleNamespace(rng=np.random.default_rng(7))
    return lambda data: sum(data) + held.rng.laplace()


@zoo
def generator_out_of_reach() -> Mechanism:
    held = np.array([np.random.default_rng(7), None], dtype=object)
    return lambda data: sum(data) + held[0].laplace()


@zoo
def spawns() -> Mechanism:
    return lambda data, rng: sum(data) + rng.spawn(1)[0].laplace()


@zoo
def jumps() -> Mechanism:
    def mechanism(data: Any, rng: Any) -> Any:
        rng.random()
        return sum(data) + np.random.Generator(rng.bit_generator.jumped()).laplace()

    return mechanism


@zoo
def memo() -> Mechanism:
    kept: dict[int, float] = {}
    return lambda data, rng: kept.setdefault(len(data), sum(data) + rng.laplace())


@zoo
def memo_of_whole_numbers() -> Mechanism:
    kept: dict[int, int] = {}

    def mechanism(data: Any, rng: Any) -> Any:
        noise = rng.geometric(1 - np.exp(-1)) - rng.geometric(1 - np.exp(-1))
        return kept.setdefault(len(data), sum(data) + int(noise))

    return mechanism


@zoo
def lru_cache() -> Mechanism:
    @functools.lru_cache
    def answer(n: int) -> float:
        return n + np.random.laplace()

    return lambda data: answer(len(data))


@zoo
def small_lru_cache() -> Mechanism:
    @functools.lru_cache(maxsize=1)
    def answer(n: int) -> float:
        return n + np.random.laplace()

    return lambda data: answer(len(data))


@zoo
def permanent_response() -> Mechanism:
    kept: dict[int, int] = {}

    def mechanism(data: Any, rng: Any) -> Any:
        bit = len(data) % 2
        if bit not in kept:
            kept[bit] = bit if rng.random() < TRUTH_KEPT else 1 - bit
        return kept[bit] if rng.random() < 0.85 else 1 - kept[bit]

    return mechanism


@zoo
def noise_that_is_kept_and_more() -> Mechanism:
    kept: dict[int, float] = {}

    def mechanism(data: Any, rng: Any) -> Any:
        first = kept.setdefault(len(data), rng.laplace())
        return sum(data) + first + 0.3 * rng.laplace()

    return mechanism


@zoo
def answers_that_expire() -> Mechanism:
    kept: dict[int, list[float]] = {}

    def mechanism(data: Any, rng: Any) -> Any:
        if not kept.get(len(data)):
            kept[len(data)] = [sum(data) + rng.laplace()] * 100
        return kept[len(data)].pop()

    return mechanism


@zoo
def quota() -> Mechanism:
    left = [5_000]

    def mechanism(data: Any, rng: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError("used up")
        return sum(data) + rng.laplace()

    return mechanism


@zoo
def counter() -> Mechanism:
    calls = itertools.count()
    return lambda data, rng: (next(calls) % 7) + sum(data) + rng.laplace()


@zoo
def running_total() -> Mechanism:
    total = [0.0]

    def mechanism(data: Any, rng: Any) -> Any:
        total[0] += rng.laplace()
        return sum(data) + total[0]

    return mechanism


@zoo
def noise_that_fades_slowly() -> Mechanism:
    last = [0.0]

    def mechanism(data: Any, rng: Any) -> Any:
        last[0] = 0.9 * last[0] + rng.laplace()
        return sum(data) + last[0]

    return mechanism


@zoo
def antithetic_runs() -> Mechanism:
    kept: list[float] = []

    def mechanism(data: Any, rng: Any) -> Any:
        if not kept:
            noise = rng.laplace()
            kept.extend((noise, -noise))
        return sum(data) + kept.pop()

    return mechanism


@zoo
def antithetic_rows() -> Mechanism:
    def mechanism(data: Any, rng: Any, size: int) -> Any:
        noise = rng.laplace(size=-(-size // 2))
        return sum(data) + np.concatenate([noise, -noise])[:size]

    return mechanism


@zoo
def rows_in_pairs() -> Mechanism:
    return lambda data, rng, size: sum(data) + np.repeat(rng.laplace(size=-(-size // 2)), 2)[:size]


class _NoCopy:
    """Answers in an object that refuses to be copied, as connections do."""

    def __init__(self) -> None:
        self.kept: dict[int, float] = {}

    def __reduce__(self) -> Any:
        raise TypeError("not to be copied")

    def answer(self, data: Any, rng: Any) -> Any:
        return self.kept.setdefault(len(data), sum(data) + rng.laplace())


@zoo
def memo_that_refuses_to_be_copied() -> Mechanism:
    return _NoCopy().answer


@zoo
def buffer_that_refuses_to_be_copied() -> Mechanism:
    held, buffered = _NoCopy(), _buffer(500)
    return lambda data, rng: buffered(data, rng) + 0 * len(held.kept)


@zoo
def response_that_refuses_to_be_copied() -> Mechanism:
    held, response = _NoCopy(), permanent_response()
    return lambda data, rng: response(data, rng) + 0 * len(held.kept)


@zoo
def memo_in_a_database() -> Mechanism:
    base = sqlite3.connect(":memory:")
    base.execute("create table kept (n primary key, answer)")

    def mechanism(data: Any, rng: Any) -> Any:
        (known,) = base.execute("select max(answer) from kept where n = ?", [len(data)]).fetchone()
        if known is None:
            known = sum(data) + rng.laplace()
            base.execute("insert into kept values (?, ?)", [len(data), known])
        return known

    return mechanism


@zoo
def memo_in_a_generator() -> Mechanism:
    def answers() -> Any:
        kept: dict[int, float] = {}
        answer: Any = None
        while True:
            data, rng = yield answer
            answer = kept.setdefault(len(data), sum(data) + rng.laplace())

    running = answers()
    next(running)
    return lambda data, rng: running.send((data, rng))


@zoo
def memo_of_a_thread() -> Mechanism:
    local = threading.local()
    return lambda data, rng: vars(local).setdefault(str(len(data)), sum(data) + rng.laplace())


@zoo
def memo_in_memory_of_c() -> Mechanism:
    known = ctypes.pointer((ctypes.c_double * 20)())

    def mechanism(data: Any, rng: Any) -> Any:
        known.contents[len(data)] = known.contents[len(data)] or sum(data) + rng.laplace()
        return known.contents[len(data)]

    return mechanism


@zoo
def memo_of_a_server() -> Mechanism:
    here, there = socket.socketpair()
    kept: dict[bytes, float] = {}

    def mechanism(data: Any, rng: Any) -> Any:
        here.send(bytes([len(data)]))
        return kept.setdefault(there.recv(1), sum(data) + rng.laplace())

    return mechanism


# --- where copies do not reach ---


@zoo
def memo_in_the_environment() -> Mechanism:
    for n in range(20):
        os.environ.pop(f"STATE_ZOO_{n}", None)

    def mechanism(data: Any, rng: Any) -> Any:
        name = f"STATE_ZOO_{len(data)}"
        if name not in os.environ:
            os.environ[name] = repr(sum(data) + rng.laplace())
        return float(os.environ[name])

    return mechanism


LIBRARY: Any = colorsys
"""A module of somebody else, which copies share."""


@zoo
def memo_in_a_library() -> Mechanism:
    LIBRARY.kept = {}
    return lambda data, rng: LIBRARY.kept.setdefault(len(data), sum(data) + rng.laplace())


@zoo
def memo_in_attributes_of_a_library() -> Mechanism:
    for n in range(20):
        vars(LIBRARY).pop(f"kept_{n}", None)

    def mechanism(data: Any, rng: Any) -> Any:
        name = f"kept_{len(data)}"
        if not hasattr(LIBRARY, name):
            setattr(LIBRARY, name, sum(data) + rng.laplace())
        return getattr(LIBRARY, name)

    return mechanism


@zoo
def memo_on_a_class_of_a_library() -> Mechanism:
    kept: Any = collections.UserDict
    kept.answers = {}
    return lambda data, rng: kept.answers.setdefault(len(data), sum(data) + rng.laplace())


@zoo
def memo_of_a_bit_in_a_library() -> Mechanism:
    LIBRARY.kept = {}

    def mechanism(data: Any, rng: Any) -> Any:
        bit = len(data) % 2
        return LIBRARY.kept.setdefault(len(data), bit if rng.random() < TRUTH_KEPT else 1 - bit)

    return mechanism


@zoo
def response_in_a_library() -> Mechanism:
    LIBRARY.kept = {}

    def mechanism(data: Any, rng: Any) -> Any:
        bit = len(data) % 2
        kept = LIBRARY.kept.setdefault(bit, bit if rng.random() < TRUTH_KEPT else 1 - bit)
        return kept if rng.random() < 0.85 else 1 - kept

    return mechanism


@zoo
def noise_in_a_library_and_more() -> Mechanism:
    LIBRARY.kept = {}

    def mechanism(data: Any, rng: Any) -> Any:
        return sum(data) + LIBRARY.kept.setdefault(len(data), rng.laplace()) + 0.3 * rng.laplace()

    return mechanism


@zoo
def memo_of_a_library() -> Mechanism:
    LIBRARY.answer = functools.lru_cache(lambda n: n + np.random.laplace())
    return lambda data: LIBRARY.answer(len(data))


@zoo
def memo_in_a_database_of_a_library() -> Mechanism:
    LIBRARY.answer = memo_in_a_database()
    return lambda data, rng: LIBRARY.answer(data, rng)


@zoo
def memo_of_a_context() -> Mechanism:
    kept: contextvars.ContextVar[dict[int, float]] = contextvars.ContextVar("kept")

    def mechanism(data: Any, rng: Any) -> Any:
        answers = kept.get({})
        if len(data) not in answers:
            kept.set({**answers, len(data): sum(data) + rng.laplace()})
        return kept.get()[len(data)]

    return mechanism


def main() -> int:
    """Audit every mechanism of the zoo with many seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=50)
    parser.add_argument("--max-samples", type=int, default=10_000)
    parser.add_argument("--method", default="sequential")
    parser.add_argument("--only", default="", help="those with this in their names")
    options = parser.parse_args()
    inputs = [[1] * n for n in range(1, 16)]
    rows, red = [], 0
    for make in ZOO:
        if options.only not in make.__name__:
            continue
        found: collections.Counter[str] = collections.Counter()
        started = cpu_seconds()
        vectorized = "size" if make in (antithetic_rows, rows_in_pairs) else None
        for seed in range(options.audits):
            try:
                found[
                    audit(
                        make(),
                        eps=1.0,
                        neighbors="add_remove_one",
                        inputs=inputs,
                        seed=seed,
                        n_jobs=1,
                        vectorized=vectorized,
                        max_samples=options.max_samples,
                        method=options.method,
                    ).verdict
                ] += 1
            except PytestDPError:
                found["error"] += 1
        name = make.__name__.replace("_", " ")
        kinds = "violated", "error", "no violation", "inconclusive"
        spent = (cpu_seconds() - started) / options.audits
        rows.append((name, *(str(found[kind] or "") for kind in kinds), f"{spent:.2f}"))
        red += found["violated"]
        progress(" ".join(rows[-1]))
    head = ("mechanism", "violated", "error", "no violation", "inconclusive", "CPU s an audit")
    print(table(head, rows))
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
