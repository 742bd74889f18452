"""Claims that no worker of pytest-xdist has audited, as one of them crashed: each is an error.

Workers tell what they collected by a file, before they run anything: what a process would tell at
its end, one that dies does not.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_dp.plugin.names import MARKER

TOLD = "dp_told"
_PLACE = pytest.StashKey[str | None]()


def place_to_tell(config: pytest.Config) -> str | None:
    """The file by which workers tell what they collect, for the time of a session, if possible."""
    if _PLACE not in config.stash:
        config.stash[_PLACE] = None
        with suppress(OSError):
            folder = tempfile.TemporaryDirectory(prefix="pytest-dp-")
            config.add_cleanup(folder.cleanup)
            config.stash[_PLACE] = str(Path(folder.name, "claims.json"))
    return config.stash[_PLACE]


def tell(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """In a worker: which claims there are, and where they stand; all workers collect the same."""
    file = config.workerinput.get(TOLD)  # type: ignore[attr-defined]
    claims = [item for item in items if item.get_closest_marker(MARKER) is not None]
    if not claims or file is None:
        return
    from pytest_dp.plugin.check import place
    from pytest_dp.writing import write_whole

    places = {item.nodeid: place(item) for item in claims}
    with suppress(OSError):  # on another machine, or where nothing can be written
        write_whole(Path(file), json.dumps(places).encode())


def unaudited(
    config: pytest.Config, crashed: Mapping[str, str], ended: Collection[str]
) -> dict[str, pytest.TestReport]:
    """Reports of the claims that did not come to an end, by the ids of their tests.

    `crashed` has what pytest-xdist said of each test in which a worker crashed, `ended` the ids of
    tests that came to an end.
    """
    from pytest_dp.report.record import Record

    try:
        told = json.loads(Path(config.stash.get(_PLACE, None) or "").read_text(encoding="utf-8"))
    except OSError:
        return {}
    reports = {}
    for nodeid, (path, line) in told.items():
        if nodeid in ended:
            continue
        message = "This claim was not audited: " + (
            f"{crashed[nodeid]}. Run it without pytest-xdist to see where: -n 0."
            if nodeid in crashed
            else "a worker process of pytest-xdist crashed, and the run ended before this claim "
            "did. Mend the test that crashed, or allow for more processes: --max-worker-restart."
        )
        report = pytest.TestReport(nodeid, (path, line - 1, nodeid), {}, "failed", message, "call")
        record = Record.of_error(nodeid, path, line, message)
        report.__dict__["dp_records"] = [record.as_dict()]
        reports[nodeid] = report
    return reports
