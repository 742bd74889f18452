"""A sign of life during long audits, on a terminal only."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import nullcontext
from types import TracebackType
from typing import Self

import pytest

from pytest_dp.basics.clocks import QUIET_SECONDS
from pytest_dp.claiming.settings import NO_LIMIT


class Progress:
    """Writes how far an audit is behind what pytest has printed, and what remains.

    ``[count[eps=1.0]: 120,000 samples, 4 of 60 s, would catch 1.4, until 1.25]``. The text
    is taken back when the audit ends, so that nothing of it stays in the line or in a log.
    """

    def __init__(
        self,
        config: pytest.Config,
        name: str,
        max_seconds: float,
        goal: float | None = None,
    ) -> None:
        self.name, self.max_seconds, self.goal = name, max_seconds, goal
        self.shown = 0
        self.writer = None
        self.capture = config.pluginmanager.get_plugin("capturemanager")
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        worker = "PYTEST_XDIST_WORKER" in os.environ
        if reporter is not None and not worker and getattr(reporter, "isatty", False):
            self.writer = config.get_terminal_writer()

    @property
    def wanted(self) -> Callable[[int, float, float | None], None] | None:
        """`show`; None where nothing is shown, as an audit needs time to tell how far it is."""
        return self.show if self.writer is not None and self.writer.hasmarkup else None

    def show(self, runs: int, seconds: float, caught: float | None = None) -> None:
        """Replace what is shown by as much as there is room for in the line.

        `caught` is the smallest true loss that would have been caught by now, in nats; the audit
        ends where it comes down to `goal`, or with its time.
        """
        if self.writer is None or seconds < QUIET_SECONDS or not self.writer.hasmarkup:
            return
        limit = f" of {self.max_seconds:g}" if self.max_seconds < NO_LIMIT else ""
        clock = f"{seconds:.0f}{limit} s"
        texts = [f" [{self.name}: {runs:,} samples, {clock}]", f" [{clock}]", f" [{seconds:.0f} s]"]
        if caught is not None and math.isfinite(caught) and self.goal is not None:
            ahead = f"would catch {caught:.3g}, until {self.goal:.3g}"
            texts[:1] = [
                f"{texts[0][:-1]}, {ahead}]",
                f" [{self.name}: {clock}, {ahead}]",
                texts[0],
            ]
        room = self.writer.fullwidth - self.writer.width_of_current_line
        text = next((text for text in texts if len(text) < room), None)
        if text is None:
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
