"""A sign of life during long audits, on a terminal only."""

from __future__ import annotations

import os
from contextlib import nullcontext
from types import TracebackType
from typing import Self

import pytest

PATIENCE = 2.0
"""Seconds before anything is shown."""


class Progress:
    """Writes ``[noisy_count[eps=1.0]: 120,000 samples, 4 s]`` behind what pytest has printed.

    The text is taken back when the audit ends, so that nothing of it stays in the line or in a log.
    """

    def __init__(self, config: pytest.Config, name: str) -> None:
        self.name = name
        self.shown = 0
        self.writer = None
        self.capture = config.pluginmanager.get_plugin("capturemanager")
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        worker = "PYTEST_XDIST_WORKER" in os.environ
        if reporter is not None and not worker and getattr(reporter, "isatty", False):
            self.writer = config.get_terminal_writer()

    def show(self, runs: int, seconds: float) -> None:
        """Replace what is shown, if there is room in the line."""
        if self.writer is None or seconds < PATIENCE or not self.writer.hasmarkup:
            return
        text = f" [{self.name}: {runs:,} samples, {seconds:.0f} s]"
        if self.writer.width_of_current_line + len(text) >= self.writer.fullwidth:
            text = f" [{seconds:.0f} s]"
        if self.writer.width_of_current_line + len(text) >= self.writer.fullwidth:
            return
        self._take_back()
        self._write(text)
        self.shown = len(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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
