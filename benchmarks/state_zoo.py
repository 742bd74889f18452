"""Mechanisms that keep something from run to run: those that keep their claim may not be red.

Each keeps its claim of eps = 1 when it is asked once, and most whenever they are asked: noise from
buffers, pools and generators that are held, answers from caches, counters, quotas. Their runs need
not be independent, though, which is all that the evidence of an audit rests on. Errors,
inconclusive audits and audits without a violation are all fine; exit status 1 if there is a
violation.

With `--leaky`, each loses three times what it claims, in the first answer as in all others: as many
as possible should be red.
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
import socket
import sqlite3
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.common import cpu_seconds, progress, table
from benchmarks.kept_noise import (
    BUFFERS,
    GENERATORS,
    LOSS,
    Make,
    Mechanism,
    Place,
    bit,
    buffer,
    kept_in_a_closure,
    noisy,
    total,
    whole,
)
from pytest_dp import audit
from pytest_dp.basics.errors import PytestDPError

LEAKY = 3
"""What one record moves with `--leaky`, in units of the noise."""
LIBRARY: Any = colorsys
"""A module of somebody else, which copies share."""


# --- answers that are kept ---


def memo(
    place: Place,
    first: Mechanism = noisy,
    then: Callable[..., Any] = lambda kept, data, rng: kept,
    key: Callable[[Any], Any] = len,
) -> Mechanism:
    """Keeps its first answer on each input at a place, and answers by what it kept."""

    def mechanism(data: Any, rng: Any) -> Any:
        answers = place()
        if key(data) not in answers:
            answers[key(data)] = first(data, rng)
        return then(answers[key(data)], data, rng)

    return mechanism


def _dict() -> Place:
    kept: dict[Any, Any] = {}
    return lambda: kept


def _in_library() -> Place:
    LIBRARY.kept = {}
    return lambda: LIBRARY.kept


def _on_class() -> Place:
    kept: Any = collections.UserDict
    kept.answers = {}
    return lambda: kept.answers


def _in_thread() -> Place:
    local = threading.local()
    return lambda: vars(local)


def _in_environment() -> Place:
    for n in range(20):
        os.environ.pop(f"STATE_ZOO_{n}", None)
    return lambda: os.environ


def _as_attributes() -> Place:
    for n in range(20):
        vars(LIBRARY).pop(f"kept_{n}", None)
    return lambda: vars(LIBRARY)


def _again(kept: int, data: Any, rng: Any) -> int:
    return kept if rng.random() < 0.85 else 1 - kept


RESPONSE: Any = {"first": bit, "then": _again, "key": lambda data: len(data) % 2}
"""Permanent randomised response, and another one each time."""
MORE_NOISE: Any = {
    "first": lambda data, rng: rng.laplace(),
    "then": lambda kept, data, rng: total(data) + kept + 0.3 * rng.laplace(),
}


def _cached(size: int | None = 128) -> Callable[[int], float]:
    return functools.lru_cache(maxsize=size)(lambda n: LOSS[0] * n + np.random.laplace())


def _by_cache(size: int) -> Mechanism:
    answer = _cached(size)
    return lambda data: answer(len(data))


def _expiring() -> Mechanism:
    kept: dict[int, list[float]] = {}

    def mechanism(data: Any, rng: Any) -> Any:
        if not kept.get(len(data)):
            kept[len(data)] = [noisy(data, rng)] * 100
        return kept[len(data)].pop()

    return mechanism


class _NoCopy:
    """Answers in an object that refuses to be copied, as connections do."""

    def __init__(self) -> None:
        self.kept: dict[int, float] = {}

    def __reduce__(self) -> Any:
        raise TypeError("not to be copied")

    def answer(self, data: Any, rng: Any) -> Any:
        return self.kept.setdefault(len(data), noisy(data, rng))


def _beside_no_copy(other: Mechanism) -> Mechanism:
    held = _NoCopy()
    return lambda data, rng: other(data, rng) + 0 * len(held.kept)


def _in_database() -> Mechanism:
    base = sqlite3.connect(":memory:")
    base.execute("create table kept (n primary key, answer)")

    def mechanism(data: Any, rng: Any) -> Any:
        (known,) = base.execute("select max(answer) from kept where n = ?", [len(data)]).fetchone()
        if known is None:
            known = noisy(data, rng)
            base.execute("insert into kept values (?, ?)", [len(data), known])
        return known

    return mechanism


def _in_generator() -> Mechanism:
    def answers() -> Any:
        kept: dict[int, float] = {}
        answer: Any = None
        while True:
            data, rng = yield answer
            answer = kept.setdefault(len(data), noisy(data, rng))

    running = answers()
    next(running)
    return lambda data, rng: running.send((data, rng))


def _in_memory_of_c() -> Mechanism:
    known = ctypes.pointer((ctypes.c_double * 20)())

    def mechanism(data: Any, rng: Any) -> Any:
        known.contents[len(data)] = known.contents[len(data)] or noisy(data, rng)
        return known.contents[len(data)]

    return mechanism


def _of_server() -> Mechanism:
    here, there = socket.socketpair()
    kept: dict[bytes, float] = {}

    def mechanism(data: Any, rng: Any) -> Any:
        here.send(bytes([len(data)]))
        return kept.setdefault(there.recv(1), noisy(data, rng))

    return mechanism


def _of_library() -> Mechanism:
    LIBRARY.answer = _cached()
    return lambda data: LIBRARY.answer(len(data))


def _in_database_of_library() -> Mechanism:
    LIBRARY.answer = _in_database()
    return lambda data, rng: LIBRARY.answer(data, rng)


def _of_context() -> Mechanism:
    kept: contextvars.ContextVar[dict[int, float]] = contextvars.ContextVar("kept")

    def mechanism(data: Any, rng: Any) -> Any:
        answers = kept.get({})
        if len(data) not in answers:
            kept.set({**answers, len(data): noisy(data, rng)})
        return kept.get()[len(data)]

    return mechanism


MEMOS: dict[str, Make] = {
    "memo": lambda: memo(_dict()),
    "memo_of_whole_numbers": lambda: memo(_dict(), whole),
    "lru_cache": lambda: _by_cache(128),
    "small_lru_cache": lambda: _by_cache(1),
    "permanent_response": lambda: memo(_dict(), **RESPONSE),
    "noise_that_is_kept_and_more": lambda: memo(_dict(), **MORE_NOISE),
    "answers_that_expire": _expiring,
    "memo_that_refuses_to_be_copied": lambda: _NoCopy().answer,
    "buffer_that_refuses_to_be_copied": lambda: _beside_no_copy(buffer(kept_in_a_closure(), 500)),
    "response_that_refuses_to_be_copied": lambda: _beside_no_copy(memo(_dict(), **RESPONSE)),
    "memo_in_a_database": _in_database,
    "memo_in_a_generator": _in_generator,
    "memo_of_a_thread": lambda: memo(_in_thread(), key=lambda data: str(len(data))),
    "memo_in_memory_of_c": _in_memory_of_c,
    "memo_of_a_server": _of_server,
}
ELSEWHERE: dict[str, Make] = {
    "memo_in_the_environment": lambda: memo(
        _in_environment(),
        lambda data, rng: repr(noisy(data, rng)),
        lambda kept, data, rng: float(kept),
        lambda data: f"STATE_ZOO_{len(data)}",
    ),
    "memo_in_a_library": lambda: memo(_in_library()),
    "memo_in_attributes_of_a_library": lambda: memo(
        _as_attributes(), key=lambda data: f"kept_{len(data)}"
    ),
    "memo_on_a_class_of_a_library": lambda: memo(_on_class()),
    "memo_of_a_bit_in_a_library": lambda: memo(_in_library(), bit),
    "noise_in_a_library_and_more": lambda: memo(_in_library(), **MORE_NOISE),
    "memo_of_a_library": _of_library,
    "memo_in_a_database_of_a_library": _in_database_of_library,
    "memo_of_a_context": _of_context,
}
"""Where copies do not reach."""


# --- runs that depend on those before, and rows on each other ---


def _summed(share: float) -> Mechanism:
    last = [0.0]

    def mechanism(data: Any, rng: Any) -> Any:
        last[0] = share * last[0] + rng.laplace()
        return total(data) + last[0]

    return mechanism


def _counter() -> Mechanism:
    calls = itertools.count()
    return lambda data, rng: (next(calls) % 7) + noisy(data, rng)


def _quota() -> Mechanism:
    left = [5_000]

    def mechanism(data: Any, rng: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError("used up")
        return noisy(data, rng)

    return mechanism


def _antithetic() -> Mechanism:
    kept: list[float] = []

    def mechanism(data: Any, rng: Any) -> Any:
        if not kept:
            noise = rng.laplace()
            kept.extend((noise, -noise))
        return total(data) + kept.pop()

    return mechanism


def _rows(pairs_of: Callable[[Any], Any]) -> Mechanism:
    return lambda data, rng, size: total(data) + pairs_of(rng.laplace(size=-(-size // 2)))[:size]


ROWS: dict[str, Make] = {
    "antithetic_rows": lambda: _rows(lambda noise: np.concatenate([noise, -noise])),
    "rows_in_pairs": lambda: _rows(lambda noise: np.repeat(noise, 2)),
}
RUNS: dict[str, Make] = {
    "quota": _quota,
    "counter": _counter,
    "running_total": lambda: _summed(1.0),
    "noise_that_fades_slowly": lambda: _summed(0.9),
    "antithetic_runs": _antithetic,
}
ZOO: dict[str, Make] = {
    **BUFFERS,
    **GENERATORS,
    **MEMOS,
    **RUNS,
    **ROWS,
    **ELSEWHERE,
    "response_in_a_library": lambda: memo(_in_library(), **RESPONSE),
}


def main() -> int:
    """Audit every mechanism of the zoo with many seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=50)
    parser.add_argument("--max-samples", type=int, default=10_000)
    parser.add_argument("--method", default="sequential")
    parser.add_argument("--only", default="", help="those with this in their names")
    parser.add_argument("--leaky", action="store_true", help="three times the loss")
    options = parser.parse_args()
    LOSS[0] = LEAKY if options.leaky else 1
    inputs = [[1] * n for n in range(1, 16)]
    rows, red, found_red = [], 0, 0
    for name, make in ZOO.items():
        if options.only not in name:
            continue
        found: collections.Counter[str] = collections.Counter()
        started = cpu_seconds()
        vectorized = "size" if name in ROWS else None
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
        kinds = "violated", "error", "no violation", "inconclusive"
        spent = (cpu_seconds() - started) / options.audits
        rows.append(
            (name.replace("_", " "), *(str(found[kind] or "-") for kind in kinds), f"{spent:.2f}")
        )
        red += found["violated"]
        found_red += found["violated"] > 0
        progress(" ".join(rows[-1]))
    head = ("mechanism", "violated", "error", "no violation", "inconclusive", "CPU s an audit")
    print(table(head, rows))
    print(f"{found_red} of {len(rows)} mechanisms were called violated")
    return 1 if red and not options.leaky else 0


if __name__ == "__main__":
    sys.exit(main())
