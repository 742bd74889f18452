"""Files of the folder ``.dp``: evidence of runs, and audits that passed.

There is a file for each run, so that parallel jobs cannot get in each other's way.

``.dp/evidence/<claim>-<identity>/<seed>.json`` is what the run with that seed has shown. Folders of
several machines are merged by putting their files together: a run is there once, whichever way it
came. A seed that is there is not counted again, as its random numbers are the same.
``.dp/passed/<claim>.json`` is what the last audit that passed has found, and the identity of what
was audited: a cache as well.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pytest_dp.basics import clocks
from pytest_dp.basics.writing import write_whole
from pytest_dp.results.outcome import Evidence, finite

VERSION = 1
"""Given with the format of the files; what a newer one says is not guessed at."""
FOLDER = ".dp"
MAX_NAME = 100
"""Characters of an id in the name of its file. With more than some 230, file systems refuse it."""
DIGITS = 6
"""Of the digest in the name of a file. With fewer, ids that differ in punctuation alone may share
a file, and one's pass takes the other's pair away."""
_NONE = Evidence()


@dataclass(frozen=True, slots=True)
class StoredRun:
    """The evidence of one run."""

    claim: str
    """Its id."""
    identity: str
    """What the evidence is about."""
    seed: str
    """In hexadecimal."""
    started: str
    """In ISO 8601; only to be shown, as clocks jump."""
    samples: int
    log_e_values: tuple[float, ...]
    """As in `Evidence`."""
    alpha: float
    """At which the claim was tested."""
    reached: float | None = None
    """If it refuted the claim: logarithm of the e-value of it and of the runs before it."""


class Store:
    """The evidence below a folder, which holds the folder ``.dp``, or will; and what passed.

    `problems` tell which evidence could not be read or written; nothing of it is counted.
    """

    def __init__(self, root: Path) -> None:
        self.folder = root / FOLDER
        self.problems: list[str] = []

    def earlier(self, claim: str, identity: str, seed: str, alpha: float) -> Evidence:
        """Return the evidence of runs with other seeds; of all runs, if they refute the claim.

        So neither the same run nor others can take back what one has refuted.
        """
        place = self._place(claim, identity)
        runs = self._runs_in(place)
        everything = at_most(runs)
        if everything.refutes(alpha):
            return everything
        return total_evidence(run for run in runs if run.seed != seed)

    def add(
        self,
        claim: str,
        identity: str,
        seed: str,
        alpha: float,
        of_run: Evidence,
        earlier: Evidence = _NONE,
    ) -> None:
        """Keep what a run has shown, unless its seed is there.

        `earlier` is what the run was told by the method of that name. Of a seed that is there, it
        is only kept that this run has refuted the claim. Nothing that goes wrong is raised: it is a
        problem that is told, and the audit stands.
        """
        so_far = earlier if earlier.refutes(alpha) else earlier + of_run
        reached = so_far.log_e_value if so_far.refutes(alpha) else -math.inf
        place = self._place(claim, identity)
        file = place / f"{seed}.json"
        try:
            before = self._run_in(file) if file.exists() else None
            if file.exists() and (before is None or not reached > _peak_of(before)):
                return
            now, shown = clocks.now().isoformat(timespec="seconds"), before or of_run
            about = claim, identity, seed, now, shown.samples, shown.log_e_values, alpha
            content = {"version": VERSION, **asdict(StoredRun(*about))}
            content["reached"] = finite(reached)
            self.prepare(place)
            write_whole(file, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())
        except Exception as error:  # a folder that cannot be written, a full disk
            why = getattr(error, "strerror", None) or error
            self.problems.append(f"{file} could not be written, so this run is not kept: {why}")

    def runs(self) -> Iterator[StoredRun]:
        """Yield all that is kept, claim by claim."""
        for place in sorted((self.folder / "evidence").glob("*/")):
            yield from self._runs_in(place)

    def passed(self, claim: str, identity: str) -> dict[str, Any] | None:
        """Return the result of the last audit of the same code, if it passed and can be read."""
        try:
            content = json.loads(self._pass(claim).read_text(encoding="utf-8"))
            known = content["version"], content["claim"], content["identity"]
            return dict(content["record"]) if known == (VERSION, claim, identity) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep_pass(self, claim: str, identity: str, record: Mapping[str, Any] | None) -> None:
        """Keep what an audit that passed has found, or drop what was kept; may raise OSError."""
        file = self._pass(claim)
        if record is None:
            file.unlink(missing_ok=True)
            return
        content = {"version": VERSION, "claim": claim, "identity": identity, "record": record}
        self.prepare(file.parent)
        write_whole(file, (json.dumps(content, allow_nan=False) + "\n").encode())

    def _pass(self, claim: str) -> Path:
        return self.folder / "passed" / f"{file_name(claim)}.json"

    def prepare(self, place: Path) -> None:
        """Make a folder below; raises OSError if that is not possible."""
        place.mkdir(parents=True, exist_ok=True)
        ignore = self.folder / ".gitignore"
        if not ignore.exists():
            write_whole(ignore, b"# Evidence is cached, not committed.\n*\n")

    def _place(self, claim: str, identity: str) -> Path:
        return self.folder / "evidence" / f"{file_name(claim)}-{identity}"

    def _runs_in(self, place: Path) -> list[StoredRun]:
        runs: list[StoredRun | None] = []
        try:
            runs += map(self._run_in, sorted(place.glob("*.json")))
        except OSError as error:
            self.problems.append(f"{place} is left out: {error}")
        return [run for run in runs if run is not None]

    def _run_in(self, file: Path) -> StoredRun | None:
        try:
            return _read_run(file)
        except (OSError, ValueError) as error:
            self.problems.append(f"{file} is left out: {error}")
            return None


def file_name(claim: str) -> str:
    """Return the name of files of a claim, which no other claim shares on any file system."""
    words = re.sub(r"(\.py::|\W)+", "_", claim).strip("_")[:MAX_NAME]
    digest = hashlib.sha256(claim.encode("utf-8", "backslashreplace")).hexdigest()[:DIGITS]
    return f"{words}_{digest}"


def total_evidence(runs: Iterable[StoredRun]) -> Evidence:
    """Return the evidence of all runs together."""
    return sum((Evidence(run.log_e_values, 1, run.samples) for run in runs), Evidence())


def at_most(runs: Sequence[StoredRun]) -> Evidence:
    """Return the evidence of all runs, or its maximum at the time when they refuted the claim.

    A product over runs may fall again. That it has once reached 1 / alpha has refuted the claim: by
    Ville's inequality, its largest value does so as seldom as its last.
    """
    everything = total_evidence(runs)
    peak = max(map(_peak_of, runs), default=-math.inf)
    if not everything.log_e_values or peak <= everything.log_e_value:
        return everything
    return replace(everything, log_e_values=(*everything.log_e_values[:-1], peak))


def _peak_of(run: StoredRun) -> float:
    return -math.inf if run.reached is None else run.reached


def _read_run(file: Path) -> StoredRun:
    """Read one run; raises ValueError if the file is damaged, or of a newer version."""
    content = json.loads(file.read_text(encoding="utf-8"))
    version = content.pop("version", None) if isinstance(content, dict) else None
    if version != VERSION:
        raise ValueError(f"its version is {version!r}, and this pytest-dp reads {VERSION}")
    try:
        run = StoredRun(**content | {"log_e_values": tuple(map(float, content["log_e_values"]))})
        numbers = *run.log_e_values, run.samples, run.alpha, run.reached or 0.0
        sound = all(map(math.isfinite, numbers)) and len(numbers) > 3
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"it is damaged: {error!r}") from None
    if run.seed != file.stem or not sound:
        raise ValueError("it is damaged: its seed or its values are none")
    return run
