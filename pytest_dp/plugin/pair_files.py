"""Pairs that broke a claim, each as a file that runs as a test: ``.dp/pairs/<claim>.py``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from pytest_dp.auditors.audit_result import AuditResult
from pytest_dp.basics.writing import write_whole
from pytest_dp.plugin.failure import reason, warn_without_failing
from pytest_dp.records.evidence_store import FOLDER, Store
from pytest_dp.report.as_test import NoTest, as_test
from pytest_dp.report.pair import as_source_lines

_PAIRS = "pairs"
MOST_CHARACTERS = 100
"""Characters of an id in the name of its file. With more than some 230, file systems refuse it."""
DIGITS = 6
"""Of the digest in the name of a file. With fewer, ids that differ in punctuation alone may share
a file, and one's pass takes the other's pair away."""


def with_file(
    item: pytest.Item, number: int, mechanism: Any, keywords: Mapping[str, Any], result: AuditResult
) -> AuditResult:
    """Return the result of an audit, with the file that was written of the pair that it shows.

    `keywords` are those of the claim, and `number` counts the audits of a test. The file of a claim
    that stands is taken away.
    """
    root = item.config.rootpath
    folder = root / FOLDER / _PAIRS
    if folder in item.path.parents:
        return result  # it is of such a file
    name = f"{item.nodeid}#{number}" if number > 1 else item.nodeid
    file = folder / file_name(name)
    shown = file.relative_to(root).as_posix()
    try:
        if result.verdict == "no violation":
            file.unlink(missing_ok=True)
        if result.counterexample is None or _is_given(result):
            return result
        text = as_test(result, mechanism, keywords, shown, root)
        Store(root).prepare(folder)
        write_whole(file, text.encode())
        return replace(result, pair_file=shown)
    except NoTest as why:
        if as_source_lines(result):  # which says as much
            return result
        return replace(result, notes=(*result.notes, f"no file has this pair as a test: {why}"))
    except OSError as error:
        warn_without_failing(item, f"{shown} could not be written: {reason(error)}")
        return result


def file_name(name: str) -> str:
    """Return the name of the file of a claim, which no other claim shares on any file system."""
    words = re.sub(r"(\.py::|\W)+", "_", name).strip("_")[:MOST_CHARACTERS]
    digest = hashlib.sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:DIGITS]
    return f"{words}_{digest}.py"


def _is_given(result: AuditResult) -> bool:
    """Return whether the claim has this pair only."""
    pairs = result.claim.promise.pairs
    return isinstance(pairs, tuple) and len(pairs) == 1
