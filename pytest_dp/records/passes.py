"""What passed, with all that it depends on: a file for each claim, beside the evidence of runs.

``.dp/passed/<claim>.json`` is what the last audit that passed has found, and the identity of what
was audited. It is a cache: whatever cannot be read counts as unknown, and it can be deleted at any
time. Files are written beside their places and then renamed, so that processes cannot get in each
other's way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_dp import clocks
from pytest_dp.records.evidence import Store, file_name
from pytest_dp.writing import write_whole

VERSION = 1
"""Given with the format of the files; what another one says is not guessed at."""


@dataclass(frozen=True, slots=True)
class Passed:
    """An audit that passed."""

    since: str
    """When, in ISO 8601."""
    record: Mapping[str, Any]
    """What it found, as plain values."""


class Passes:
    """The claims that passed, below a folder that holds the folder ``.dp``, or will."""

    def __init__(self, root: Path) -> None:
        self._store = Store(root)

    def find(self, claim: str, identity: str) -> Passed | None:
        """What an audit of the same has found; None if there is none, or it cannot be read."""
        try:
            content = json.loads(self._file(claim).read_text(encoding="utf-8"))
            known = content["version"], content["claim"], content["identity"]
            if known != (VERSION, claim, identity):
                return None
            return Passed(str(content["since"]), dict(content["record"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, claim: str, identity: str, record: Mapping[str, Any]) -> None:
        """Keep what an audit that passed has found; raises OSError if it cannot be written."""
        content = {
            "version": VERSION,
            "claim": claim,
            "identity": identity,
            "since": clocks.now().isoformat(timespec="seconds"),
            "record": record,
        }
        self._store.prepare(self._file(claim).parent)
        write_whole(self._file(claim), (json.dumps(content, allow_nan=False) + "\n").encode())

    def forget(self, claim: str) -> None:
        """Drop what was kept of a claim."""
        self._file(claim).unlink(missing_ok=True)

    def _file(self, claim: str) -> Path:
        return self._store.folder / "passed" / f"{file_name(claim)}.json"
