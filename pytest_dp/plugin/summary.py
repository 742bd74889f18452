"""What is printed at the end of a run: the table of claims, and what GitHub Actions shows."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_dp.plugin.failure import relative
from pytest_dp.report import github
from pytest_dp.report.text import Row, table, verbose

_COLOURS = {
    "violated": {"red": True, "bold": True},
    "error": {"red": True, "bold": True},
    "inconclusive": {"yellow": True},
    "no violation": {"green": True},
}
_rows: dict[str, list[Row]] = {}


def keep(report: pytest.TestReport) -> None:
    """Remember the rows of a test; those of a later rerun take their place."""
    rows = [Row.from_dict(fields) for fields in report.dp_rows]
    if report.outcome != "failed":
        # The test expected it: pytest.raises, or xfail.
        rows = [replace(row, expected=row.status in ("violated", "error")) for row in rows]
    _rows[report.nodeid] = rows


def forget() -> None:
    """Start a new session."""
    _rows.clear()


def show(reporter: pytest.TerminalReporter) -> None:
    """Print the table; on GitHub, annotate the claims and write the summary of the job."""
    config = reporter.config
    rows = sorted(
        (row for rows in _rows.values() for row in rows),
        key=lambda row: (row.path, row.line or 0, row.nodeid),
    )
    if not rows or hasattr(config, "workerinput"):
        return
    if config.get_verbosity() >= 0:
        writer = config.get_terminal_writer()
        reporter.write_sep("=", "privacy claims")
        for line, status in table(rows, writer.fullwidth):
            reporter.write_line(line, **_COLOURS.get(status, {}))
        if config.get_verbosity() > 0:
            for row in rows:
                reporter.write_line("")
                for line in verbose(row):
                    reporter.write_line(line)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        _on_github(reporter, rows)


def _on_github(reporter: pytest.TerminalReporter, rows: list[Row]) -> None:
    root = reporter.config.rootpath
    workspace = Path(os.environ.get("GITHUB_WORKSPACE") or root)
    for row in rows:
        line = "" if row.expected else github.annotation(row, relative(root / row.path, workspace))
        if line:
            reporter.write_line(line)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        try:
            github.append(summary, github.summary(rows))
        except OSError as error:
            reporter.write_line(f"pytest-dp could not write the job summary: {error}", yellow=True)
