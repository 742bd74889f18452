"""``--dp-changed``: claims that passed, and of which nothing has changed since, are not run again.

Files are read before the first audit, as runs may write some. A claim is audited in any case if its
inputs come from a strategy or cannot be looked up, or if it calls a program or a service.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest

from pytest_dp.basics import clocks
from pytest_dp.basics.faults import note_fault
from pytest_dp.claiming.checks import is_strategy
from pytest_dp.claiming.claim import Claim
from pytest_dp.claiming.settings import NAMES
from pytest_dp.pairs import resolve_promise
from pytest_dp.plugin.failure import warn_without_failing
from pytest_dp.plugin.options import settings_of
from pytest_dp.records.evidence_store import Store
from pytest_dp.records.identity import identity, is_outside, project_digest
from pytest_dp.records.stable_texts import text_of
from pytest_dp.report.record import Record


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A stand-in for the result of an audit that was not made again."""

    claim: Claim
    violated: bool = False


class PassLookup:
    """A look for an earlier pass of a claim.

    `record` if it passed, and nothing has changed since.
    """

    def __init__(self, item: pytest.Item, mechanism: Any, claim: Claim, place: tuple[str, int]):
        self._item, self._place = item, place
        self.result, self._about = Unchanged(claim), ""
        self.record: Record | None = None
        self._store = Store(item.config.rootpath)
        try:
            self._look(mechanism, claim)
        except Exception as error:  # of the user's inputs and objects: the audit tells of it
            note_fault(error, "looking for an earlier pass")
            self._about = ""

    def _look(self, mechanism: Any, claim: Claim) -> None:
        promise, arguments = claim.promise, claim.arguments
        if any(map(is_strategy, (promise.inputs, promise.pairs))) or arguments.drawn:
            return
        if is_outside(mechanism, dict(arguments.params)):
            return
        promise = resolve_promise(promise, self._item.config.rootpath)
        self.result = Unchanged(replace(claim, promise=promise))
        settings = settings_of(self._item.config, claim)
        left_out = ("jobs", "accumulate", "changed")
        said = {name: getattr(settings, name) for name in NAMES if name not in left_out}
        code = project_digest(self._item.config.rootpath)
        self._about = identity(promise, arguments, code, text_of([arguments, said]))
        found = self._store.passed(self._item.nodeid, self._about)
        if found is not None:
            with suppress(KeyError, TypeError, ValueError):  # of another form: as good as none
                self.record = self._tell(Record.from_dict(found))

    def _tell(self, record: Record) -> Record:
        path, line = self._place
        return replace(
            record,
            path=path,
            line=line,
            status="unchanged",
            headline=f"unchanged since {record.unchanged_since[:10]}, when: {record.headline}",
            samples=0,
            seconds=0.0,
        )

    def keep(self, record: Record) -> None:
        """Keep what the audit found, if it passed, for the next run to look up."""
        if not self._about:
            return
        plain = None
        if record.status == "no violation" and record.beyond is None:
            since = clocks.now().isoformat(timespec="seconds")
            plain = replace(record, pictures=None, unchanged_since=since).as_dict()
        try:
            self._store.keep_pass(self._item.nodeid, self._about, plain)
        except OSError as error:
            warn_without_failing(
                self._item, f"could not keep that the claim passed: {error.strerror or error}"
            )
