"""Files that a run opens to read, and other processes that it asks: no part of its own process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

LISTED = "os.listdir", "os.scandir"
"""Events by which folders are read: a name may hold an answer as well."""
ASKED = "another process"
"""In place of a file's name: what a run asks through a connection, or starts."""
ASKING = "socket.connect", "subprocess.Popen", "os.posix_spawn"
"""Events by which other processes are asked, and started."""
OF_SYSTEM = "/proc/", "/sys/"
"""Where files begin that tell of the machine, and keep nothing: threads that watch it, such as
those of a cluster, read them all the time."""

_HEEDED: list[tuple[list[str], set[str]]] = []
"""Where what is opened is written down now."""


@contextmanager
def record_opened_files() -> Iterator[list[str]]:
    """Record the files that any thread opens for reading within the block."""
    files: list[str] = []
    _add_hook()
    _HEEDED.append((files, set()))
    try:
        yield files
    finally:
        _HEEDED.pop()


@cache
def _add_hook() -> None:
    """Install the audit hook that notes opened files.

    It is installed once, as hooks cannot be removed. It does nothing while nobody asks for files.
    """
    sys.addaudithook(
        lambda event, args: _note_opened_file(*_HEEDED[-1], event, args) if _HEEDED else None
    )


def _note_opened_file(files: list[str], made: set[str], event: str, args: tuple[Any, ...]) -> None:
    """Remember what is opened to read, other than code, what was `made` anew before and /proc."""
    if event == "sqlite3.connect" or event in LISTED:
        folder = "" if isinstance(args[0], int) else os.fsdecode(args[0] or ".")
        if folder and not folder.startswith(OF_SYSTEM):  # no number of a folder that is open
            files.append(folder)
    elif event in ASKING:
        files.append(ASKED)
    elif event == "open" and not isinstance(args[0], int):
        path, mode, flags = args
        file = os.fsdecode(path)
        if set(mode) & {"w", "x"} if mode else flags & (os.O_TRUNC | os.O_EXCL):
            made.add(file)
        reads = set(mode) & {"r", "+"} if mode else flags & (os.O_RDWR | os.O_WRONLY) != os.O_WRONLY
        kept = not file.startswith(OF_SYSTEM) and not file.endswith(".pyc")
        if reads and kept and file not in made:
            files.append(file)
