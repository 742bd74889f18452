"""A folder of evidence: a file for each run, so that parallel jobs cannot get in each other's way.

``.dp/evidence/<claim>-<identity>/<seed>.json`` is what the run with that seed has shown. Folders of
several machines are merged by putting their files together: a run is there once, whichever way it
came. A seed that is there is not counted again, as its random numbers are the same.
``learned.pickle`` beside them is what the next run begins with; it can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import math
import pickle
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_dp.results.evidence import Evidence
from pytest_dp.writing import write_whole

VERSION = 1
"""Of the files; what a newer one says is not guessed at."""
FOLDER = ".dp"
_LEARNED = "learned.pickle"


@dataclass(frozen=True, slots=True)
class Run:
    """What one run has shown.

    Attributes
    ----------
    claim, identity, seed : str
        Its id, what the evidence is about, and the seed in hexadecimal.
    started : str
        In ISO 8601; only to be shown, as clocks jump.
    samples : int
    log_e_values : tuple of float
        As in `Evidence`.
    alpha : float
        At which the claim was tested.
    """

    claim: str
    identity: str
    seed: str
    started: str
    samples: int
    log_e_values: tuple[float, ...]
    alpha: float


class Store:
    """The evidence below a folder.

    Parameters
    ----------
    root : Path
        Where the folder ``.dp`` is, or will be.

    Attributes
    ----------
    problems : list of str
        What could not be read or written; nothing of it is counted.
    """

    def __init__(self, root: Path) -> None:
        self.folder = root / FOLDER
        self.problems: list[str] = []

    def earlier(self, claim: str, identity: str, seed: str, alpha: float) -> Evidence:
        """What runs with other seeds have shown and learned; or all runs, if they refute the claim.

        So a run that is repeated cannot take back what it has refuted itself.

        Parameters
        ----------
        claim, identity, seed : str
            Those of the run that asks.
        alpha : float
        """
        place = self._place(claim, identity)
        runs = self._runs_in(place)
        everything = total(runs)
        if everything.refutes(alpha):
            return everything
        others = [run for run in runs if run.seed != seed]
        return total(others) + Evidence(learned=self._learned(place, seed) if others else ())

    def add(self, claim: str, identity: str, seed: str, alpha: float, of_run: Evidence) -> None:
        """Keep what a run has shown, unless its seed is there; and what it has learned.

        Nothing that goes wrong is raised: it is a problem that is told, and the audit stands.
        """
        place = self._place(claim, identity)
        file = place / f"{seed}.json"
        if file.exists():
            return
        content = {
            "version": VERSION,
            "claim": claim,
            "identity": identity,
            "seed": seed,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "samples": of_run.samples,
            "alpha": alpha,
            "log_e_values": list(of_run.log_e_values),
        }
        try:
            place.mkdir(parents=True, exist_ok=True)
            ignore = self.folder / ".gitignore"
            if not ignore.exists():
                write_whole(ignore, b"# Evidence is cached, not committed.\n*\n")
            write_whole(file, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())
        except OSError as error:
            self.problems.append(f"{file} could not be written, so this run is not kept: {error}")
            return
        self._keep_learned(place, of_run)

    def runs(self) -> Iterator[Run]:
        """All that is kept, claim by claim."""
        for place in sorted((self.folder / "evidence").glob("*/")):
            yield from self._runs_in(place)

    def _place(self, claim: str, identity: str) -> Path:
        readable = re.sub(r"[^\w.=+-]+", "-", claim)[-60:].strip("-")
        name = hashlib.sha256(claim.encode("utf-8", "backslashreplace")).hexdigest()[:8]
        return self.folder / "evidence" / f"{readable}-{name}-{identity}"

    def _runs_in(self, place: Path) -> list[Run]:
        runs = []
        for file in sorted(place.glob("*.json")):
            try:
                runs.append(_read(file))
            except (OSError, ValueError) as error:
                self.problems.append(f"{file} is left out: {error}")
        return runs

    def _learned(self, place: Path, seed: str) -> tuple[Any, ...]:
        """What other runs have learned; nothing where this one's random numbers are among them."""
        try:
            content = pickle.loads((place / _LEARNED).read_bytes())  # a cache of our own
            usable = content["version"] == VERSION and seed not in content["seeds"]
            return tuple(content["learned"]) if usable else ()
        except FileNotFoundError:
            return ()
        except Exception as error:  # damaged, or of classes that are gone
            self.problems.append(f"{place / _LEARNED} is left out: {type(error).__name__}: {error}")
            return ()

    def _learned_from(self, place: Path) -> set[str]:
        try:
            return set(pickle.loads((place / _LEARNED).read_bytes())["seeds"])
        except Exception:  # then nothing was taken from it either
            return set()

    def _keep_learned(self, place: Path, of_run: Evidence) -> None:
        # At least of those that it has learned from, if only through others.
        seeds = {file.stem for file in place.glob("*.json")} | self._learned_from(place)
        content = {"version": VERSION, "seeds": sorted(seeds), "learned": of_run.learned}
        try:
            write_whole(place / _LEARNED, pickle.dumps(content))
        except Exception as error:  # a full disk, or models that cannot be pickled
            self.problems.append(
                f"{place / _LEARNED} could not be written, so the next run begins anew: {error}"
            )


def total(runs: Iterable[Run]) -> Evidence:
    """What runs have shown together."""
    return sum((Evidence(run.log_e_values, 1, run.samples) for run in runs), Evidence())


def _read(file: Path) -> Run:
    """One run.

    Raises
    ------
    ValueError
        If the file is damaged, or of a newer version.
    """
    content = json.loads(file.read_text(encoding="utf-8"))
    version = content.get("version") if isinstance(content, dict) else None
    if version != VERSION:
        raise ValueError(f"its version is {version!r}, and this pytest-dp reads {VERSION}")
    try:
        run = Run(
            claim=str(content["claim"]),
            identity=str(content["identity"]),
            seed=str(content["seed"]),
            started=str(content["started"]),
            samples=int(content["samples"]),
            log_e_values=tuple(map(float, content["log_e_values"])),
            alpha=float(content["alpha"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"it is damaged: {error!r}") from None
    values = run.log_e_values
    if run.seed != file.stem or not values or not all(map(math.isfinite, values)):
        raise ValueError("it is damaged: its seed or its values are none")
    return run
