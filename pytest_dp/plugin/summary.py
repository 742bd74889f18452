"""The end of a run: the table of claims, reports as files, and what GitHub Actions shows."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from textwrap import wrap

import pytest

from pytest_dp.basics.atomic_files import write_whole
from pytest_dp.basics.errors import ClaimError, note_fault
from pytest_dp.plugin.claim_session import error_reason, relative_path, report_paths
from pytest_dp.report.files import (
    FORMATS,
    Run,
    annotation,
    append_summary,
    blame_commands,
    format_suffix,
    job_summary,
)
from pytest_dp.report.record import Record
from pytest_dp.report.summary_table import ORDER, STATUSES, table, total, verbose_lines


def report_records(reports: Iterable[pytest.TestReport]) -> list[Record]:
    """Return the records on reports, in the order in which the claims are written."""
    return sorted(
        (Record.from_dict(fields) for report in reports for fields in report.dp_records),
        key=lambda record: (record.path, record.line or 0, record.nodeid),
    )


def show_table(reporter: pytest.TerminalReporter, records: list[Record]) -> list[str]:
    """Print the table; on GitHub, annotate the claims and write the summary of the job.

    Return a line for each of these that failed; the others are shown all the same.
    """
    problems = []
    steps = [("The table of claims", _print_table)]
    if os.environ.get("GITHUB_ACTIONS") == "true":
        steps.append(("Annotations for GitHub", _annotate_on_github))
    for what, show in steps:
        try:
            show(reporter, records)
        except Exception as error:  # the failures above stand, and the other step
            note_fault(error, f"showing {what}")
            problems.append(f"{what} could not be shown: {error_reason(error)}")
    return problems


def _print_table(reporter: pytest.TerminalReporter, records: list[Record]) -> None:
    """Print the table, or one line with -q, and violations outside the inputs; -v adds facts."""
    verbosity = reporter.config.get_verbosity()
    audited = [record for record in records if record.status != "weakened"]  # shown by itself
    claims = [record for record in audited if not record.expected]
    if verbosity < 0:
        worst = min((record.status for record in records), key=ORDER.index)
        colour = STATUSES["no violation" if all(r.expected for r in records) else worst].colour
        reporter.write_line(f"privacy: {total(records, loud=True)}", **colour)
    elif audited:
        width = reporter.config.get_terminal_writer().fullwidth
        reporter.write_sep("=", "privacy claims")
        for line, status in table(claims, width):
            reporter.write_line(line, **(STATUSES[status].colour if status else {}))
        names = dict.fromkeys(record.name for record in records if record.expected)
        expected = f"broken, as the test expects: {', '.join(names)}" if names else ""
        for line in wrap(expected, width):
            reporter.write_line(line)
    for record in claims:
        if record.beyond is not None:  # shown with -q too, as failures are
            reporter.write_sep("_", record.name)
            reporter.write_line(record.beyond.details)
    for record in audited if verbosity > 0 else ():
        reporter.write_line("")
        for line in verbose_lines(record):
            reporter.write_line(line)


def _annotate_on_github(reporter: pytest.TerminalReporter, records: list[Record]) -> None:
    """Print GitHub's commands for claims and blamed lines, and append the summary of the job.

    Claims that a test expects to be broken are left out. The summary goes to the file that
    ``GITHUB_STEP_SUMMARY`` names, if any; if writing it fails, a line says so.
    """
    records = [record for record in records if not record.expected]  # those alarm nobody
    root, workspace = reporter.config.rootpath, _repository_root(reporter.config)
    for record in (part for claimed in records for part in claimed.parts):
        line = annotation(record, relative_path(root / record.path, workspace))
        blamed = blame_commands(record, lambda path: relative_path(root / path, workspace))
        for command in (line, *blamed) if line else ():
            reporter.write_line(command)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary and records:
        try:
            append_summary(summary, job_summary(records))
        except OSError as error:
            reporter.write_line(f"pytest-dp could not write the job summary: {error}", yellow=True)


def report_files(config: pytest.Config) -> list[Path]:
    """Return the absolute files of reports; raise UsageError for folders and unknown endings."""
    # Absolute, as tests may change the directory.
    files = dict.fromkeys(Path(os.path.abspath(file)) for file in report_paths(config))  # noqa: PTH100
    for file in files:
        if file.is_dir():
            raise pytest.UsageError(
                f"--dp-report={file}: this is a directory. Write the name of a file in it, such "
                f"as {file / 'dp.html'}."
            )
        try:
            format_suffix(file)
        except ClaimError as error:
            raise pytest.UsageError(f"--dp-report={file}: {error}") from None
    return list(files)


def write_reports(
    files: Iterable[Path], records: Sequence[Record], config: pytest.Config
) -> list[str]:
    """Write each file whole or not at all, and return a line for each that could not be written."""

    def located(path: str) -> str:
        return relative_path(config.rootpath / path, _repository_root(config))

    problems = []
    for file in files:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            text = FORMATS[format_suffix(file)](
                records, Run(located, _describe_project(config.rootpath))
            )
            write_whole(file, text.encode("utf-8", "backslashreplace"))
        except Exception as error:  # what one of them stumbles over costs no other
            note_fault(error, f"writing {file}")
            problems.append(f"--dp-report={file} could not be written: {error_reason(error)}")
    return problems


def _describe_project(root: Path) -> str:
    """Run git, and return the folder's name with its commit: ``"shop, commit 1a2b3c4-dirty"``.

    Without git, the commit is that of GitHub's or GitLab's variables; without these, the name alone
    is returned.
    """
    commit = os.environ.get("GITHUB_SHA") or os.environ.get("CI_COMMIT_SHA") or ""
    with suppress(OSError, subprocess.SubprocessError):
        git = ["git", "describe", "--always", "--dirty", "--exclude=*"]
        commit = subprocess.check_output(
            git, cwd=root, text=True, stderr=subprocess.DEVNULL, timeout=10
        ).strip()
    return f"{root.name}, commit {commit}" if commit else root.name


def _repository_root(config: pytest.Config) -> Path:
    """Return the root of the repository on GitHub or GitLab; elsewhere pytest's root."""
    roots = map(os.environ.get, ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"))
    return Path(next(filter(None, roots), config.rootpath))
