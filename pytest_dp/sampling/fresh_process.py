"""Runs of a mechanism in a process that imports it anew, where nothing is left of earlier runs."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
import types
from operator import attrgetter
from typing import Any, cast

from pytest_dp.limits import STARTING_SECONDS
from pytest_dp.reprs import shown
from pytest_dp.sampling.calling import Call
from pytest_dp.sampling.chunks import Input
from pytest_dp.sampling.deadline import Deadline, OutOfTime
from pytest_dp.sampling.subject import Subject


def repeated(subject: Subject, dataset: Input, copies: int, deadline: Deadline) -> list[list[str]]:
    """Two outputs each, as texts, of so many that start afresh; of some, where time is short."""
    found: list[list[str]] = []
    while len(found) < copies:
        try:
            outputs = subject.afresh(dataset, 2, (copies, len(found)), deadline)
        except OutOfTime:
            if len(found) < 2:
                raise
            break
        found.append([shown(output) for output in outputs])
    return found


def imported_anew(call: Call, data: Any, seed: int, copies: int) -> list[list[str]] | None:
    """Two outputs each, as texts, of copies of a mechanism that was just imported.

    None if another process cannot import the mechanism by its name, or fails.
    """
    place = _place(call.mechanism)
    if place is None:
        return None
    try:
        request = pickle.dumps(
            (sys.path, place, pickle.dumps((call.params, data)), call.rng, call.size, seed, copies)
        )
        done = subprocess.run(
            [sys.executable, "-c", "from pytest_dp.sampling.fresh_process import serve; serve()"],
            input=request,
            capture_output=True,
            timeout=STARTING_SECONDS,
            check=True,
        )
        return cast("list[list[str]]", pickle.loads(done.stdout))
    except Exception:  # whatever importing raises; it was only to know more
        return None


def _place(mechanism: Any) -> tuple[str, str] | None:
    """Module and name under which another process finds a function, a method or an object."""
    names: list[str] = []
    if isinstance(mechanism, types.MethodType):
        names, mechanism = [mechanism.__name__], mechanism.__self__
    module = sys.modules.get(getattr(mechanism, "__module__", None) or "")
    if module is None or module.__name__ == "__main__":
        return None
    name = getattr(mechanism, "__qualname__", "")
    if _found(module, name) is not mechanism:
        name = next((name for name, obj in vars(module).items() if obj is mechanism), "")
    return (module.__name__, ".".join([name, *names])) if name else None


def _found(module: Any, name: str) -> Any:
    try:
        return attrgetter(name)(module)
    except AttributeError:
        return None


def serve() -> None:
    """In the other process: answer the request on standard input."""
    sys.path[:], (module, name), sent, rng, size, seed, copies = pickle.load(sys.stdin.buffer)
    answer, sys.stdout = sys.stdout.buffer, sys.stderr
    params, data = pickle.loads(sent)
    mechanism = _found(importlib.import_module(module), name)
    subject = Subject(Call(mechanism, params, rng, size), seed)
    subject.begin()
    answer.write(pickle.dumps(repeated(subject, Input(data), copies, Deadline(STARTING_SECONDS))))
    subject.close()
