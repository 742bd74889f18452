"""Everything pytest-dp raises on purpose, in one tree, and faults of its own.

In work that no verdict needs, errors of users' code are expected. A fault of this package is noted,
so that the result names it, and is raised in the package's own tests.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from pytest_dp.basics.reprs import on_one_line
from pytest_dp.basics.whose_code import OURS, root_of

RAISING = "PYTEST_DP_RAISE_FAULTS"
"""The environment variable that makes `note_fault` raise, as in tests of this package."""
_noted: list[str] = []
"""Descriptions of the faults that were noted since `pop_noted` was called last."""


class PytestDPError(Exception):
    """Base of every error that pytest-dp raises on purpose."""

    __module__ = "pytest_dp"


class ClaimError(PytestDPError, ValueError):
    """The claim cannot be audited as written.

    The message says what was given, what is allowed and what to write instead.
    """

    __module__ = "pytest_dp"


class MechanismError(PytestDPError, RuntimeError):
    """The mechanism could not be run: it always raises, hangs, or takes its process down."""

    __module__ = "pytest_dp"


class DependentRuns(MechanismError):  # noqa: N818  a MechanismError to users
    """The runs of a mechanism depend on earlier ones, so that an audit has no evidence."""

    __module__ = "pytest_dp"


class CannotRun(MechanismError):  # noqa: N818  a MechanismError to users
    """A part of a mechanism cannot be run: a program is missing, a service does not answer.

    Unlike whatever else a mechanism raises, this is no output, and ends the audit.
    """

    __module__ = "pytest_dp"


class WeakenedClaim(PytestDPError):  # noqa: N818  what it is called where users see it
    """A claim is less than what ``dp-claims.json`` has on record, or is not audited any more."""

    __module__ = "pytest_dp"


class ClaimsFileError(PytestDPError):
    """``dp-claims.json`` cannot be read or written; the message says what to do."""

    __module__ = "pytest_dp"


class InconclusiveWarning(UserWarning):
    """An audit passed without saying much: too few samples, or outputs that never vary."""

    __module__ = "pytest_dp"


def invalid(name: str, value: object, allowed: str) -> ClaimError:
    """Return a ClaimError on an invalid value of a keyword; `allowed` says which are valid."""
    return ClaimError(f"Invalid {name}={on_one_line(value, 200)}. {allowed}")


def did_you_mean(asked: object, known: Iterable[str], most: int = 1) -> str:
    """Return ``Did you mean 'x'?`` with up to `most` similar names; empty if none is similar."""
    close = difflib.get_close_matches(str(asked), known, most)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""


def is_own(error: BaseException) -> bool:
    """Return whether an error comes from a line of this package, not from code that it calls."""
    if getattr(error, "obj", None) is not None and isinstance(error, AttributeError):
        asked = error.obj if isinstance(error.obj, type | ModuleType) else type(error.obj)
        if root_of(getattr(asked, "__module__", asked.__name__)) != "pytest_dp":
            return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(OURS)


def note_fault(error: Exception, work: str) -> None:
    """Note an error in some `work` for the report if it is a fault of this package; else ignore it.

    Raises the fault instead if the environment variable `RAISING` is set, as in tests.
    """
    if is_own(error):
        if RAISING in os.environ:
            raise error
        _noted.append(describe_error(error, work))


def describe_error(error: Exception, work: str) -> str:
    """Return a sentence that `work` failed, with the error's type, message and innermost line.

    The line is left out if there is no traceback. A fault of this package asks for a report of it.
    """
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
    """Suppress each Exception of the block; pass it to `note_fault`, which may raise it."""
    try:
        yield
    except Exception as error:
        note_fault(error, work)


def pop_noted() -> tuple[str, ...]:
    """Return the descriptions of the noted faults, each once, and forget them."""
    found = tuple(dict.fromkeys(_noted))
    _noted.clear()
    return found
