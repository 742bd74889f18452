"""Installs a project with what it has: a lock, dependency groups, extras, or requirements.

Run in the folder of the project, by the Python that is to run its tests. A project that does not
bring pytest-dp gets that of this action.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = "test", "tests", "testing", "dev"
"""Of groups, extras and files of requirements with what tests need; the first one counts."""
PIP = [sys.executable, "-m", "pip", "install"]
UV = "--frozen", "--inexact", "--all-extras", "--all-groups"


def commands(project: Path) -> Iterator[list[str]]:
    """What installs a project; the first lock that it has, else what is written by hand."""
    root = Path(os.environ.get("GITHUB_WORKSPACE", project)).resolve()
    above = [folder for folder in (project, *project.parents) if folder.is_relative_to(root)]
    file = project / "pyproject.toml"
    written: dict[str, Any] = tomllib.loads(file.read_text("utf-8")) if file.is_file() else {}
    if written and any((folder / "uv.lock").is_file() for folder in above):  # of a workspace, too
        yield [*PIP, "uv"]
        yield [sys.executable, "-m", "uv", "sync", *UV]
    elif (project / "poetry.lock").is_file():
        yield [*PIP, "poetry"]
        yield [sys.executable, "-m", "poetry", "install", "--all-extras"]
    else:
        yield [*PIP, *_by_hand(project, written)]


def _by_hand(project: Path, written: dict[str, Any]) -> Iterator[str]:
    extras = written.get("project", {}).get("optional-dependencies", {})
    group = next((name for name in NAMES if name in written.get("dependency-groups", {})), None)
    extra = next((name for name in NAMES if name in extras), None)
    files = [f"requirements-{name}.txt" for name in NAMES] + ["requirements.txt"]
    found = [name for name in files if (project / name).is_file()][:1]
    if "project" in written or "build-system" in written or (project / "setup.py").is_file():
        yield from ("--editable", f".[{extra}]" if extra else ".")
    if group is not None:
        yield from ("--group", group)
    if group is None and extra is None:
        yield from (part for name in found for part in ("--requirement", name))
        yield "pytest"


def main() -> None:
    """Install the project, then pytest-dp if it did not bring it."""
    settings = {
        **os.environ,
        "UV_PROJECT_ENVIRONMENT": sys.prefix,  # into this Python, not into one of their own
        "POETRY_VIRTUALENVS_CREATE": "false",
    }

    def run(command: list[str] | str) -> None:
        print("$", command if isinstance(command, str) else " ".join(command), flush=True)
        shell = ["bash", "-e", "-c", command] if isinstance(command, str) else command
        if code := subprocess.run(shell, env=settings, check=False).returncode:
            sys.exit(f"This ends with exit code {code}. Say what installs the project: install=")

    run([*PIP, "--quiet", "--upgrade", "pip"])  # older ones know no groups
    given = os.environ.get("INSTALL", "").strip()
    for command in [given] if given else commands(Path.cwd()):
        run(command)
    imported = [sys.executable, "-c", "import pytest_dp"]
    if subprocess.run(imported, capture_output=True, check=False).returncode:
        run([*PIP, str(Path(__file__).resolve().parents[3])])


if __name__ == "__main__":
    main()
