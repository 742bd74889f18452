"""Pairs of inputs that broke a claim: kept in pytest's cache directory, and tried first next time.

They are tried on new samples like any other pair, so a claim that was mended passes. As with
Hypothesis' example database, a pair is forgotten once it no longer breaks its claim.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pytest_dp.auditors.result import AuditResult
from pytest_dp.inputs import Pair

_FORMAT = 1
"""Version of what is kept; other ones are not read."""


def remembered(item: pytest.Item, number: int) -> list[Pair]:
    """The pairs that broke this claim the last time; none where an audit is repeated by its seed."""
    file = _file(item, number)
    if file is None or item.config.getoption("dp_seed", None) is not None:
        return []
    try:
        kept = pickle.loads(file.read_bytes())  # our own file, in the cache of this project
        return [Pair(*kept["pair"])] if kept["format"] == _FORMAT else []
    except FileNotFoundError:
        return []
    except Exception:  # cut short, or of classes that are gone: as good as forgotten
        return []


def remember(item: pytest.Item, number: int, result: AuditResult) -> None:
    """Keep the pair that broke the claim; forget one that does so no more."""
    file = _file(item, number)
    if file is None or result.claim.promise.pairs is not None:
        return  # those that the claim itself names are tried first in any case
    example = result.counterexample
    try:
        if example is not None:
            pair = example.d1, example.d2, example.difference
            _write(file, pickle.dumps({"format": _FORMAT, "pair": pair}))
        elif result.verdict == "no violation":
            file.unlink(missing_ok=True)
    except Exception as error:  # a full disk, or inputs that cannot be pickled: no reason to fail
        said = f"{item.nodeid}: could not keep the pair that broke the claim: {error}"
        item.warn(pytest.PytestCacheWarning(said))


def _file(item: pytest.Item, number: int) -> Path | None:
    cache: Any = getattr(item.config, "cache", None)
    if cache is None:  # -p no:cacheprovider
        return None
    name = hashlib.sha256(f"{item.nodeid}#{number}".encode()).hexdigest()[:20]
    folder = Path(cache.mkdir("pytest-dp"))
    return folder / f"{name}.pickle"


def _write(file: Path, content: bytes) -> None:
    """Beside the file, then renamed: readers see all of it or nothing."""
    handle, beside = tempfile.mkstemp(dir=file.parent, prefix=file.name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        Path(beside).replace(file)
    except BaseException:
        with suppress(OSError):
            Path(beside).unlink()
        raise
