"""Everything pytest-dp raises on purpose, in one tree."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from pytest_dp.basics.reprs import on_one_line


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
    """Return the error for a value, saying what is allowed instead."""
    return ClaimError(f"Invalid {name}={on_one_line(value, 200)}. {allowed}")


def did_you_mean(asked: object, known: Iterable[str], most: int = 1) -> str:
    """Return a question that names the closest of some names; empty if none is close."""
    close = difflib.get_close_matches(str(asked), known, most)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
