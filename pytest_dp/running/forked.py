"""Runs of a mechanism in processes that were forked before its first run.

Connections, generators in mid-course and memory of compiled code cannot be copied. A process that
is forked before the first run has them as they were. It waits, and forks a process for each fresh
start.

Forked processes hold none of the sockets and pipes that were open before: a mechanism that uses
them raises, unless the modules of the project are imported anew there, and connect by themselves.

A verdict must not depend on answers that an earlier audit left in a mechanism: its first state in
this process is kept.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import socket
import stat
import sys
import types
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import IntEnum
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from pytest_dp.basics import clocks
from pytest_dp.basics.arrays import Outputs, join_outputs
from pytest_dp.basics.clocks import since_1970
from pytest_dp.basics.reach import GENERATORS
from pytest_dp.running.alarm import HUNG_SECONDS
from pytest_dp.running.calling import Call
from pytest_dp.running.chunks import Chunk, Input, Runner, pickle_data
from pytest_dp.running.copies import CannotCopy, Pristine
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generators import NUMPYS, PYTHONS, Purpose, reseed, stream
from pytest_dp.running.locating import import_anew, locate
from pytest_dp.running.modules import ASKED, record_opened_files

MAX_STARTS = 24
"""Processes that confirm a violation. Of 8, all kept one of two answers in 1 of 10 audits."""
MAX_WAITING = 4
"""Processes that wait for further audits of a mechanism. More take memory; fewer start anew."""
MAX_WAITING_BYTES = 1_000_000
"""Bytes of a mechanism whose process waits for further audits. More take memory."""
IMPORT_SECONDS = 10.0
"""Seconds to import a project's modules anew. Fewer: slow imports count as hangs."""
POLL_SECONDS = 0.1
"""Seconds between two looks at a pipe. More: alarms may find it hanging; fewer take longer."""
RunOrder = tuple[Runner, list[tuple[Input, list[Chunk]]], float]
"""How to run which chunks on which inputs, and the seconds that it may take."""
STANDARD = range(3)
"""File numbers of standard input, output and errors."""


class Answer(NamedTuple):
    """An answer of a process that runs a mechanism."""

    outputs: list[Outputs]
    stack: str | None = None
    """Where the mechanism was when its time was up; None if it ended in time."""
    failed: str = ""
    """Why there are no outputs, where another reason than time ended the runs; else empty."""
    files: Sequence[str] = ()
    """Names of the files that were opened to read."""


class Start(IntEnum):
    """The state in which a forked process runs the mechanism."""

    AS_IT_WAS = 0
    """The state of the original process before the first run."""
    SEEDED = 1
    """That state, with every random generator of the process reseeded."""
    IMPORTED = 2
    """The reseeded state, with the modules of the project imported once more."""


