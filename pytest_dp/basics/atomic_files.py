"""Files that are written as a whole: readers see the new content, or that from before."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def write_whole(file: Path, content: bytes) -> None:
    """Write a file so that readers see all of the new content, or the file as it was before.

    Raises OSError if it cannot be written; the file is then as it was.
    """
    handle, beside = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        Path(beside).chmod(_usual_mode(file))
        Path(beside).replace(file)
    except BaseException:
        with suppress(OSError):
            Path(beside).unlink()
        raise


def _usual_mode(file: Path) -> int:
    """Return the permission bits of a file; those of a new file if it does not exist."""
    try:
        return file.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
