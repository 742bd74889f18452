"""Hooks that other plugins, and a project's conftest.py, can implement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from pytest_dp.report.record import Record


def pytest_dp_report(records: Sequence[Record], config: pytest.Config) -> None:
    """Report the claims, once at the end of a run and before anything of it is printed.

    Parameters
    ----------
    records : sequence of pytest_dp.report.record.Record
        One for each claim that was audited, or should have been; plain values throughout.
    config : pytest.Config
    """
