"""Everything pytest-dp raises on purpose, in one tree."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pytest_dp.auditors.result import AuditResult


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


class PrivacyViolation(PytestDPError, AssertionError):  # noqa: N818
    """The claim is broken; the message is the counterexample.

    Attributes
    ----------
    result : AuditResult
        The audit that found it.
    """

    __module__ = "pytest_dp"

    def __init__(self, message: str, result: AuditResult | None = None) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.result)


class InconclusiveAudit(PytestDPError, AssertionError):  # noqa: N818  named like PrivacyViolation
    """Too few samples to tell anything; raised only under ``dp_strict``."""

    __module__ = "pytest_dp"


class InconclusiveWarning(UserWarning):
    """An audit passed without saying much: too few samples, or outputs that never vary."""

    __module__ = "pytest_dp"
