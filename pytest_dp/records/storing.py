"""Reading and writing ``dp-claims.json``, one line for each value so that it is easy to merge."""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pytest_dp.basics.errors import ClaimError, ClaimsFileError
from pytest_dp.basics.writing import write_whole
from pytest_dp.records.comparing import claim_changes
from pytest_dp.records.entries import Entry

VERSION = 1
"""Given with the format; what a newer one says is not guessed at."""
_PLAIN: Entry = {
    "promise": {"eps": 1.0},
    "examples": [],
    "effort": {},
}
"""With which each entry that makes sense can be compared."""
_CONFLICT = re.compile(r"^(<{7}|={7}|>{7})", re.MULTILINE)


def load_entries(file: Path) -> dict[str, Entry]:
    """Return the entries of a file by their ids; none if there is no such file.

    Raises ClaimsFileError if it cannot be read, or is damaged, or of a newer version.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ClaimsFileError(f"{file.name} cannot be read: {error}. {_remedy(file)}") from error
    conflict = _CONFLICT.search(text)
    if conflict is not None:
        line = text.count("\n", 0, conflict.start()) + 1
        raise ClaimsFileError(
            f"{file.name} has the marks of a merge conflict, at line {line}. Take either side, or "
            "both, as a claim is a block of its own; then run pytest --dp-claims=update."
        )
    try:
        content = json.loads(text, object_pairs_hook=_unique_keys)
    except _TwiceError as twice:
        raise ClaimsFileError(
            f"{file.name} says {twice} twice, as after a merge. Delete one of the two, then run "
            "pytest --dp-claims=update."
        ) from None
    except ValueError as error:
        cut = "is cut short" if text.count("{") > text.count("}") else "is no JSON"
        raise ClaimsFileError(f"{file.name} {cut}: {error}. {_remedy(file)}") from error
    return _entries(content, file)


class _TwiceError(Exception):
    """A key of an object that it has already."""


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for name, value in pairs:
        if name in mapping:
            raise _TwiceError(json.dumps(name, ensure_ascii=False))
        mapping[name] = value
    return mapping


def _entries(content: Any, file: Path) -> dict[str, Entry]:
    version = content.get("version") if isinstance(content, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise ClaimsFileError(
            f"{file.name} is of version {version}, written by a newer pytest-dp; this one knows "
            f"version {VERSION}. Install the newer one."
        )
    entries = content.get("claims") if isinstance(content, dict) else None
    if version != VERSION or not isinstance(entries, dict):
        raise ClaimsFileError(f"{file.name} is not a file of claims. {_remedy(file)}")
    for name, entry in entries.items():
        promise = entry.get("promise") if isinstance(entry, dict) else None
        if not isinstance(promise, dict) or not promise:
            raise ClaimsFileError(
                f"{file.name} has no promise for {name}, so there is nothing to compare it with. "
                f"{_remedy(file)}"
            )
        try:
            claim_changes(entry, _PLAIN)
        except (ClaimError, TypeError, ValueError, KeyError, AttributeError) as error:  # edited
            raise ClaimsFileError(
                f"{file.name} cannot be compared with: {error} {_remedy(file)}"
            ) from None
    return entries


def _remedy(file: Path) -> str:
    return (
        f"Restore it (git checkout {file.name}), or delete it and run pytest "
        "--dp-claims=update to write it again."
    )


def entries_text(entries: Mapping[str, Entry]) -> str:
    """Return the content of a file: a sorted block for each claim, a line for each of its facts."""
    blocks = [
        f"    {json.dumps(name, ensure_ascii=False)}: {_block(entries[name])}"
        for name in sorted(entries)
    ]
    inside = ",\n".join(blocks)
    claims = f"{{\n{inside}\n  }}" if blocks else "{}"
    return f'{{\n  "claims": {claims},\n  "version": {VERSION}\n}}\n'


def _block(entry: Entry) -> str:
    lines = [f"      {json.dumps(name)}: {_value(entry[name])}" for name in sorted(entry)]
    return "{\n" + ",\n".join(lines) + "\n    }"


def _value(value: Any) -> str:
    short = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if len(short) <= 92 or not isinstance(value, list | dict):
        return short
    return json.dumps(value, sort_keys=True, ensure_ascii=False, indent=2).replace("\n", "\n      ")


def write_entries(file: Path, entries: Mapping[str, Entry]) -> bool:
    """Write the file, whole or not at all; False if it said the same already.

    Called with others held off, as by `alone`. Raises ClaimsFileError if that is not possible.
    """
    content = entries_text(entries).encode("utf-8")
    try:
        if file.exists() and file.read_bytes() == content:
            return False
        for left in file.parent.glob(f".{glob.escape(file.name)}.*"):
            left.unlink(missing_ok=True)  # of somebody who was killed while writing
        write_whole(file, content)
    except OSError as error:
        raise ClaimsFileError(
            f"{file.name} could not be written: {error}. Nothing was changed. Make "
            f"{file.parent} writable, or run pytest --dp-claims=update where you can write."
        ) from error
    return True


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """Hold off other processes that write this file, until it is read and written."""
    try:
        import fcntl
    except ImportError:  # the last one wins
        yield
        return
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(folder, fcntl.LOCK_EX)  # let go of when the process ends, however it ends
        yield
    finally:
        os.close(folder)
