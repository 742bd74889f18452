"""Everything pytest-dp raises on purpose, in one tree."""

from __future__ import annotations


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


class WeakenedClaim(PytestDPError):  # noqa: N818  what it is called where users see it
    """A claim is less than what ``dp-claims.json`` has on record, or is not audited any more."""

    __module__ = "pytest_dp"


class ClaimsFileError(PytestDPError):
    """``dp-claims.json`` cannot be read or written; the message says what to do."""

    __module__ = "pytest_dp"


class InconclusiveWarning(UserWarning):
    """An audit passed without saying much: too few samples, or outputs that never vary."""

    __module__ = "pytest_dp"
