"""The identity of what is audited: the project's files, what is installed, Python, and the claim.

Any edit of a file that is part of the project gives another identity: evidence and passes of
earlier runs are then about something else. Nothing is read of what code does, so nothing of it can
be misread.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from pytest_dp.basics.reach import reach
from pytest_dp.basics.whose_code import is_project_file
from pytest_dp.black_boxes.boxes import BlackBox
from pytest_dp.claiming.claim import Arguments, Promise
from pytest_dp.records.stable_texts import digest_of_text, text_of

_PROSE = (".md", ".rst")
_NO_SOURCES = {"build", "dist", "node_modules", "venv"}
"""Folders that are passed over where no repository says which files are the project's; so are
folders and files whose names begin with a dot, caches, metadata of packages and environments."""


def identity(promise: Promise, arguments: Arguments, code: str, *more: str) -> str:
    """Return a digest of a claim and of all code and data that it may depend on.

    The promise has its inputs looked up. The code is `project_digest` before the first run.
    """
    claimed: list[Any] = [promise.guarantee, promise.relation, promise.games]
    claimed += [promise.inputs, promise.pairs]
    claimed += [arguments.params, arguments.vectorized, arguments.drawn]
    return digest_of_text("\n".join([*map(text_of, claimed), code, *more]))


def is_outside(*roots: Any) -> bool:
    """Return whether objects reach a program or a service, which may be another at any time."""
    return any(isinstance(value, BlackBox) for value, _ in reach(*((root, "") for root in roots)))


@functools.cache
def project_digest(root: Path) -> str:
    """Return a digest of a project's files, of the installed versions, and of Python's version.

    It is kept until `forget_digests` is called, as runs may write files.
    """
    root = root.resolve()
    files = {name: root / name for name in files_of(root)}
    for distribution, folder in _editable():
        files |= {f"{distribution}:{name}": folder / name for name in files_of(folder)}
    files |= _imported_files(set(files.values()))
    contents = [(name, _content(file)) for name, file in sorted(files.items())]
    return digest_of_text(
        repr((contents, sorted(_installed_versions()), sys.version, sys.platform))
    )


def forget_digests() -> None:
    """Read all files anew the next time."""
    project_digest.cache_clear()


def files_of(root: Path) -> list[str]:
    """Return the source and data files of a project, relative to its folder; prose is none.

    In a git repository, these are the tracked files below the folder, and Python files that are
    not tracked yet.
    """
    listed = _tracked_files(root) or _walk_files(root)
    return sorted({name for name in listed if not name.lower().endswith(_PROSE)})


def _tracked_files(root: Path) -> list[str]:
    """Return the files that git lists below a folder; none where it cannot tell."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    listed: list[str] = []
    for more in ([], ["--others", "--exclude-standard", "*.py"]):
        command = ["git", "-C", str(root), "ls-files", "-z", *more]
        try:
            done = subprocess.run(command, capture_output=True, check=True, env=environment)
        except (OSError, subprocess.CalledProcessError):  # no git, or no repository
            return []
        listed += filter(None, os.fsdecode(done.stdout).split("\0"))
    modules = [name for name in listed if _is_submodule(root / name)]
    inside = [f"{module}/{name}" for module in modules for name in files_of(root / module)]
    return [*listed, *inside]


def _is_submodule(path: Path) -> bool:
    return not path.is_symlink() and (path / ".git").exists()


def _walk_files(root: Path) -> Iterator[str]:
    """Yield the files below a folder, but for those that are no project's source or data."""
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        folders[:] = [name for name in folders if not _is_left_out(here / name)]
        for name in files:
            if not name.startswith(".") and not name.endswith(".pyc"):
                yield (here / name).relative_to(root).as_posix()


def _is_left_out(folder: Path) -> bool:
    name = folder.name
    is_usual = name.startswith(".") or name in _NO_SOURCES or name == "__pycache__"
    return is_usual or name.endswith(".egg-info") or (folder / "pyvenv.cfg").exists()


def _imported_files(known: Iterable[Path]) -> dict[str, Path]:
    """Return files of imported modules that no package manager installed, by the modules' names.

    They may lie elsewhere, or be generated and so not tracked.
    """
    found: dict[str, Path] = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name != "__main__" and isinstance(file, str) and is_project_file(file):
            path = Path(file).resolve()
            if path not in known:
                found[f"import {name}"] = path
    return found


def _editable() -> Iterator[tuple[str, Path]]:
    """Yield the folders of packages that are installed as `pip install -e` does; not our own."""
    for distribution in metadata.distributions():
        origin = _origin(distribution)
        url = urlsplit(str(origin.get("url", "")))
        if origin.get("dir_info", {}).get("editable") and distribution.name != "pytest-dp":
            yield distribution.name, Path(url2pathname(url.path))


def _installed_versions() -> Iterator[str]:
    """Yield each installed distribution with its version, and the commit that it is of."""
    for distribution in metadata.distributions():
        commit = _origin(distribution).get("vcs_info", {}).get("commit_id", "")
        yield f"{distribution.name} {distribution.version} {commit}"


def _origin(distribution: metadata.Distribution) -> dict[str, Any]:
    """Return what `direct_url.json` says of a distribution that is not from an index."""
    with suppress(ValueError):
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
        return origin if isinstance(origin, dict) else {}
    return {}


def _content(file: Path) -> str:
    """Return a digest of a file's content; empty if it cannot be read."""
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        return ""
