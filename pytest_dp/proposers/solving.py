"""Questions to z3: the same ones have the same answers, on every machine that has time for them."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

import z3

from pytest_dp.basics import clocks

POLL_SECONDS = 0.1
"""Seconds between two looks for an answer. More: answers are seen late; fewer take longer."""
STARTING_SECONDS = 25.0
"""Seconds for z3's process to start. More: hangs are found later; fewer: slow machines fail."""

QUESTION_SECONDS = 2.0
"""Processor seconds for a question, most of which take less than a tenth of a second.

With fewer, a slow machine finds less; more are lost where z3 does not end.
"""
_START = "import sys; sys.path[:] = {}; from pytest_dp.proposers.answering import serve; serve()"


class Model:
    """Values for variables."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def value(self, variable: Any) -> Any:
        """Return the truth or the text of a variable; any will do where it has none."""
        return self._values.get(str(variable), False if z3.is_bool(variable) else "")

    def number(self, variable: Any) -> Fraction:
        """Return the number of a variable, which is rounded if it is irrational."""
        return Fraction(self._values.get(str(variable), 0))


class Questions:
    """Asks z3 in another process, which is ended if it does not answer in time.

    `left` tells how many seconds there are for all questions; `unanswered` counts those that were
    given up.
    """

    def __init__(self, left: Callable[[], float] = lambda: QUESTION_SECONDS) -> None:
        self._left, self.unanswered = left, 0
        self._process: subprocess.Popen[str] | None = None

    def any(self, hard: Sequence[Any], soft: Sequence[Any]) -> Model | None:
        """Return a model of all hard and many soft conditions; None if none is found soon."""
        return self._ask("any", hard, (), soft)

    def most(self, hard: Sequence[Any], wanted: Sequence[Any], soft: Sequence[Any]) -> Model | None:
        """Return a MaxSMT model of all hard, most wanted, then most soft conditions; or None."""
        return self._ask("most", hard, wanted, soft)

    def least(self, hard: Sequence[Any], objective: Any) -> Model | None:
        """Return a model of all hard conditions with the smallest value of an objective."""
        smallest = z3.Const("smallest", objective.sort())
        return self._ask("least", hard, [smallest == objective])

    def _can_read(self, seconds: float) -> bool:
        assert self._process is not None
        assert self._process.stdout is not None
        return bool(select.select([self._process.stdout], [], [], seconds)[0])

    def close(self) -> None:
        """End the other process."""
        if self._process is not None:
            self._process.kill()
            with suppress(OSError, ValueError):
                self._process.communicate()
            self._process = None

    def _ask(
        self, kind: str, hard: Sequence[Any], wanted: Sequence[Any], soft: Sequence[Any] = ()
    ) -> Model | None:
        solver = z3.Solver()
        solver.add(*hard, *wanted, *soft)
        counts = len(hard), len(wanted), len(soft)
        seconds = min(QUESTION_SECONDS, self._left())
        line = json.dumps([seconds, kind, solver.to_smt2(), counts])
        answered = self._answer(line, seconds)
        if answered is None:
            self.unanswered += 1
            self.close()
            return None
        if "error" in answered:
            raise z3.Z3Exception(answered["error"])
        return None if answered["values"] is None else Model(answered["values"])

    def _answer(self, line: str, seconds: float) -> dict[str, Any] | None:
        """Return what the other process answers; None if it does not within these seconds."""
        if seconds <= 0:
            return None
        if self._process is None:
            pipe, start = subprocess.PIPE, _START.format(sys.path)
            command = [sys.executable, "-c", start]
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
            seconds += STARTING_SECONDS
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        until = clocks.seconds() + clocks.WALL_FACTOR * seconds
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            while sys.platform != "win32" and not self._can_read(POLL_SECONDS):
                if clocks.seconds() > until:
                    return None
            answered: dict[str, Any] = json.loads(self._process.stdout.readline())
            clocks.add_process_seconds(answered["seconds"])
        except (OSError, ValueError):  # it has ended
            return None
        return answered
