"""Audits as pytest shows them: errors at the line of the claim, warnings, and a sign of life."""

from __future__ import annotations

import math
import os
import re
import textwrap
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Self

import pytest
from _pytest._code.code import ReprEntry, ReprExceptionInfo, ReprFileLocation, ReprTraceback

from pytest_dp.basics.clocks import QUIET_SECONDS
from pytest_dp.basics.errors import InconclusiveWarning, PytestDPError
from pytest_dp.claiming.settings import NO_LIMIT

MAX_SOURCE_LINES = 24
"""Lines of a claim's source in a failure. More hide what is wrong; fewer leave out the end of a
claim."""

_WITHOUT_CONFIDENCE = re.compile(r" \([^()]* confidence\)$")


def represent(
    error: PytestDPError | InconclusiveWarning, config: pytest.Config, path: Path, line: int
) -> ReprExceptionInfo:
    """Return the claim's source, the message, and where it is; built of what pytest itself prints.

    These classes survive the way from an xdist worker, give the line of the short summary and the
    JUnit message, and are coloured like any other failure.
    """
    from pytest_dp.auditors.session import PrivacyViolation  # it loads NumPy

    shown = relative(path, config.rootpath)
    kind = type(error).__name__
    message = f"{kind}: {error}"
    summary = message.partition("\n")[0]
    lines = [f"    {text}".rstrip() for text in decorator_source(path, line)]
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
        after = path.read_text(encoding="utf-8").splitlines()[line - 1 :][:MAX_SOURCE_LINES]
    except (OSError, UnicodeDecodeError):
        return []
    heads = (n for n, text in enumerate(after, 1) if re.match(r"\s*(async )?(def|class) ", text))
    return textwrap.dedent("\n".join(after[: next(heads, 1)])).splitlines()


class Progress:
    """A sign of life during long audits, on a terminal only: how far an audit is, what remains.

    ``[count[eps=1.0]: 120,000 samples, 4 of 60 s, would catch 1.4, until 1.25]``. The text
    is taken back when the audit ends, so that nothing of it stays in the line or in a log.
    """

    def __init__(
        self, config: pytest.Config, name: str, max_seconds: float, goal: float | None = None
    ) -> None:
        self.name, self.goal = name, goal
        self.limit = f" of {max_seconds:g}" if max_seconds < NO_LIMIT else ""
        self.shown = 0
        self.capture = config.pluginmanager.get_plugin("capturemanager")
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        is_worker = "PYTEST_XDIST_WORKER" in os.environ
        is_seen = not is_worker and getattr(reporter, "isatty", False)
        writer = config.get_terminal_writer() if is_seen else None
        self.writer = writer if writer is not None and writer.hasmarkup else None

    def show(self, runs: int, seconds: float, caught: float | None = None) -> None:
        """Replace what is shown, where there is room for it in the line.

        `caught` is the smallest true loss that would have been caught by now, in nats; the audit
        ends where it comes down to `goal`, or with its time.
        """
        if self.writer is None or seconds < QUIET_SECONDS:
            return
        clock = f"{seconds:.0f}{self.limit} s"
        text = f"{self.name}: {runs:,} samples, {clock}"
        if caught is not None and math.isfinite(caught) and self.goal is not None:
            text += f", would catch {caught:.3g}, until {self.goal:.3g}"
        room = self.writer.fullwidth - self.writer.width_of_current_line - len(" []")
        text = text if len(text) < room else clock
        if len(text) < room:
            self._take_back()
            self._write(f" [{text}]")
            self.shown = len(f" [{text}]")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._take_back()

    def _take_back(self) -> None:
        if self.shown:
            self._write(f"\x1b[{self.shown}D\x1b[K")
            self.shown = 0

    def _write(self, text: str) -> None:
        if self.writer is None:
            return
        # Straight to the stream: the writer would count these characters as part of the line.
        stream = self.writer._file  # noqa: SLF001
        # While a test runs, what is written to the terminal would be captured.
        with self.capture.global_and_fixture_disabled() if self.capture else nullcontext():
            stream.write(text)
            stream.flush()
