"""A debugger in a mechanism: ``--dp-debug`` after a violation, and ``breakpoint()``.

Both are pytest's own debugger, so that ``--pdbcls`` holds, nothing is captured meanwhile, and
quitting ends the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from _pytest.debugging import pytestPDB

from pytest_dp.claim import Claim
from pytest_dp.datasets import describe
from pytest_dp.inputs import resolved, source_of
from pytest_dp.limits import SEVERAL
from pytest_dp.plugin.failure import spared
from pytest_dp.plugin.names import AUDITED
from pytest_dp.reach import functions_of, names_in
from pytest_dp.sampling.calling import Call, prepare
from pytest_dp.sampling.generators import find, seeded
from pytest_dp.settings import Settings

if TYPE_CHECKING:
    from pytest_dp.auditors.result import AuditResult

_SWITCH = "PYTHONBREAKPOINT"
"""The variable of the environment by which ``breakpoint()`` does nothing, in all processes."""


def _on_d(mechanism: Any, d1: Any, d2: Any, rng: Any, arguments: dict[str, Any]) -> Any:  # noqa: ARG001
    return mechanism(d1, **arguments)


def _on_d_prime(mechanism: Any, d1: Any, d2: Any, rng: Any, arguments: dict[str, Any]) -> Any:  # noqa: ARG001
    return mechanism(d2, **arguments)


def debug(item: pytest.Item, result: AuditResult, report: pytest.TestReport) -> None:
    """One run on each input of a counterexample, with the same random numbers, in a debugger."""
    example = result.counterexample
    found = [audit for audit in item.stash.get(AUDITED, []) if audit[3] is result]
    if example is None or not found:
        return
    ((_, mechanism, claim, _),) = found
    writer = item.config.get_terminal_writer()
    if not item.config.option.usepdb:  # which has shown it
        writer.line()
        report.toterminal(writer)
    call = prepare(mechanism, claim.arguments)
    pair = example.d1, example.d2
    told = []
    for which, step in (("D", _on_d), ("D'", _on_d_prime)):
        with _run(call, result.seed) as (rng, arguments):
            arguments |= example.params
            header = f"{item.name} on {which}: s goes into the mechanism, q ends the run"
            debugger: Any = pytestPDB._init_pdb(  # type: ignore[no-untyped-call]  # noqa: SLF001
                "runcall", header=header
            )
            output = _output_of(debugger.runcall, step, mechanism, *pair, rng, arguments)
        told.append(f"on {which}: {describe(output)}")
    capture: Any = item.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture is not None else nullcontext():
        writer.line(", ".join(told))


@contextmanager
def _run(call: Call, seed: int) -> Iterator[tuple[np.random.Generator, dict[str, Any]]]:
    """The generator of one run, and the arguments of its call, with all other sources seeded."""
    captured = find(call.mechanism, call.params)
    with seeded(np.random.SeedSequence(seed), captured) as rng:
        given = {call.rng: rng} if call.rng else {}
        yield rng, {**call.params, **given, **({call.size: 1} if call.size else {})}


@contextmanager
def breaking_once(
    item: pytest.Item, mechanism: Any, claim: Claim, settings: Settings
) -> Iterator[Settings]:
    """The settings of an audit in which ``breakpoint()`` does nothing, as it has stopped before."""
    functions = functions_of(mechanism, claim.arguments.params)
    if not any("breakpoint" in names_in(function.__code__) for function in functions):
        yield settings
        return
    if os.environ.get(_SWITCH) != "0":
        _stop_once(item, mechanism, claim, settings.seed or 0)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(_SWITCH, "0")
        yield replace(settings, jobs=1)


class _Entered:
    """Notices that a debugger was entered."""

    def __init__(self) -> None:
        self.yet = False

    def pytest_enter_pdb(self) -> None:
        self.yet = True


def _stop_once(item: pytest.Item, mechanism: Any, claim: Claim, seed: int) -> None:
    """A few runs before the audit, until ``breakpoint()`` has stopped one of them."""
    if hasattr(item.config, "workerinput"):
        spared(item, "breakpoint() does not stop in workers of pytest-xdist: add -n 0")
        return
    call = prepare(mechanism, claim.arguments)
    claim = replace(claim, promise=resolved(claim.promise, item.config.rootpath))
    entered = _Entered()
    item.config.pluginmanager.register(entered)
    try:
        for pair in islice(source_of(claim, seed, item.name).given, SEVERAL):
            for data, params in ((pair.d1, pair.params), (pair.d2, pair.params)):
                with _run(call, seed) as (_, arguments):
                    _output_of(mechanism, data, **arguments, **params)
                if entered.yet:
                    return
    finally:
        item.config.pluginmanager.unregister(entered)
    spared(item, f"breakpoint() was not reached in runs on {SEVERAL} pairs, and later ones pass it")


def _output_of(run: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """What a run gives; what it raises is an output like any other."""
    try:
        return run(*args, **keywords)
    except pytest.exit.Exception:
        raise
    except Exception as error:
        return error
