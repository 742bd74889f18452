"""What each tuning constant gains: audits with another value of it, or without what it is for.

Fixed audits of mechanisms that break their claim are run with the constant as it is and with the
alternative, with the same seeds, and compared by the samples that they took to detect. A claim
that is missed counts as detected with the last sample that was allowed. A constant is patched in
its module and wherever it is imported by name.

Run with ``python -m benchmarks.ablation auditors.pair_state.HOPE_ERRORS=0 [--suites known odd]``.
The module's name goes without ``pytest_dp``; behind the name of a constant, or of a function, is
any Python expression, in which ``was`` is the present value: ``attacks.additive.POOLING=was/2``.
Several that belong together are joined by `` & ``. ``--log FILE`` keeps what is done, so that it
is not done again: it is for one version of the code.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import json
import math
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import pytest_dp
from benchmarks.ablation_suites import SUITES, Trial
from benchmarks.common import cpu_seconds, progress, table

Measured = tuple[float, float, int, float]
"""Samples to detection (the most that are allowed if it was missed), 1 if missed, CPU seconds."""


def load_all() -> None:
    """Import every module of the package, so that all are patched that import a constant."""
    for module in pkgutil.walk_packages(pytest_dp.__path__, "pytest_dp."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


@cache
def importers(module: str, name: str) -> list[tuple[Any, str]]:
    """Modules that hold a name because they import it from a module, and what they call it.

    Raises
    ------
    ValueError
        If something else is made of it when a module is imported: patching comes too late for that.
    """
    holders: list[tuple[Any, str]] = []
    for loaded in [m for key, m in sys.modules.items() if key.startswith("pytest_dp")]:
        tree = ast.parse(inspect.getsource(loaded))
        names = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == module
            for alias in node.names
            if alias.name == name
        }
        if loaded.__name__ == module:
            names = {name}
        for held in names:
            if held in _used_at_import(tree):
                raise ValueError(f"{loaded.__name__} uses {held} when it is imported.")
            holders.append((loaded, held))
    return holders


def _used_at_import(tree: ast.Module) -> set[str]:
    """Names that are read outside of the bodies of functions: other constants, defaults."""
    used: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.AnnAssign):
            parts: list[ast.AST | None] = [node.value]
        elif isinstance(node, ast.FunctionDef | ast.Lambda):
            arguments = node.args
            parts = [*arguments.defaults, *arguments.kw_defaults]
        else:
            parts = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            used.add(node.id)
        for part in parts:
            if part is not None:
                visit(part)

    visit(tree)
    return used


@contextmanager
def patched(setting: str) -> Iterator[None]:
    """One name has another value, wherever it is looked up."""
    path, _, expression = setting.partition("=")
    module, names = f"pytest_dp.{path}", []
    while module not in sys.modules:
        module, _, attribute = module.rpartition(".")
        names.insert(0, attribute)
    owner = sys.modules[module]
    holders = importers(module, names[0]) if len(names) == 1 else []
    for attribute in names[:-1]:
        owner = getattr(owner, attribute)
    was = getattr(owner, names[-1])
    value = eval(expression, {"np": np, "math": math, "was": was})
    places = holders or [(owner, names[-1])]
    for place, name in places:
        setattr(place, name, value)
    try:
        yield
    finally:
        for place, name in places:
            setattr(place, name, was)


@contextmanager
def all_patched(setting: str) -> Iterator[None]:
    """Several names; and nothing is remembered that was computed with other values of them."""
    with ExitStack() as stack:
        for part in filter(None, setting.split(" & ")):
            stack.enter_context(patched(part))
        _clear_caches()
        yield
    _clear_caches()


def _clear_caches() -> None:
    for loaded in [m for key, m in sys.modules.items() if key.startswith("pytest_dp")]:
        for value in list(vars(loaded).values()):
            if callable(getattr(value, "cache_clear", None)):
                value.cache_clear()


class Runs:
    """Audits that were made, by what was patched, trial and seed; kept in a file if there is one.

    Parameters
    ----------
    log : Path or None
    """

    def __init__(self, log: Path | None) -> None:
        self.log = log
        lines = log.read_text().splitlines() if log is not None and log.exists() else []
        self.known: dict[tuple[str, str, int], Measured] = {
            (setting, name, seed): tuple(measured)
            for setting, name, seed, measured in map(json.loads, lines)
        }

    def measure(self, setting: str, name: str, trial: Trial, seed: int) -> Measured:
        """Run a trial with some names patched, or with none."""
        key = setting, name, seed
        if key not in self.known:
            with all_patched(setting):
                before = cpu_seconds()
                samples = trial.run(seed)
                seconds = cpu_seconds() - before
            missed = math.isinf(samples)
            measured = (float(trial.most if missed else samples), int(missed), seconds)
            self.known[key] = measured
            if self.log is not None:
                with self.log.open("a") as file:
                    file.write(json.dumps([*key, measured]) + "\n")
        return self.known[key]


def compared(
    runs: Runs, setting: str, trials: dict[str, Trial], seeds: int
) -> tuple[list[object], dict[str, float]]:
    """A row of the table, and for each trial the ratio of samples."""
    logs: dict[str, list[float]] = {}
    missed, seconds = [0, 0], [0.0, 0.0]
    for name, trial in trials.items():
        for seed in range(seeds):
            pair = [runs.measure(which, name, trial, seed) for which in ("", setting)]
            logs.setdefault(name, []).append(math.log(pair[1][0] / pair[0][0]))
            for k, (_, miss, used) in enumerate(pair):
                missed[k] += miss
                seconds[k] += used
    every = np.concatenate(list(logs.values()))
    error = every.std(ddof=1) / math.sqrt(len(every)) if len(every) > 1 else math.inf
    ratios = {name: math.exp(float(np.mean(of_trial))) for name, of_trial in logs.items()}
    worst, best = max(ratios, key=ratios.__getitem__), min(ratios, key=ratios.__getitem__)
    row = [
        setting,
        len(every),
        f"{math.exp(every.mean()):.3f} ± {error:.3f}",
        f"{ratios[worst]:.2f} ({worst})",
        f"{ratios[best]:.2f} ({best})",
        f"{missed[1]} / {missed[0]}",
        f"{seconds[1] / max(seconds[0], 1e-9):.2f}",
    ]
    return row, ratios


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("settings", nargs="*", help="MODULE.NAME=VALUE")
    parser.add_argument("--suites", nargs="+", choices=SUITES, default=["known", "odd"])
    parser.add_argument("--only", nargs="+", help="parts of the names of trials")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--each", action="store_true", help="print the ratio for each trial")
    options = parser.parse_args()

    trials = {
        f"{suite}: {name}": trial
        for suite in options.suites
        for name, trial in SUITES[suite]().items()
    }
    if options.only:
        trials = {n: t for n, t in trials.items() if any(part in n for part in options.only)}
    load_all()
    runs, rows = Runs(options.log), []
    for setting in options.settings:  # one that cannot be patched is named before anything is run
        with all_patched(setting):
            pass
    next(iter(trials.values())).run(0)  # the first audit of a process pays for imports
    for setting in options.settings or [""]:
        row, ratios = compared(runs, setting, trials, options.seeds)
        rows.append(row)
        progress(f"{row}")
        if options.each:
            for name in trials:
                cost = [runs.known["", name, seed] for seed in range(options.seeds)]
                middle = float(np.median([samples for samples, _, _ in cost]))
                used = float(np.median([seconds for _, _, seconds in cost]))
                progress(f"  {name}: {middle:.0f} samples, {used:.2f} s, {ratios[name]:.2f} times")
    header = ["with", "audits", "times the samples", "at worst", "at best"]
    print(table([*header, "missed, with / without", "times the CPU s"], rows))


if __name__ == "__main__":
    main()
