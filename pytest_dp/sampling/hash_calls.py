"""Which hash functions of libraries a mechanism calls, and with what."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from pytest_dp.errors import ClaimError
from pytest_dp.limits import MOMENT, TRIAL_RUNS
from pytest_dp.outputs.hashed import DIGESTS, HASHES, HashCall, Template, templates
from pytest_dp.reach import reach
from pytest_dp.sampling.calling import Call
from pytest_dp.sampling.chunks import Input
from pytest_dp.sampling.copies import CannotCopy
from pytest_dp.sampling.deadline import Deadline, OutOfTime, interruptible
from pytest_dp.sampling.generators import seeded
from pytest_dp.sampling.streams import Purpose, stream


def hash_templates(call: Call, datasets: Sequence[Input], seed: int) -> list[Template] | None:
    """Return the hash of each input; None if it calls none that is known, or cannot be copied."""
    try:
        deadline = Deadline(10 * MOMENT)
        found = [hash_template(call, data, seed, deadline) for data in datasets]
    except (CannotCopy, ClaimError, OutOfTime):
        return None
    known = [template for template in found if template is not None]
    return known if len(known) == len(found) else None


def hash_template(call: Call, data: Input, seed: int, deadline: Deadline) -> Template | None:
    """The hash of an input that a copy of the mechanism calls, with the seed that outputs have.

    That it depends on both alone is shown by a second run. None if it calls none that is known, or
    outputs have no seed of it. Raises CannotCopy if there is no copy, and OutOfTime if the deadline
    passes.
    """
    runs = [_watched(call, data, (seed, run), deadline) for run in range(TRIAL_RUNS)]
    (calls, output), (again, other) = runs
    following = set(templates(again, other))
    return next((t for t in templates(calls, output) if t in following), None)


def _watched(
    call: Call, data: Input, key: tuple[int, int], deadline: Deadline
) -> tuple[list[HashCall], Any]:
    """The calls of a run, and its output."""
    copied, (on_copy,) = call.copied(data.fresh())
    sequence = stream(key[0], Purpose.HASHES, key[1])
    seen: list[HashCall] = []
    with (
        _recorded(copied, seen),
        interruptible(deadline, None),
        seeded(sequence, copied.captured) as rng,
    ):
        draw = copied.draw if copied.size is None else copied.rows
        (output,) = draw(on_copy, 1, rng)
    return seen, output


@contextmanager
def _recorded(call: Call, seen: list[HashCall]) -> Iterator[None]:
    """Let calls of hash functions be noted, wherever the mechanism's code has them by a name."""
    thread, stand_ins = threading.get_ident(), dict[int, Any]()
    spaces: list[dict[str, Any]] = []
    for module, names in HASHES.items():
        if module in sys.modules:
            spaces.append(vars(sys.modules[module]))
            for name in names & spaces[-1].keys():
                original = spaces[-1][name]
                stand_ins[id(original)] = _noting(module, name, original, seen, thread)
    roots = ((root, "") for root in (call.mechanism, *call.params.values()))
    for value, _ in reach(*roots, foreign=True):
        if isinstance(value, FunctionType):
            spaces.append(value.__globals__)
            held = map(value.__globals__.get, value.__code__.co_names)
            spaces += [vars(what) for what in held if isinstance(what, ModuleType)]  # also copies
    places = [
        (space, name, what)
        for space in {id(space): space for space in spaces}.values()
        for name, what in list(space.items())
        if id(what) in stand_ins
    ]
    try:
        for space, name, original in places:
            space[name] = stand_ins[id(original)]
        yield
    finally:
        for space, name, original in places:
            space[name] = original


def _noting(
    module: str, name: str, function: Callable[..., Any], seen: list[HashCall], thread: int
) -> Callable[..., Any]:
    """A function that does the same, and notes what it was called with."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        made = function(*arguments, **keywords)
        if threading.get_ident() != thread:
            return made
        noted = HashCall(module, name, arguments, tuple(sorted(keywords.items())))
        if any(hasattr(made, asked) for asked in DIGESTS):
            return _Noting(made, noted, seen)
        _note(noted, seen)
        return made

    return call


def _note(call: HashCall, seen: list[HashCall]) -> None:
    call = call.made(_plain)
    if all(isinstance(value, str | bytes | int | float | None) for value in call.values):
        seen.append(call)


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, np.integer) else value


class _Noting:
    """A hash object that notes what it is updated with, and what is asked of it."""

    def __init__(self, made: Any, call: HashCall, seen: list[HashCall]) -> None:
        self._made, self._call, self._seen = made, call, seen

    def update(self, part: Any) -> None:
        self._made.update(part)
        self._call = replace(self._call, updates=(*self._call.updates, part))

    def copy(self) -> _Noting:
        return _Noting(self._made.copy(), self._call, self._seen)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._made, name)
        if name in DIGESTS:
            _note(replace(self._call, asked=name), self._seen)
        return value
