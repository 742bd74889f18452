"""Processes that a mechanism forks, which are none of ours: they end where it would return."""

from __future__ import annotations

import itertools
import os
import sys
import traceback
from typing import NoReturn

_forks = itertools.count(1)
_NUMBER = [0]


def process_number() -> int:
    """Of this process among those that were forked from each other; quicker than its id."""
    return _NUMBER[0]


def _forked() -> None:
    _NUMBER[0] = next(_forks)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def end_if_forked(process: int, error: BaseException | None = None) -> None:
    """End a process that a mechanism has forked since `process` was its number."""
    if process != process_number():
        _end(error)


def _end(error: BaseException | None) -> NoReturn:
    """End a process that was forked by a mechanism: it would go on as a second audit.

    It ends as if the mechanism were all that it runs.
    """
    code = 0 if error is None else 1
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    elif error is not None:
        traceback.print_exception(error)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code & 0xFF)
