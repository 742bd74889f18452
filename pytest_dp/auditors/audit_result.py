"""The result of an audit, as users get it, and the errors that carry it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pytest_dp.basics.errors import PytestDPError
from pytest_dp.results.result import Result


@dataclass(frozen=True, slots=True, repr=False)
class AuditResult(Result):  # noqa: D101  its base says it
    __doc__ = Result.__doc__  # for help()

    def __str__(self) -> str:
        """Return the outcome in a line."""
        from pytest_dp.report.violation import headline

        why = f"; {self.reason}" if self.verdict == "inconclusive" else ""
        return f"{self.name}: {headline(self)}{why}"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, ready for JSON; inputs and events as text.

        It has the keys of a claim in a JSON file of ``--dp-report``, which
        `pytest_dp/report/record.schema.json` describes.
        """
        from pytest_dp.report.record import Record

        return Record.of(self).as_dict()

    def _repr_html_(self) -> str:
        """Return the claim with its counterexample and its pictures, for notebooks."""
        from pytest_dp.report.html import fragment
        from pytest_dp.report.record import Record

        return fragment(Record.of(self, pictures=True))

    def to_json(self, indent: int | None = 2) -> str:
        """Return the same as JSON."""
        import json

        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


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
    """The audit told nothing, or too little; raised only where ``at_least`` asks for more."""

    __module__ = "pytest_dp"
