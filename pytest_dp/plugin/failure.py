"""How pytest shows our own errors: at the line of the claim, without our frames."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path

import pytest
from _pytest._code.code import ReprEntry, ReprExceptionInfo, ReprFileLocation, ReprTraceback

from pytest_dp.basics.errors import InconclusiveWarning, PytestDPError

MAX_SOURCE_LINES = 24
"""Lines of a claim's source in a failure. More hide what is wrong; fewer leave out the end of a
claim."""

_WITHOUT_CONFIDENCE = re.compile(r" \([^()]* confidence\)$")


def represent(
    error: PytestDPError | InconclusiveWarning,
    config: pytest.Config,
    path: Path,
    line: int,
    source_line: int | None = None,
) -> ReprExceptionInfo:
    """Return the claim's source, the message, and where it is; built of what pytest itself prints.

    The source starts at `source_line`, where that is not `line`. These classes survive the way
    from an xdist worker, give the line of the short summary and the JUnit message, and are coloured
    like any other failure.
    """
    from pytest_dp.auditors.audit_result import PrivacyViolation  # it loads NumPy

    shown = relative(path, config.rootpath)
    kind = type(error).__name__
    message = f"{kind}: {error}"
    summary = message.partition("\n")[0]
    lines = [f"    {text}".rstrip() for text in decorator_source(path, source_line or line)]
    lines += [""] if lines else []
    lines += [f"E   {text}".rstrip() for text in message.splitlines()]
    last = _WITHOUT_CONFIDENCE.sub("", summary) if isinstance(error, PrivacyViolation) else kind
    place = ReprFileLocation(shown, line, last)
    entry = ReprEntry(lines, None, None, place, "long")
    return ReprExceptionInfo(
        reprcrash=ReprFileLocation(shown, line, summary),
        reprtraceback=ReprTraceback([entry], None, "long"),
    )


def warn_without_failing(item: pytest.Item, message: str) -> None:
    """Warn that an optional step failed; filters that make errors of warnings fail no test."""
    warning = pytest.PytestCacheWarning(message)
    try:
        item.warn(warning)
    except pytest.PytestCacheWarning:
        path, line, _ = item.reportinfo()
        said = warnings.WarningMessage(warning, type(warning), str(path), (line or 0) + 1)
        told = {"warning_message": said, "nodeid": item.nodeid, "when": "runtest", "location": None}
        item.ihook.pytest_warning_recorded.call_historic(kwargs=told)


def count_as_error(reporter: pytest.TerminalReporter, name: str, message: str) -> None:
    """Let the last lines count what no test could fail with: they are as red as the run."""
    place = ReprFileLocation(name, 1, message.partition("\n")[0])
    told = ReprExceptionInfo(ReprTraceback([], None, "long"), place)  # pytest 8.4 shows no text
    report = pytest.TestReport(name, (name, None, name), {}, "failed", told, "teardown")
    reporter.stats.setdefault("error", []).append(report)


def reason(error: Exception) -> str:
    """Say why a file, or another step, failed, without names of temporary files."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"{type(error).__name__}: {error}"


def relative(path: Path, root: Path) -> str:
    """Return a path as seen from `root`, with forward slashes."""
    try:
        return Path(os.path.relpath(path, root)).as_posix()
    except ValueError:  # another drive
        return path.as_posix()


def decorator_source(path: Path, line: int) -> list[str]:
    """Return the lines from the decorator to the signature that it stands on."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()[
            line - 1 : line - 1 + MAX_SOURCE_LINES
        ]
    except (OSError, UnicodeDecodeError):
        return []
    for count, text in enumerate(lines, 1):
        if text.lstrip().startswith(("def ", "class ", "async def ")):
            return _dedent(lines[:count])
    return _dedent(lines[:1])


def _dedent(lines: list[str]) -> list[str]:
    indent = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
    return [text[indent:] if not text[:indent].strip() else text for text in lines]