class Origin:
    """A fork of this process, which waits, and forks a process for each request to run a mechanism.

    To be closed when it is not needed any more. `reason` says why no mechanism can be run in such
    processes, and is empty if it can. `files` are the names of the files that the mechanism opened
    there to read: files are no part of a process.
    """

    def __init__(self, call: Call) -> None:
        self.reason = ""
        self.files: set[str] = set()
        self._process, self._owner = 0, os.getpid()
        if not hasattr(os, "fork") or sys.platform == "darwin":  # whose libraries do not survive it
            self.reason = "this system cannot fork processes safely"
            return
        self._pipe, other = Pipe()
        try:
            with warnings.catch_warnings():  # Python 3.12 warns where there are threads
                warnings.simplefilter("ignore")
                self._process = os.fork()
        except OSError as error:
            self.reason = f"no process can be forked ({error})"
        if not self._process and not self.reason:
            _end_with(_wait_for_requests, call, other)
        other.close()

    def run(
        self,
        call: Call,
        runner: Runner,
        works: list[tuple[Input, list[Chunk]]],
        deadline: Deadline,
        seconds: float,
        *,
        start: Start = Start.SEEDED,
    ) -> list[Outputs]:
        """Run the mechanism, as `call` says, in a new process, and return the outputs of each work.

        The mechanism was never run there. The process is given `seconds`. Raises CannotCopy if no
        process can be forked, the work cannot be pickled, the runs fail or take longer, and
        OutOfTime if the deadline passes first.
        """
        if self.reason:
            raise CannotCopy(self.reason)
        left = deadline.seconds_to_interrupt()
        if min(seconds, left) <= 0:
            raise OutOfTime
        work = runner, works, min(seconds, left)
        to_import = IMPORT_SECONDS if start is Start.IMPORTED else 0.0
        request = bytes([start]) + _pickle_work(call, start, work)
        answer = self._ask(request, work[-1] + to_import)
        if self.reason:
            self.close()
            raise CannotCopy(self.reason)
        given: Answer = pickle.loads(answer)
        self.files.update(given.files)
        if given.stack is not None and seconds >= left:
            raise OutOfTime(given.stack)
        if given.stack is not None:
            self.reason = _HANGS
            raise CannotCopy(self.reason)
        if given.failed:
            raise CannotCopy(f"in a process that was forked, {given.failed}")
        return given.outputs

    def _ask(self, request: bytes, seconds: float) -> bytes:
        """Send a request, return the pickled `Answer`; b"" if none comes, and set `reason`."""
        try:
            self._pipe.send_bytes(request)
            until = clocks.seconds() + seconds + HUNG_SECONDS
            while not self._pipe.poll(POLL_SECONDS):  # briefly, so that no alarm finds it hanging
                if clocks.seconds() > until:
                    self.reason = _HANGS
                    return b""
            return self._pipe.recv_bytes()
        except (OSError, EOFError):
            self.reason = "processes that are forked come to an end"
        return b""

    def close(self) -> None:
        """End the process that waits, and the processes that it forked."""
        process, self._process = self._process, 0
        if process and self._owner == os.getpid():  # not by what was forked later, of the same
            self._pipe.close()
            with contextlib.suppress(OSError):
                os.killpg(process, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.waitpid(process, 0)


_HANGS = "it does not return in a process that was forked, perhaps because it waits for a thread"


def _pickle_work(call: Call, start: Start, work: RunOrder) -> bytes:
    """Return the pickled request for a forked process, as `_outputs_sent` reads it.

    It holds the place to import the mechanism from (None unless `start` is `IMPORTED`), the seeds
    for generators, and the pickled work. The mechanism itself is not sent, as the process has it.
    Raises CannotCopy if the input or the parameters cannot be pickled, or if a mechanism that is to
    be imported anew is in no module.
    """
    place = None
    if start is Start.IMPORTED and (place := locate(call.mechanism)) is None:
        raise CannotCopy("it is in no module that can be imported again")
    runner, works, _ = work
    sequence = stream(runner.seed, Purpose.HIDDEN, *works[0][1][0].key)
    try:
        return pickle.dumps((place, sequence, pickle_data((call.call_signature(), *work))))
    except Exception as error:  # whatever pickling raises
        raise CannotCopy(f"its input or parameters cannot be pickled ({error})") from None


def _end_with(work: Callable[..., None], *args: Any) -> NoReturn:
    """Do the work in a process that was forked, then end the process, whatever the work raises."""
    try:
        work(*args)
    finally:
        os._exit(0)


def _wait_for_requests(call: Call, pipe: Connection) -> None:
    """Fork a process for each request and send its answer, until the pipe closes; then end all."""
    os.setsid()  # so that it can be ended with all that it forks
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    _cut_off(pipe.fileno())
    generators: list[Any] | None = None  # unknown until a request reseeds them
    while True:
        request = pipe.recv_bytes()
        if generators is None and request[0]:
            generators = _generators_anywhere()
        answers, answer = Pipe(duplex=False)
        child = os.fork()
        if not child:
            _end_with(_answer, call, generators if request[0] else [], request[1:], answer)
        answer.close()
        answered = b""
        if pipe in wait([answers, pipe]):  # the other end is closed
            break
        with contextlib.suppress(EOFError, OSError):
            answered = answers.recv_bytes()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        answers.close()
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        down = f"it takes its process down, {how}"
        pipe.send_bytes(answered or pickle.dumps(Answer([], failed=down)))
    os.killpg(0, signal.SIGKILL)


def _cut_off(kept: int) -> None:
    """Close all sockets and pipes but the file `kept`, and take the terminal away."""
    dead, peer = socket.socketpair()
    peer.close()
    nothing = os.open(os.devnull, os.O_RDWR)
    for file in list(Path("/dev/fd").iterdir()):
        opened = int(file.name)
        with contextlib.suppress(OSError):
            mode = os.fstat(opened).st_mode
            is_file = stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISCHR(mode)
            if opened in STANDARD:
                os.dup2(nothing, opened)
            elif not is_file and opened not in (kept, dead.fileno()):
                os.dup2(dead.fileno(), opened, inheritable=False)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = sys.stderr = os.fdopen(1, "w", closefd=False)


def _answer(call: Call, generators: list[Any] | None, request: bytes, pipe: Connection) -> None:
    """Run the mechanism on the work of a request, and send an `Answer` to the pipe."""
    pipe.send_bytes(_outputs_sent(call, generators or [], request))


def _outputs_sent(call: Call, generators: list[Any], request: bytes) -> bytes:
    """Reseed generators, run the mechanism on a request, and return a pickled `Answer`.

    If the request says so, the mechanism's module is imported anew first. Errors are in the answer.
    """
    asked: list[str] = []
    files: list[str] = []
    try:
        place, sequence, order = pickle.loads(request)
        if place is not None:
            _seed([NUMPYS, PYTHONS, *generators], sequence)  # the import may draw
            with record_opened_files() as opened:
                call = replace(call, mechanism=import_anew(place))
            asked = [file for file in opened if file == ASKED]
            generators = _generators_anywhere()
        signature, runner, works, seconds = pickle.loads(order)
        used = call.with_signature(*signature)
        _seed(generators, sequence)
        deadline = Deadline(seconds)
        with record_opened_files() as files:
            outputs = [
                join_outputs([done.outputs for done in runner.run(used, dataset, chunks, deadline)])
                for dataset, chunks in works
            ]
        return pickle_data(Answer(outputs, files=[*asked, *files]))
    except OutOfTime as out:
        return pickle.dumps(Answer([], out.stack, files=[*asked, *files]))
    except BaseException as raised:  # by the mechanism, or because outputs cannot be pickled
        failed = f"{type(raised).__name__}: {raised}"
        return pickle.dumps(Answer([], None, failed, [*asked, *files]))


def _seed(generators: list[Any], sequence: np.random.SeedSequence) -> None:
    """Reseed each generator from a stream of its own; leave those that cannot be reseeded."""
    for generator, own in zip(generators, sequence.spawn(len(generators)), strict=True):
        with contextlib.suppress(Exception):  # such as of a class derived from one
            reseed(generator, own)


def _generators_anywhere() -> list[Any]:
    """Return all random generators of this process that the garbage collector knows."""
    return [obj for obj in gc.get_objects() if issubclass(type(obj), GENERATORS)]


def find_files_written(
    call: Call,
    runner: Runner,
    dataset: Input,
    deadline: Deadline,
    seconds: float,
    start: Start,
    since: float,
) -> list[str]:
    """Run the mechanism once in a new process; return the files it read that were written lately.

    Lately means at the time `since` or later, in seconds since 1970. Files that it made itself and
    empty files are left out. Errors are those of `Origin.run`.
    """
    with contextlib.closing(Origin(call)) as origin:
        chunks = [Chunk(1, (Purpose.COPY, 0))]
        origin.run(call, runner, [(dataset, chunks)], deadline, seconds, start=start)
    return [file for file in sorted(origin.files) if _written_at(file) >= since]


def _written_at(file: str) -> float:
    """Return when a file was written, in seconds since 1970; 0 if it is empty or missing."""
    try:
        found = Path(file).stat()
    except (OSError, ValueError):
        return 0.0
    holds = stat.S_ISDIR(found.st_mode) or (stat.S_ISREG(found.st_mode) and found.st_size > 0)
    return found.st_mtime if holds else 0.0  # devices, and what tells of processes, hold nothing


@dataclass(slots=True, eq=False)
class FirstState:
    """A mechanism's state before its first run, at the time `since`: a snapshot, and a process."""

    pristine: Pristine
    origin: Origin | None = None
    since: float = field(default_factory=since_1970)

    def keep_waiting(self) -> None:
        """Let the process wait for later audits; end processes beyond `MAX_WAITING`."""
        if self not in _WAITING:
            _WAITING.append(self)
        while len(_WAITING) > MAX_WAITING:
            _WAITING.popleft().end_process()

    def end_process(self) -> None:
        """End the process, if there is one."""
        origin, self.origin = self.origin, None
        if origin is not None:
            origin.close()


_WAITING: deque[FirstState] = deque()
"""The states whose processes wait for later audits, the one that waits longest first."""
_KNOWN: dict[int, tuple[weakref.ref[Any], FirstState]] = {}
"""By the identity of a function, or of the object that it is a method of, while that lives."""


def first_state(mechanism: Any, pristine: Pristine) -> FirstState:
    """Remember the first state of a mechanism, and return it: `pristine`, unless one is known.

    A state of more than `MAX_WAITING_BYTES` is returned, but not remembered.
    """
    owner = mechanism.__self__ if isinstance(mechanism, types.MethodType) else mechanism
    known = _KNOWN.get(id(owner))
    if known is not None and known[0]() is owner:
        return known[1]
    state = FirstState(pristine)
    if pristine.size > MAX_WAITING_BYTES:
        return state

    with suppress(TypeError):  # else the next audit takes what it finds for the first state
        # Alarms wait for `finalize`; in a plain callback, Python would drop what they raise.
        weakref.finalize(owner, _forget, id(owner)).atexit = False
        _KNOWN[id(owner)] = weakref.ref(owner), state
    return state


def _forget(number: int) -> None:
    """Forget the first state of a mechanism whose owner is gone, and end its process."""
    if known := _KNOWN.pop(number, None):
        known[1].end_process()
