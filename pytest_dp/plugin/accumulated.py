"""Evidence across runs (``--dp-accumulate``): taken up by an audit, kept after it, and shown."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from pytest_dp.auditors.result import AuditResult
from pytest_dp.claim import Claim, Promise
from pytest_dp.plugin.failure import spared
from pytest_dp.plugin.names import MARKER
from pytest_dp.plugin.options import accumulates
from pytest_dp.records.code import incomparable, of_modules
from pytest_dp.records.evidence import Run, Store, at_most, identity
from pytest_dp.report import numbers
from pytest_dp.results.evidence import Evidence
from pytest_dp.settings import Settings
from pytest_dp.whose_code import is_project_file


class Kept:
    """The evidence on one audit; nothing is read or written unless the run accumulates.

    `number` counts the audits of a test.
    """

    def __init__(
        self, item: pytest.Item, number: int, claim: Claim, mechanism: object, settings: Settings
    ) -> None:
        self._item, self._claim, self._alpha = item, claim, settings.alpha
        self._beyond = settings.beyond == "fail"
        self._about, self._earlier = "", Evidence()
        self._name = item.nodeid if number == 1 else f"{item.nodeid}#{number}"
        self._store = Store(item.config.rootpath) if accumulates(item.config) else None
        if self._store is not None:
            about = (mechanism, dict(claim.arguments.params), *_around(item))
            self._code, unknown = of_modules(*about), incomparable(*about)
            if unknown:
                spared(
                    item,
                    f"its evidence counts in this run only, and does not add up: {unknown[0]} "
                    "cannot be compared with that of another process",
                )

    def earlier(self, promise: Promise, seed: int) -> Evidence | None:
        """What runs with other seeds have shown of this promise; None if nothing is collected."""
        if self._store is None:
            return None
        self._about = identity(promise, self._claim.arguments, self._code, beyond=self._beyond)
        self._earlier = self._store.earlier(
            self._name, self._about, numbers.seed(seed), self._alpha
        )
        return self._earlier

    def keep(self, result: AuditResult) -> None:
        """Add what a run has shown; say what went wrong with that."""
        if self._store is None:
            return
        if result.evidence is not None:
            about = self._name, self._about, numbers.seed(result.seed), self._alpha
            self._store.add(*about, result.evidence, self._earlier)
        for problem in self._store.problems:
            spared(self._item, problem)


def _around(item: pytest.Item) -> list[Any]:
    """The test, and conftest.py and plugins of the project: fixtures may change a mechanism."""
    manager: Any = item.config.pluginmanager
    test = [] if hasattr(item, "declaration") else [getattr(item, "function", None)]
    files = {plugin: getattr(plugin, "__file__", None) for plugin in manager.get_plugins()}
    above = {Path(str(parent.path)) for parent in item.listchain()}
    plugins = (
        plugin
        for plugin, file in files.items()
        if isinstance(file, str)
        and is_project_file(file)
        and (Path(file).name != "conftest.py" or Path(file).parent in above)
    )
    return [*test, *sorted(plugins, key=lambda plugin: str(files[plugin]))]


def look_ahead(session: pytest.Session) -> None:
    """Look at the modules of all claims before any is audited: runs may leave something in them."""
    if accumulates(session.config):
        for item in session.items:
            if item.get_closest_marker(MARKER) is not None:
                of_modules(getattr(item, "mechanism", None), *_around(item))


def collected(config: pytest.Config) -> Iterator[str]:
    """What ``--dp-evidence`` prints: a few lines for each claim, and what could not be read."""
    store = Store(config.rootpath)
    runs = sorted(store.runs(), key=lambda run: (run.claim, run.identity))
    if not runs:
        yield f"No evidence in {store.folder}: it is collected by pytest --dp-profile=nightly."
    for claim, of_claim in groupby(runs, key=lambda run: run.claim):
        yield claim
        versions = [list(group) for _, group in groupby(of_claim, key=lambda run: run.identity)]
        for version in sorted(versions, key=lambda group: max(run.started for run in group)):
            yield f"  {_version_line(version)}"
    yield from (f"WARNING: {problem}" for problem in store.problems)


def _version_line(runs: list[Run]) -> str:
    """One version of a mechanism and its claim."""
    evidence = at_most(runs)
    alpha = min(run.alpha for run in runs)
    days = sorted({run.started[:10] for run in runs})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    said = "refuted" if evidence.refutes(alpha) else f"refutes at {numbers.e_value(1 / alpha)}"
    value = numbers.e_value(math.exp(min(evidence.log_e_value, 700.0)))
    of_runs = f"{len(runs)} run{'' if len(runs) == 1 else 's'}"
    return (
        f"{runs[0].identity}: e-value {value} of {of_runs}, "
        f"{numbers.count(evidence.samples)} samples, {when}; {said}"
    )
