"""A plugin of pytest: on a busy machine, as much is shown of a violation as on an idle one."""

from __future__ import annotations

SECONDS = 600.0
"""For each step after a verdict. With less, a busy machine counts fewer runs than an idle one."""


def pytest_configure() -> None:
    import pytest_dp.auditors
    import pytest_dp.auditors.context
    import pytest_dp.auditors.strongest

    pytest_dp.auditors.BLAME_SECONDS = SECONDS
    pytest_dp.auditors.QUIET_SECONDS = SECONDS
    pytest_dp.auditors.context.SHOWN_SECONDS = SECONDS
    pytest_dp.auditors.strongest.QUIET_SECONDS = SECONDS
