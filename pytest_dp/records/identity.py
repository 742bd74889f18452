"""The identity of what is audited: the project's files, what is installed, Python, and the claim.

Any edit of a file that is part of the project gives another identity: evidence and passes of
earlier runs are then about something else. Nothing is read of what code does, so nothing of it can
be misread. Values of the claim stand as texts, the same in every process and on every machine.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np

from pytest_dp.basics.errors import note_fault
from pytest_dp.basics.reach import reach
from pytest_dp.basics.reprs import SHORT_LENGTH, safe_repr
from pytest_dp.basics.whose_code import is_project_file
from pytest_dp.black_boxes.boxes import BlackBox
from pytest_dp.claiming.claim import Arguments, Promise
from pytest_dp.data.describing import Visitor
from pytest_dp.data.equality import is_missing
from pytest_dp.data.types import DataType
from pytest_dp.declaration import Neighbors, Queries, Values

_PROSE = (".md", ".rst")
_NO_SOURCES = {"build", "dist", "node_modules", "venv"}
"""Folders that are passed over where no repository says which files are the project's; so are
folders and files whose names begin with a dot, caches, metadata of packages and environments."""

MAX_ITEMS = 1_000
"""Members of a container that are written. More: longer files; fewer: digests in their place."""


def identity(promise: Promise, arguments: Arguments, code: str, *more: str) -> str:
    """Return a digest of a claim, of `code`, and of further texts.

    The promise has its inputs looked up. `code` is `project_digest` from before the first run.
    """
    claimed: list[Any] = [promise.guarantee, promise.relation, promise.games]
    claimed += [promise.inputs, promise.pairs]
    claimed += [arguments.params, arguments.vectorized, arguments.drawn]
    return digest_of_text("\n".join([*map(text_of, claimed), code, *more]))


def is_outside(*roots: Any) -> bool:
    """Return whether objects reach a command or a URL, whose program may change at any time."""
    return any(isinstance(value, BlackBox) for value, _ in reach(*((root, "") for root in roots)))


@functools.cache
def project_digest(root: Path) -> str:
    """Run git, and return a digest of a project's files, installed versions, and Python's version.

    Each folder is read once: later calls return the first digest, as runs may write files.
    """
    root = root.resolve()
    files = {name: root / name for name in files_of(root)}
    for distribution, folder in _editable_folders():
        files |= {f"{distribution}:{name}": folder / name for name in files_of(folder)}
    files |= _imported_files(set(files.values()))
    contents = [(name, _content_digest(file)) for name, file in sorted(files.items())]
    return digest_of_text(
        repr((contents, sorted(_installed_versions()), sys.version, sys.platform))
    )


def files_of(root: Path) -> list[str]:
    """Run git, and return a project's files, relative to its folder, without ``.md`` and ``.rst``.

    These are the tracked files, and Python files that are neither tracked nor ignored. Outside of a
    repository, all files but those of hidden folders, environments, caches and builds.
    """
    listed = _tracked_files(root) or _walk_files(root)
    return sorted({name for name in listed if not name.lower().endswith(_PROSE)})


def _tracked_files(root: Path) -> list[str]:
    """Run git, and return the files that it lists below a folder; empty without a repository."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    listed: list[str] = []
    for more in (["--recurse-submodules"], ["--others", "--exclude-standard", "*.py"]):
        command = ["git", "-C", str(root), "ls-files", "-z", *more]
        try:
            done = subprocess.run(command, capture_output=True, check=True, env=environment)
        except (OSError, subprocess.CalledProcessError):  # no git, or no repository
            return []
        listed += filter(None, os.fsdecode(done.stdout).split("\0"))
    return listed


def _walk_files(root: Path) -> Iterator[str]:
    """Yield the files below a folder, but for hidden ones, environments, caches and builds."""
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        folders[:] = [name for name in folders if not _is_left_out(here / name)]
        for name in files:
            if not name.startswith(".") and not name.endswith(".pyc"):
                yield (here / name).relative_to(root).as_posix()


def _is_left_out(folder: Path) -> bool:
    """Return whether a folder is hidden, an environment, a cache, a build, or package metadata."""
    name = folder.name
    is_usual = name.startswith(".") or name in _NO_SOURCES or name == "__pycache__"
    return is_usual or name.endswith(".egg-info") or (folder / "pyvenv.cfg").exists()


def _imported_files(known: Iterable[Path]) -> dict[str, Path]:
    """Return files of imported modules that no package manager installed, without the `known` ones.

    Keys are ``"import NAME"``. Such files may be elsewhere, or be generated and so not tracked.
    """
    found: dict[str, Path] = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name != "__main__" and isinstance(file, str) and is_project_file(file):
            path = Path(file).resolve()
            if path not in known:
                found[f"import {name}"] = path
    return found


