"""Faults of this package, told from what the objects and functions of users raise.

Work that no verdict needs, such as looking for lines that leak, goes on or is left out whatever is
raised in it. What users' code raises there is expected; a fault of this package is noted, so that
the result names it, and is raised where its own tests run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from pytest_dp.basics.whose_code import OURS, root_of

RAISING = "PYTEST_DP_RAISE_FAULTS"
"""The variable of the environment that lets faults be raised, as tests of this package do."""
_noted: list[str] = []


def is_own(error: BaseException) -> bool:
    """Return whether an error was raised in a line of this package, not in code that it calls.

    An attribute that an object of somebody else lacks is no fault of the line that asks for it.
    """
    if getattr(error, "obj", None) is not None and isinstance(error, AttributeError):
        asked = error.obj if isinstance(error.obj, type | ModuleType) else type(error.obj)
        if root_of(getattr(asked, "__module__", asked.__name__)) != "pytest_dp":
            return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(OURS)


def note_fault(error: Exception, work: str) -> None:
    """Note an error that a line of this package raised in some work, or raise it in tests."""
    if is_own(error):
        if RAISING in os.environ:
            raise error
        _noted.append(describe_error(error, work))


def describe_error(error: Exception, work: str) -> str:
    """Return a sentence on an error: its type, what it says, and the last line that led to it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if trace is None:
        return f"{work} failed: {said}"
    file = trace.tb_frame.f_code.co_filename
    place = f"pytest_dp/{Path(file[len(OURS) :]).as_posix()}" if file.startswith(OURS) else file
    blamed = ". This is a fault of pytest-dp: please report it" if is_own(error) else ""
    return f"{work} failed: {said} ({place}:{trace.tb_lineno}){blamed}"


@contextmanager
def noting_faults(work: str) -> Iterator[None]:
    """Leave out the rest of some work that raises: of users' code silently, else with a note."""
    try:
        yield
    except Exception as error:
        note_fault(error, work)


def pop_noted() -> tuple[str, ...]:
    """Return what was noted since the last call, each once."""
    found = tuple(dict.fromkeys(_noted))
    _noted.clear()
    return found
