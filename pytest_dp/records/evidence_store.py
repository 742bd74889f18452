"""Files of the folder ``.dp``: evidence of runs, and audits that passed, as JSON.

There is a file for each run, so that parallel jobs cannot get in each other's way.

``.dp/evidence/<claim>-<identity>/<seed>.json`` is the evidence of the run with that seed. Folders
of several machines are merged by putting their files together. A seed that is there is not counted
again, as its random numbers are the same.
``.dp/passed/<claim>.json`` is the record of the last audit that passed, and the identity of what
was audited.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_dp.basics.atomic_files import write_whole
from pytest_dp.results.outcome import Evidence

VERSION = 1
"""The format of the files; files of other versions are left out."""
FOLDER = ".dp"
MAX_NAME = 100
"""Characters of an id in the name of its file. With more than some 230, file systems refuse it."""
DIGITS = 6
"""Of the digest in a file name. Fewer: ids that differ in punctuation may share a file."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """The evidence of one run."""

    claim: str
    """The id of the claim."""
    identity: str
    """The digest of claim and code, as by `records.identity.identity`."""
    seed: str
    """In hexadecimal."""
    started: str
    """When it had read the evidence of earlier runs, before its first bet, in ISO 8601."""
    samples: int
    log_e_values: tuple[float, ...]
    """As in `Evidence`."""
    alpha: float
    """At which the claim was tested."""


class Store:
    """A folder ``.dp`` of a project; `problems` lists files that could not be read or written."""

    def __init__(self, root: Path) -> None:
        self.folder = root / FOLDER
        self.problems: list[str] = []

    def sum_earlier(self, claim: str, identity: str, seed: str, alpha: float) -> Evidence:
        """Return the evidence of runs before the first one of a seed, so that it is repeated.

        It is that of all runs if the seed is new, or if all runs refute the claim. Files that
        cannot be read are added to `problems`. Without runs, evidence of 0 runs.
        """
        runs = self._runs_in(self._evidence_folder(claim, identity))
        everything = total_evidence(runs, alpha)
        if everything.refutes(alpha):
            return everything
        first = next((_place(run) for run in runs if run.seed == seed), None)
        earlier = (run for run in runs if first is None or _place(run) < first)
        return total_evidence(earlier, alpha)

    def add(self, run: StoredRun) -> None:
        """Write the evidence of a run, unless its seed has a file; add an error to `problems`."""
        file = self._evidence_folder(run.claim, run.identity) / f"{run.seed}.json"
        try:
            if not file.exists():
                self._write(file, asdict(run))
        except Exception as error:  # a folder that cannot be written, a full disk
            why = getattr(error, "strerror", None) or error
            self.problems.append(f"{file} could not be written, so this run is not kept: {why}")

    def runs(self) -> Iterator[StoredRun]:
        """Yield all runs with evidence, claim by claim; add unreadable files to `problems`."""
        for place in sorted((self.folder / "evidence").glob("*/")):
            yield from self._runs_in(place)

    def find_pass(self, claim: str, identity: str) -> dict[str, Any] | None:
        """Return the kept record of a pass; None without one of this identity, or if damaged."""
        try:
            content = _read_json(self._pass_file(claim))
            about = content["claim"], content["identity"]
            return dict(content["record"]) if about == (claim, identity) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep_pass(self, claim: str, identity: str, record: Mapping[str, Any] | None) -> None:
        """Write the record of an audit that passed; for None, remove the file. Raises OSError."""
        file = self._pass_file(claim)
        if record is None:
            file.unlink(missing_ok=True)
        else:
            self._write(file, {"claim": claim, "identity": identity, "record": record})

    def prepare(self, place: Path) -> None:
        """Make a folder below ``.dp``, which git ignores; raise OSError if that is not possible."""
        place.mkdir(parents=True, exist_ok=True)
        ignore = self.folder / ".gitignore"
        if not ignore.exists():
            write_whole(ignore, b"# Evidence is cached, not committed.\n*\n")

    def _write(self, file: Path, content: Mapping[str, Any]) -> None:
        """Write a JSON file, whole or not at all; raise OSError, ValueError for NaN or infinity."""
        self.prepare(file.parent)
        text = json.dumps({"version": VERSION, **content}, indent=1, allow_nan=False)
        write_whole(file, f"{text}\n".encode())

    def _pass_file(self, claim: str) -> Path:
        return self.folder / "passed" / f"{file_name(claim)}.json"

    def _evidence_folder(self, claim: str, identity: str) -> Path:
        return self.folder / "evidence" / f"{file_name(claim)}-{identity}"

    def _runs_in(self, place: Path) -> list[StoredRun]:
        """Return the runs of a folder; add files that cannot be read to `problems`."""
        runs = []
        for file in sorted(place.glob("*.json")):
            try:
                runs.append(_read_run(file))
            except (OSError, ValueError) as error:
                self.problems.append(f"{file} is left out: {error}")
        return runs


def file_name(claim: str) -> str:
    """Return the stem of a claim's file names, which no other claim has on any file system."""
    words = re.sub(r"(\.py::|\W)+", "_", claim).strip("_")[:MAX_NAME]
    digest = hashlib.sha256(claim.encode("utf-8", "backslashreplace")).hexdigest()[:DIGITS]
    return f"{words}_{digest}"


def total_evidence(runs: Iterable[StoredRun], alpha: float) -> Evidence:
    """Return the sum of evidence of runs, up to the first that refutes the claim at level `alpha`.

    Runs count in the order of `started`. By Ville's inequality, a product of e-values that has once
    reached 1 / alpha refutes the claim, though it may fall again.
    """
    total = Evidence()
    for run in sorted(runs, key=_place):
        total += Evidence(run.log_e_values, 1, run.samples)
        if total.refutes(alpha):
            break
    return total


def _place(run: StoredRun) -> tuple[str, str]:
    """Return the key by which runs are sorted in their order."""
    return run.started, run.seed


def _read_json(file: Path) -> dict[str, Any]:
    """Return the content of a file; raise ValueError if it has another version, or OSError."""
    content = json.loads(file.read_text(encoding="utf-8"))
    version = content.pop("version", None) if isinstance(content, dict) else None
    if version != VERSION:
        raise ValueError(f"its version is {version!r}, and this pytest-dp reads {VERSION}")
    return dict(content)


def _read_run(file: Path) -> StoredRun:
    """Return the run of a file; raise ValueError if the file is damaged, or OSError."""
    content = _read_json(file)
    try:
        log_e_values = tuple(map(float, content["log_e_values"]))
        run = StoredRun(**content | {"log_e_values": log_e_values})
        is_sound = all(map(math.isfinite, (*log_e_values, run.samples, run.alpha)))
        is_sound &= isinstance(run.started, str)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"it is damaged: {error!r}") from None
    if run.seed != file.stem or not is_sound or not log_e_values:
        raise ValueError("it is damaged: its seed or its values are none")
    return run
