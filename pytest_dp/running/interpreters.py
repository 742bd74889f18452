"""Run a mechanism in interpreters that start anew: nothing is there of what this process did.

A process that is forked lacks the threads of the original, and shares its connections. An
interpreter that starts anew and imports the mechanism has threads and connections of its own, on
every system. It costs as long as its imports take, so interpreters are kept for the whole run.
Where nothing but Python's own threads runs in one after the imports, and it holds no connection, it
forks a process for each start; else it is used once for each mechanism.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_dp.basics import clocks
from pytest_dp.running.alarm import HUNG_SECONDS
from pytest_dp.running.calling import Call
from pytest_dp.running.chunks import pickle_data
from pytest_dp.running.copies import Bounded, CannotCopy, Pristine
from pytest_dp.running.forked import (
    MAX_STARTS,
    POLL_SECONDS,
    Answer,
    RunOrder,
    Starts,
    pickle_work,
)
from pytest_dp.running.locating import locate, project_files
from pytest_dp.running.opened_files import record_opened_files
from pytest_dp.running.pickling import dumps
from pytest_dp.running.serving import Recipe, receive, send, serve

LEAST_START_SECONDS = 0.25
"""Seconds that a start takes, at least, when effort is planned. Larger: fewer starts are planned;
smaller: too many."""

IMPORT_SECONDS = 60.0
"""For an interpreter to start and to import a mechanism's module. Less refuses modules that import
large libraries on a busy machine; more makes a build wait for a module that hangs."""
STARTS = 4
"""Interpreters that run a mechanism where they cannot fork, and that are kept. Fewer tell less of
what a mechanism keeps, more cost an import each, and memory."""
_KEPT: list[Interpreter] = []


class NewInterpreters(Starts):
    """New interpreters for one mechanism; to be made before the mechanism is run."""

    place = "a new interpreter"

    def __init__(self, call: Call, pristine: Pristine) -> None:
        super().__init__()
        self.seconds_to_start, self._started = 0.0, 0
        self._forks: bool | None = None  # unknown
        self._number, self._reuses, self._is_imported = 0, False, False
        self._call, self._key, self._recipe = call, b"", b""
        self._params, self._content, self._failed = b"", b"", ""
        self._environment, self._folder = dict(os.environ), ""
        with contextlib.suppress(OSError):  # it is gone
            self._folder = str(Path.cwd())
        try:
            self._params = pickle_data(call.params)
            content = (call.mechanism, call.params) if pristine.reason else pristine
            self._content = dumps(content, Bounded())  # functions of modules by their names
        except Exception as error:  # whatever pickling raises
            self._failed = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"

    def _prepare(self) -> None:
        """Decide how other interpreters make the mechanism. Raises CannotCopy if none can."""
        if not self.reason and not self._recipe:
            place, call = locate(self._call.mechanism) if self._params else None, self._call
            if place is None and not self._content:
                self.reason = (
                    "another interpreter can neither import it, as it is no part of a module, nor "
                    f"take a copy ({self._failed})"
                )
            self._is_imported = place is not None
            self._key = hashlib.sha256(repr(place).encode() + self._content).digest()
            self._recipe = pickle.dumps(
                Recipe(
                    place,
                    self._content if place is None else b"",
                    self._params,
                    call.rng,
                    call.size,
                    list(sys.path),
                    project_files(),
                    self._environment,
                    self._folder,
                )
            )
        if self.reason:
            raise CannotCopy(self.reason)

    def starts(self) -> int:
        """Return how many starts are worth their cost; the first interpreter tells.

        Raises CannotCopy if the mechanism cannot be made there.
        """
        if self._forks is None:
            self._interpreter()
        return MAX_STARTS if self._forks else STARTS

    @property
    def seconds_a_start(self) -> float:
        """Return what a start takes where each costs an import, as far as is known; else 0."""
        if self._forks is not False:
            return 0.0
        return max(self.seconds_to_start / max(self._started, 1), LEAST_START_SECONDS)

    def each(self, first: int) -> Iterator[int]:
        """Let each of some interpreters be asked in turn, from the `first` on: yield its number.

        Forks of one interpreter share what was drawn when it imported the mechanism; all of them
        do, where it is sent by value.
        """
        self._prepare()
        try:
            for number in range(first, STARTS) if self._is_imported else ():
                self._number = number
                yield number
        finally:
            self._number = 0

    def _answer(self, call: Call, work: RunOrder, *, seeds_all: bool) -> Answer:  # noqa: ARG002
        self._prepare()
        request = seeds_all, pickle_work(None, work), work[-1]  # how to call it is in the recipe
        interpreter = self._interpreter()
        answer = interpreter.ask((self._key, "run", request), work[-1])
        if not self._forks:
            interpreter.used.add(self._key)
        return pickle.loads(answer) if answer else Answer([], failed=_ENDED)

    def _interpreter(self) -> Interpreter:
        """Return one that made the mechanism and never ran it. Raises CannotCopy if none can."""
        self._prepare()
        if self._reuses:
            return next(kept for kept in _KEPT if self._key in kept.made)
        unused = _fresh_interpreters(self._key)
        # Where none forks, each is used once, and the next one is the first that is left.
        number = 0 if self._forks is False else self._number
        if number >= len(unused):
            unused = self._started_ahead(STARTS if self._forks is False else 1)
            number = 0
        interpreter = unused[number]
        if self._key not in interpreter.made:
            started, is_first = clocks.seconds(), self._forks is None
            answer = interpreter.ask((self._key, "make", self._recipe), IMPORT_SECONDS)
            self.seconds_to_start += clocks.seconds() - started
            self._started += 1
            failed, self._forks = pickle.loads(answer) if answer else (_ENDED, False)
            if failed:
                self.reason = f"a new interpreter cannot make it: {failed}"
                interpreter.end()
                raise CannotCopy(self.reason)
            interpreter.made.add(self._key)
            if is_first and not self._forks:  # the others import meanwhile
                self._started_ahead(STARTS - len(_fresh_interpreters(self._key)))
        elif self._forks is None:
            self._forks = self._key in interpreter.forks
        if self._forks:
            interpreter.forks.add(self._key)
        return interpreter

    def _started_ahead(self, count: int) -> list[Interpreter]:
        """Start so many, which make the mechanism meanwhile."""
        started = [_start(self._key) for _ in range(count)]
        for interpreter in started:
            interpreter.send((self._key, "make", self._recipe))
        return started

    @contextlib.contextmanager
    def reused(self) -> Iterator[NewInterpreters]:
        """Ask those that have run the mechanism, where nothing has to start afresh."""
        self._reuses = self._forks is False and any(self._key in kept.made for kept in _KEPT)
        try:
            yield self
        finally:
            self._reuses = False

    def close(self) -> None:
        """Leave the interpreters to others: they end with the run."""


_ENDED = "it does not answer: it hangs, or takes its process down"


def _fresh_interpreters(key: bytes) -> list[Interpreter]:
    """Return interpreters in which a mechanism was not run, first those that have made it."""
    unused = [kept for kept in _KEPT if key not in kept.used]
    return sorted(unused, key=lambda kept: key not in kept.made)


def _start(key: bytes) -> Interpreter:
    """Start an interpreter; if there are too many, one ends, first those that ran the mechanism."""
    while len(_KEPT) >= STARTS:
        min(_KEPT, key=lambda kept: key not in kept.used).end()
    _KEPT.append(Interpreter())
    return _KEPT[-1]


def stop() -> None:
    """End all interpreters that were started here."""
    while _KEPT:
        _KEPT[0].end()


class Interpreter:
    """Another interpreter, and how to ask it.

    `made` are mechanisms by their keys, `forks` those of which it forks each start, `used` those
    that it ran itself.
    """

    def __init__(self) -> None:
        self.made: set[bytes] = set()
        self.forks: set[bytes] = set()
        self.used: set[bytes] = set()
        self._sent: Any = None
        self._owner = os.getpid()
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; from {serve.__module__} import serve; serve()"
        )
        with record_opened_files():  # apart: it is not the mechanism that starts this process
            self._process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        while True:
            answer = receive(self._process.stdout)
            self._answers.put(answer)
            if answer is None:
                return

    def send(self, request: Any) -> None:
        """Send a request ahead of the question for its answer."""
        assert self._process.stdin is not None
        self._sent = request
        with contextlib.suppress(OSError):  # it has ended: no answer comes
            send(self._process.stdin, pickle.dumps(request))

    def ask(self, request: Any, seconds: float) -> bytes:
        """Return the answer to a request, which may have been sent. Without one, it is ended."""
        if self._sent not in (None, request):
            self._next(IMPORT_SECONDS)
        if self._sent is None:
            self.send(request)
        return self._next(seconds)

    def _next(self, seconds: float) -> bytes:
        until = clocks.seconds() + seconds + HUNG_SECONDS
        answer: bytes | None = None
        try:
            while clocks.seconds() < until:  # briefly, so that no alarm finds it hanging
                with contextlib.suppress(queue.Empty):
                    answer = self._answers.get(timeout=POLL_SECONDS)
                    break
        finally:
            self._sent = None
            if answer is None:
                self.end()
        return answer or b""

    def end(self) -> None:
        """End the process with all that it started, and forget it."""
        with contextlib.suppress(ValueError):
            _KEPT.remove(self)
        if self._owner != os.getpid():
            return
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            self._process.wait(HUNG_SECONDS)
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()
