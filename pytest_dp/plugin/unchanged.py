"""``--dp-changed``: claims that passed, and of which nothing has changed since, are not run again.

What a claim depends on is looked at before the first audit, as runs may leave something in modules.
Whatever cannot be told apart from something else is unknown, and unknown means that the claim is
audited: a fixture, a strategy, an object without a content, inputs that cannot be looked up.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from pytest_dp import clocks
from pytest_dp.checks import is_strategy
from pytest_dp.claim import Claim
from pytest_dp.faults import note_fault
from pytest_dp.inputs import resolved
from pytest_dp.plugin.failure import spared
from pytest_dp.plugin.names import MARKER
from pytest_dp.plugin.options import settings_of
from pytest_dp.records.code import incomparable, of_modules
from pytest_dp.records.evidence import Store, identity
from pytest_dp.records.texts import text_of
from pytest_dp.report.record import Record
from pytest_dp.settings import NAMES
from pytest_dp.whose_code import is_project_file

_PACKAGES = "pytest-dp", "numpy", "scipy"
"""Those by which audits are made; of_modules knows the others."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """What stands for the result of an audit that was not made again."""

    claim: Claim
    violated: bool = False


def around(item: pytest.Item) -> list[Any]:
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
    for item in session.items:
        if item.get_closest_marker(MARKER) is not None:
            of_modules(getattr(item, "mechanism", None), *around(item))


class Looked:
    """What is known of a claim: `record` if it passed before, and nothing has changed since."""

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
        promise = resolved(promise, self._item.config.rootpath)
        self.result = Unchanged(replace(claim, promise=promise))
        settings = settings_of(self._item.config, claim)
        left_out = ("jobs", "accumulate", "changed")
        said = {name: getattr(settings, name) for name in NAMES if name not in left_out}
        roots = (
            *(mechanism, dict(arguments.params), settings.features, settings.method.classifier),
            *(settings.search, promise.guarantee, promise.relation, promise.inputs, promise.pairs),
            claim.promise.games,
            *around(self._item),
        )
        if incomparable(*roots):
            return
        more = text_of([arguments, said]), sys.version, sys.platform, *map(version, _PACKAGES)
        self._about = identity(promise, arguments, of_modules(*roots), *more)
        found = self._store.passed(self._item.nodeid, self._about)
        if found is not None:
            with suppress(KeyError, TypeError, ValueError):  # of another form: as good as none
                self.record = self._told(Record.from_dict(found))

    def _told(self, record: Record) -> Record:
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
            spared(self._item, f"could not keep that the claim passed: {error.strerror or error}")
