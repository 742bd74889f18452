"""Reports as files: which are wanted, and how they are written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from pytest_dp import __version__
from pytest_dp.plugin.failure import reason, relative
from pytest_dp.plugin.names import ini
from pytest_dp.report.document import as_json, versions
from pytest_dp.report.gitlab import code_quality
from pytest_dp.report.html import page
from pytest_dp.report.record import Record
from pytest_dp.report.sarif import sarif
from pytest_dp.writing import write_whole

Located = Callable[[str], str]

_WRITERS: dict[str, Callable[[Sequence[Record], Located], str]] = {
    "json": lambda records, located: as_json(records),  # noqa: ARG005
    "sarif": lambda records, located: sarif(records, __version__, located),
    "gitlab": code_quality,
    "html": lambda records, located: page(records, versions()),  # noqa: ARG005
}


def wanted(config: pytest.Config) -> dict[str, Path]:
    """Kinds of reports with their files: options over ini keys, which are relative to the root.

    Raises
    ------
    pytest.UsageError
        If a file cannot be one.
    """
    files = {}
    for kind in _WRITERS:
        given = getattr(config.option, f"dp_{kind}", None)
        file = Path(given) if given else None
        if file is None and ini(config, kind):
            file = config.rootpath / str(ini(config, kind))
        if file is None:
            continue
        file = Path(os.path.abspath(file))  # noqa: PTH100  tests may change the directory
        if file.is_dir():
            raise pytest.UsageError(
                f"--dp-{kind}={file}: this is a directory. Write the name of a file in it, such "
                f"as {file / f'dp.{kind}'}."
            )
        files[kind] = file
    return files


def remove(files: Iterable[Path]) -> None:
    """Take the reports of an earlier run away; where that fails, writing will say why."""
    for file in files:
        with suppress(OSError):
            if file.is_file():
                file.unlink()


def write(files: dict[str, Path], records: Sequence[Record], config: pytest.Config) -> list[str]:
    """Write each file whole or not at all; what was written, or went wrong, a line each.

    A report that cannot be written does not keep the others from being written.
    """
    workspace = Path(os.environ.get("GITHUB_WORKSPACE") or config.rootpath)
    located = partial(_located, config.rootpath, workspace)
    problems = []
    for kind, file in files.items():
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, _WRITERS[kind](records, located).encode("utf-8", "backslashreplace"))
        except Exception as error:  # what one of them stumbles over costs no other
            problems.append(f"--dp-{kind}={file} could not be written: {reason(error)}")
    return problems


def _located(root: Path, workspace: Path, path: str) -> str:
    """A path as seen from the root of the repository."""
    return relative(root / path, workspace)
