"""Pairs of inputs that broke a claim: kept in pytest's cache directory, and tried first next time.

They are tried on new samples like any other pair, so a claim that was mended passes. As with
Hypothesis' example database, a pair is forgotten once it no longer breaks its claim.
"""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path
from typing import Any

import pytest

from pytest_dp.auditors.result import AuditResult
from pytest_dp.claim import Promise
from pytest_dp.datasets.relations import Pair
from pytest_dp.keywords import is_strategy
from pytest_dp.plugin.failure import reason, spared
from pytest_dp.writing import write_whole

_FORMAT = 1
"""Given with the format of what is kept; other ones are not read."""


def remembered(item: pytest.Item, number: int, promise: Promise) -> list[Pair]:
    """The pair that broke this promise the last time; none where an audit is repeated by its seed.

    `number` counts the audits of a test, and the promise has its inputs looked up.
    """
    if item.config.getoption("dp_seed", None) is not None:
        return []
    try:
        file = _file(item, number, promise)
        if file is None:
            return []
        content = pickle.loads(file.read_bytes())  # our own file, in the cache of this project
        return [Pair(*content["pair"])] if content["format"] == _FORMAT else []
    except FileNotFoundError:
        return []
    except Exception:  # unreadable, cut short, or of classes that are gone: as good as forgotten
        return []


def remember(item: pytest.Item, number: int, result: AuditResult) -> None:
    """Keep the pair that broke the claim; forget one that does so no more."""
    example = (result.beyond or result).counterexample
    try:
        file = _file(item, number, result.claim.promise)
        if file is None:
            return
        if example is not None and not example.params:
            pair = example.d1, example.d2, example.difference, "", dict(example.params)
            write_whole(file, pickle.dumps({"format": _FORMAT, "pair": pair}))
        elif result.verdict == "no violation":
            file.unlink(missing_ok=True)
    except Exception as error:  # a full disk, or inputs that cannot be pickled: no reason to fail
        if result.violated:  # else there was nothing to keep
            spared(item, f"could not keep the pair that broke the claim: {reason(error)}")


def _file(item: pytest.Item, number: int, promise: Promise) -> Path | None:
    """Where the pair is kept: another place once the claim promises something for other inputs."""
    cache: Any = getattr(item.config, "cache", None)
    # Explicit pairs are tried in any case; what a strategy yields now is not known by its text.
    if cache is None or promise.pairs is not None or is_strategy(promise.inputs):
        return None
    try:
        inputs = pickle.dumps((promise.relation, promise.inputs))
    except Exception:  # nothing tells whether they are the same the next time
        return None
    about = f"{item.nodeid}#{number} ".encode() + inputs
    name = hashlib.sha256(about).hexdigest()[:20]
    return Path(cache.mkdir("pytest-dp")) / f"{name}.pickle"
