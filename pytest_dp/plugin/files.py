"""Reports as files: which are wanted, and how they are written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from pytest_dp.errors import ClaimError
from pytest_dp.plugin.failure import reason, relative
from pytest_dp.plugin.names import reports
from pytest_dp.report.files import FORMATS, ending
from pytest_dp.report.record import Record
from pytest_dp.writing import write_whole


def wanted(config: pytest.Config) -> list[Path]:
    """The files of the reports of this run; raises UsageError if a file cannot be one."""
    # Absolute, as tests may change the directory.
    files = dict.fromkeys(Path(os.path.abspath(file)) for file in reports(config))  # noqa: PTH100
    for file in files:
        if file.is_dir():
            raise pytest.UsageError(
                f"--dp-report={file}: this is a directory. Write the name of a file in it, such "
                f"as {file / 'dp.html'}."
            )
        try:
            ending(file)
        except ClaimError as error:
            raise pytest.UsageError(f"--dp-report={file}: {error}") from None
    return list(files)


def remove(files: Iterable[Path]) -> None:
    """Take the reports of an earlier run away; where that fails, writing will say why."""
    for file in files:
        with suppress(OSError):
            if file.is_file():
                file.unlink()


def write(files: Iterable[Path], records: Sequence[Record], config: pytest.Config) -> list[str]:
    """Write each file whole or not at all; what was written, or went wrong, a line each.

    A report that cannot be written does not keep the others from being written.
    """
    workspace = Path(os.environ.get("GITHUB_WORKSPACE") or config.rootpath)
    located = partial(_located, config.rootpath, workspace)
    problems = []
    for file in files:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            text = FORMATS[ending(file)](records, located)
            write_whole(file, text.encode("utf-8", "backslashreplace"))
        except Exception as error:  # what one of them stumbles over costs no other
            problems.append(f"--dp-report={file} could not be written: {reason(error)}")
    return problems


def _located(root: Path, workspace: Path, path: str) -> str:
    """A path as seen from the root of the repository."""
    return relative(root / path, workspace)
