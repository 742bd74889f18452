"""A plugin of pytest: on a busy machine, as much is shown of a violation as on an idle one."""

from __future__ import annotations

SECONDS = 600.0
"""For each step after a verdict. With less, a busy machine counts fewer runs than an idle one."""


def pytest_configure() -> None:
    from pytest_dp.auditors import budget

    budget.BLAME_SECONDS = budget.QUIET_SECONDS = budget.SHOWN_SECONDS = SECONDS