def _editable_folders() -> Iterator[tuple[str, Path]]:
    """Yield name and folder of each package installed by `pip install -e`, but for pytest-dp."""
    for distribution in metadata.distributions():
        origin = _install_origin(distribution)
        url = urlsplit(str(origin.get("url", "")))
        if origin.get("dir_info", {}).get("editable") and distribution.name != "pytest-dp":
            yield distribution.name, Path(url2pathname(url.path))


def _installed_versions() -> Iterator[str]:
    """Yield ``"NAME VERSION COMMIT"`` for each installed distribution; no commit if it has none."""
    for distribution in metadata.distributions():
        commit = _install_origin(distribution).get("vcs_info", {}).get("commit_id", "")
        yield f"{distribution.name} {distribution.version} {commit}"


def _install_origin(distribution: metadata.Distribution) -> dict[str, Any]:
    """Return the content of `direct_url.json`; empty if there is none, or if it is damaged."""
    with suppress(ValueError):
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
        return origin if isinstance(origin, dict) else {}
    return {}


def _content_digest(file: Path) -> str:
    """Return the SHA-256 of a file's content; empty if the file cannot be read."""
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        return ""


def digest_of_text(text: str) -> str:
    """Return a digest of a text: 12 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:12]


def text_of(value: Any) -> str:
    """Return a value as text, equal in all processes; ``<TYPE>`` if its methods raise (noted)."""
    try:
        return Canonical().text(value)
    except Exception as error:  # values are the user's objects: anything may happen in them
        note_fault(error, "writing a value as text")
        return f"<{type(value).__name__}>"


def brief(text: str) -> str:
    """Return the text; if it is long, its beginning and a digest of the whole text."""
    return (
        text
        if len(text) <= SHORT_LENGTH
        else f"{text[: SHORT_LENGTH - 20]}... #{digest_of_text(text)}"
    )


class Canonical(Visitor):
    """A writer of values as texts by content, with which digests are made."""

    def plain(self, value: Any) -> str:
        # The last digits of what is computed are the machine's.
        """Return the repr of a value; of a float in 12 digits, as further ones vary by machine."""
        return repr(float(f"{value:.12g}") if type(value) is float else value)

    def as_list(self, value: Any, depth: int) -> str:
        """Return the members of a list; a digest and a count if there are more than `MAX_ITEMS`."""
        if len(value) > MAX_ITEMS:
            return f"[#{digest_of_text(safe_repr(value))}] ({len(value):,} in all)"
        return super().as_list(value, depth)

    def array(self, value: Any, depth: int) -> str:
        """Return the type and elements of an array; a digest for the elements of large arrays."""
        if value.dtype.kind in "biufcSU" and value.size > SHORT_LENGTH:
            # a digest of its bytes is quicker
            content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
            return f"array(#{content}, {value.dtype}, {value.shape})"
        return f"array({self.text(value.tolist(), depth)}, {value.dtype})"

    def partial(self, value: Any, depth: int) -> str:
        called = self.text(value.func, depth), self.as_tuple(value.args, depth)
        return f"partial({', '.join(called)}, {self.as_dict(value.keywords, depth)})"

    def dataset(self, value: Any, data: DataType, depth: int) -> str:
        records = [_with_missing_values(record) for record in data.records(value)]
        return (
            f"{data.name}({self.text(data.columns(value), depth)}, {self.as_list(records, depth)})"
        )

    def other(self, value: Any, depth: int) -> str:
        """Return a function by name and source, other objects by their repr or their attributes."""
        if inspect.isroutine(value) or inspect.isclass(value):
            name, code = getattr(value, "__qualname__", safe_repr(value)), _source_of(value)
            return f"{name} #{digest_of_text(code)}" if code else name
        if getattr(type(value), "__repr__", None) is object.__repr__:
            return self.record(value, getattr(value, "__dict__", {}), depth)
        return safe_repr(value)

    def neighbors(self, value: Any, depth: int) -> str:
        return f"{value.name}({self.join_named(value.said, depth)})"

    kinds = (
        ((str, bytes), lambda _self, value, _depth: repr(value)),
        (np.generic, lambda self, value, depth: self.text(value.item(), depth)),
        (np.ndarray, array),
        (Queries, lambda self, value, depth: f"queries({self.join_values(value.lengths, depth)})"),
        (Values, lambda self, value, depth: f"values({self.as_list(value.options, depth)})"),
        (Neighbors, neighbors),
        (functools.partial, partial),
    )


def _source_of(value: Any) -> str:
    """Return the source of a function or class of the project, without comments; else ""."""
    try:
        if not is_project_file(inspect.getsourcefile(value) or "<frozen"):
            return ""
        source = textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError):
        return ""
    try:
        return ast.unparse(ast.parse(source))
    except SyntaxError:  # of a lambda within a call
        return "".join(source.split())


def _with_missing_values(record: Any) -> Any:
    """Return a record with None for missing values (NaN, NaT), which differ by library."""
    if isinstance(record, tuple):
        return tuple(map(_with_missing_values, record))
    return None if is_missing(record) else record
