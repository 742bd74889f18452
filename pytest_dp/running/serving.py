"""A server in a new interpreter: it makes mechanisms, and runs them on request.

It ends, with all that it started, once the process that asks is gone, however that ended.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import stat
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pytest_dp.running.alarm import HUNG_SECONDS
from pytest_dp.running.calling import Call
from pytest_dp.running.chunks import pickle_data
from pytest_dp.running.copies import Pristine
from pytest_dp.running.forked import Answer, Origin, generators_anywhere, outputs_sent
from pytest_dp.running.locating import Finder, Place, fetch
from pytest_dp.running.opened_files import ASKED

LENGTH_BYTES = 8
"""In front of each message: its length. Given by the size of a 64-bit number."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an interpreter makes a mechanism: by its place in a module, or else by its content."""

    place: Place | None
    content: bytes
    """The mechanism, or its `Pristine`; empty if it has a place."""
    params: bytes
    rng: str | None
    size: str | None
    path: list[str]
    files: dict[str, tuple[str, bool]]
    environment: dict[str, str]
    folder: str

    def make(self) -> Call:
        """Return the call of the mechanism, in the other interpreter."""
        sys.path[:] = self.path
        if self.folder:
            os.chdir(self.folder)
        if dict(os.environ) != self.environment:
            os.environ.clear()
            os.environ.update(self.environment)
        sys.meta_path.insert(0, Finder(self.files))
        sys.meta_path.append(Finder(self.files, parents=True))
        if self.place is not None:
            mechanism, params = fetch(self.place), pickle.loads(self.params)
        else:
            made = pickle.loads(self.content)
            mechanism, params = made.fresh()[0] if isinstance(made, Pristine) else made
        return Call(mechanism, {}, self.rng, self.size).of(mechanism, params)


def send(file: BinaryIO | Any, message: bytes) -> None:
    """Write a message."""
    file.write(len(message).to_bytes(LENGTH_BYTES, "little") + message)
    file.flush()


def receive(file: BinaryIO | Any) -> bytes | None:
    """Return the next message, or None at the end."""
    try:
        length = int.from_bytes(file.read(LENGTH_BYTES), "little")
        message: bytes = file.read(length)
    except (OSError, ValueError):
        return None
    return message if length and len(message) == length else None


def serve() -> None:
    """In the other interpreter: answer requests until the other end is closed."""
    requests_file, answers_file = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(nothing, standard)
    own = {requests_file.fileno(), answers_file.fileno()}
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests_file, requests), daemon=True).start()
    server = _Server(own)
    while True:
        key, kind, rest = pickle.loads(requests.get())
        send(answers_file, server.make(key, rest) if kind == "make" else server.run(key, *rest))


def _listen(file: BinaryIO, requests: queue.SimpleQueue[bytes]) -> None:
    """Pass requests on; once the other process is gone, end this one with all that it started."""
    while (request := receive(file)) is not None:
        requests.put(request)
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


class _Server:
    """The mechanisms that an interpreter has made; `own` are its files that lead to the other."""

    def __init__(self, own: set[int]) -> None:
        self._own = own
        self._made: dict[bytes, tuple[Call, Origin | None]] = {}

    def make(self, key: bytes, recipe: bytes) -> bytes:
        """Make a mechanism; answer why it cannot be made, and whether starts of it are forks."""
        origin: Origin | None = None
        try:
            call = pickle.loads(recipe).make()
            if not self._is_connected():
                origin = Origin(call)
            if origin is not None and (origin.reason or origin.lacks_threads):
                origin.close()
                origin = None
            self._made[key] = call, origin
        except BaseException as error:  # whatever the module raises, SystemExit among them
            line = str(error).strip().partition("\n")[0]
            return pickle.dumps((f"{type(error).__name__}: {line}", False))
        return pickle.dumps(("", origin is not None))

    def run(self, key: bytes, seeds_all: bool, work: bytes, seconds: float) -> bytes:
        """Answer with outputs: of a process that is forked, or of this one."""
        call, origin = self._made[key]
        if origin is None:
            sent = outputs_sent(call, generators_anywhere() if seeds_all else [], work)
            if not self._is_connected():
                return sent
            given: Answer = pickle.loads(sent)
            return pickle_data(given._replace(files=[*given.files, ASKED]))
        answer = origin.ask(bytes([seeds_all]) + work, seconds + HUNG_SECONDS)
        return answer or pickle.dumps(Answer([], failed=origin.reason))

    def _is_connected(self) -> bool:
        """Return whether anything that is open leads to another process: a socket or a pipe."""
        folder = Path("/dev/fd")
        for file in list(folder.iterdir()) if folder.exists() else []:
            with contextlib.suppress(OSError):  # the one by which they are listed
                mode = os.fstat(int(file.name)).st_mode
                leads = stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)
                if leads and int(file.name) not in self._own | {2} | self._of_origins():
                    return True
        return False

    def _of_origins(self) -> set[int]:
        return {origin.fileno() for _, origin in self._made.values() if origin is not None}
