"""Runs of a mechanism in a process that imports it anew, where nothing is left of earlier runs."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from dataclasses import replace
from typing import Any, cast

from pytest_dp.arrays import Outputs
from pytest_dp.reprs import shown
from pytest_dp.sampling.calling import Call, Made
from pytest_dp.sampling.copies import Pristine
from pytest_dp.sampling.streams import seeded, stream

PROCESS_SECONDS = 20.0
"""Seconds to start, to import, and to run: mechanisms that take longer are not looked at like that.
Chosen by hand."""


def repeated(call: Call, data: Any, seed: int, copies: int) -> list[list[str]] | None:
    """Two outputs each, as texts, of copies of a mechanism that was just imported.

    Returns
    -------
    list of list of str, or None
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
            timeout=PROCESS_SECONDS,
            check=True,
        )
        return cast("list[list[str]]", pickle.loads(done.stdout))
    except Exception:  # whatever importing raises; it was only to know more
        return None


def _place(mechanism: Any) -> tuple[str, str] | None:
    """Module and name under which another process finds a function."""
    module, name = getattr(mechanism, "__module__", None), getattr(mechanism, "__qualname__", "")
    if not module or module == "__main__" or not name.isidentifier():
        return None
    here = getattr(sys.modules.get(module), name, None)
    return (module, name) if here is mechanism else None


def serve() -> None:
    """In the other process: answer the request on standard input."""
    sys.path[:], (module, name), sent, rng, size, seed, copies = pickle.load(sys.stdin.buffer)
    answer, sys.stdout = sys.stdout.buffer, sys.stderr
    mechanism = getattr(importlib.import_module(module), name)
    params, data = pickle.loads(sent)
    call = Call(mechanism, params, rng, size, pristine=Pristine((mechanism, params)), made=Made())
    answer.write(pickle.dumps([_of_copy(call, data, seed, k) for k in range(copies)]))


def _of_copy(call: Call, data: Any, seed: int, number: int) -> list[str]:
    copied, (copied_data,) = call.copied(data)
    with seeded(stream(seed, number), copied.captured) as generator:
        outputs: Outputs = replace(copied, input=None).draw(copied_data, 2, generator)
    return [shown(output) for output in outputs]
