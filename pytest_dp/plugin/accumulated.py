"""Evidence across runs (``--dp-accumulate``): taken up by an audit, kept after it, and shown."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby

import pytest

from pytest_dp.accumulated.identity import identity
from pytest_dp.accumulated.store import Run, Store, total
from pytest_dp.auditors.result import AuditResult
from pytest_dp.claim import Claim, Promise
from pytest_dp.plugin.options import accumulates
from pytest_dp.report import numbers
from pytest_dp.results.evidence import Evidence


class Kept:
    """The evidence on one audit; nothing is read or written unless the run accumulates.

    Parameters
    ----------
    item : Item
    number : int
        Counts the audits of a test.
    claim : Claim
    mechanism : callable
    alpha : float
    """

    def __init__(
        self, item: pytest.Item, number: int, claim: Claim, mechanism: object, alpha: float
    ) -> None:
        self._item, self._claim, self._mechanism, self._alpha = item, claim, mechanism, alpha
        self._about = ""
        self._name = item.nodeid if number == 1 else f"{item.nodeid}#{number}"
        self._store = Store(item.config.rootpath) if accumulates(item.config) else None

    def earlier(self, promise: Promise, seed: int) -> Evidence | None:
        """What runs with other seeds have shown of this promise; None if nothing is collected."""
        if self._store is None:
            return None
        self._about = identity(promise, self._claim.arguments, self._mechanism)
        return self._store.earlier(self._name, self._about, numbers.seed(seed), self._alpha)

    def keep(self, result: AuditResult) -> None:
        """Add what a run has shown; say what went wrong with that."""
        if self._store is None:
            return
        if result.evidence is not None:
            seed = numbers.seed(result.seed)
            self._store.add(self._name, self._about, seed, self._alpha, result.evidence)
        for problem in self._store.problems:
            self._item.warn(pytest.PytestWarning(f"{self._item.nodeid}: {problem}"))


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
    evidence = total(runs)
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
