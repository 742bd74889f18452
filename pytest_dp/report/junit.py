"""What a JUnit report says of a claim beside its test's outcome."""

from __future__ import annotations

from pytest_dp.report.record import Record

_NAMES = ("claim", "lower", "resolution", "strength", "samples", "seed")


def properties(record: Record) -> list[tuple[str, object]]:
    """Properties of the test: ``dp_verdict``, then what is known."""
    known = [(f"dp_{name}", getattr(record, name)) for name in _NAMES]
    known += [("dp_lower", "infinity")] if record.lower is None else []
    known += [("dp_blame", f"{leak.place}: {leak.message}") for leak in record.blame]
    return [("dp_verdict", record.status), *((n, v) for n, v in known if v not in (None, ""))]
