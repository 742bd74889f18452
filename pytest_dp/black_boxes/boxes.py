"""Mechanisms outside of this process: a program, or a service, asked anew for each run.

An answer is an output, and so is an exit code, an HTTP status other than success, or a lost
connection: no request is sent twice. Errors that say nothing of privacy end the audit
(`CannotRun`): no such program, no service that listens, no answer in time.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import signal
import ssl
import subprocess
import traceback
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from multiprocessing.connection import wait
from pathlib import Path, PurePath
from time import sleep
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import UUID

from pytest_dp.basics import clocks
from pytest_dp.basics.errors import CannotRun, invalid
from pytest_dp.basics.reprs import SHORT_LENGTH, on_one_line
from pytest_dp.data.equality import is_missing
from pytest_dp.data.types import type_of
from pytest_dp.outputs.raised import Raised

MAX_STDERR_LINES = 8
"""Last lines of a program's stderr that an error shows. Fewer may miss the cause."""
MAX_ANSWER_LENGTH = 2_000
"""Characters of an answer that an error shows. More hide the rest; fewer miss the cause."""
RETRY_SECONDS = 0.1
"""Seconds between two attempts to reach a service. With more, audits wait longer."""
_SENT = {"json": "application/json", "csv": "text/csv"}
_READ = ("value", "text")
_OWN = "; give send= a function that makes text of the data"


class ProgramError(RuntimeError):
    """A program ended with an exit code other than 0, or by a signal."""

    __slots__ = ("stderr",)  # so that the log is no part of the output

    def __init__(self, code: int, stderr: bytes = b"") -> None:
        how = f"exit code {code}"
        if code < 0:
            with suppress(ValueError):
                how = f"ended by {signal.Signals(-code).name}"
        super().__init__(how)
        self.stderr = stderr

    __notes__ = property(lambda self: _last_lines(self.stderr))


def _last_lines(stderr: bytes) -> list[str]:
    """Return a heading and the last lines of a program's stderr; a remark if stderr is empty."""
    last = decode_answer(stderr).rstrip().splitlines()[-MAX_STDERR_LINES:]
    return ["The last lines of its stderr:", *last] if last else ["Its stderr is empty."]


class HTTPError(RuntimeError):
    """A service answered with another status than success."""


class ConnectionLost(RuntimeError):  # noqa: N818  what happened
    """A service took a request, and ended the connection without an answer."""


@dataclass(eq=False)
class BlackBox:
    """A mechanism outside of this process: the base of programs and services.

    `send` encodes the data, `read` reads an answer. A run may take `seconds`, and `at_once` runs go
    on at the same time; None for one on each core.
    """

    send: str | Callable[[Any], str | bytes]
    read: str | Callable[[str], Any]
    seconds: float
    at_once: int | None

    def __post_init__(self) -> None:
        """Raise ClaimError if `send`, `read`, `seconds` or `at_once` is invalid."""
        if self.send not in _SENT and not callable(self.send):
            allowed = "Valid are 'json', 'csv', or a function that makes text of the data."
            raise invalid("send", self.send, allowed)
        if self.read not in _READ and not callable(self.read):
            allowed = "Valid are 'value', 'text', or a function of the text, such as json.loads."
            raise invalid("read", self.read, allowed)
        number = isinstance(self.seconds, int | float) and self.seconds is not True
        if not number or not 0 < self.seconds < math.inf:
            raise invalid("seconds", self.seconds, "Give the seconds that an answer may take.")
        if self.at_once is not None and (type(self.at_once) is not int or self.at_once < 1):
            allowed = "Give how many runs go on at once, or None for one on each core."
            raise invalid("at_once", self.at_once, allowed)

    def __reduce__(self) -> Any:
        """Return how to pickle the mechanism: by its arguments, without its connections."""
        return type(self), tuple(getattr(self, part.name) for part in fields(self) if part.init)

    def __call__(self, data: Any, /, *, size: int | None = None, **params: Any) -> Any:
        """Run the mechanism and return one output; with a `size`, a list of so many outputs.

        A request with ``{size}`` in it asks for all outputs at once; otherwise each output is a
        request, and a run that raises gives a `Raised`. Raises CannotRun if a parameter has no
        place in the request, and the errors of `_ask`.
        """
        sent = encode_data(self.send, data)
        for name in params:
            if not self._has_place_for(name):
                raise CannotRun(f"params has {name!r}, but {self!r} has no {{{name}}} for it.")
        if self._has_place_for("size"):
            answer = self._ask(sent, {**params, "size": 1 if size is None else size})
            outputs = self._read_outputs(answer)
            return outputs[0] if size is None and len(outputs) == 1 else outputs
        if size is None:
            return self._read_output(self._ask(sent, params))
        with ThreadPoolExecutor(self.at_once or os.cpu_count()) as threads:
            return list(threads.map(lambda _: self._run_or_raised(sent, params), range(size)))

    def _run_or_raised(self, sent: bytes, params: Mapping[str, Any]) -> Any:
        """Run the mechanism once; return the output, or a `Raised` for any error but CannotRun."""
        try:
            return self._read_output(self._ask(sent, params))
        except CannotRun:
            raise
        except Exception as error:  # a function that reads may raise anything
            return Raised.from_error(error, "".join(traceback.format_exception(error)))

    def _read_output(self, answer: str) -> Any:
        """Return an answer as one output: as value, as text, or as the function `read` reads it."""
        if callable(self.read):
            return self.read(answer)
        return parse_value(answer) if self.read == "value" else answer

    def _read_outputs(self, answer: str) -> list[Any]:
        """Return the outputs in an answer: a JSON list if `read` is "value", else one a line."""
        if self.read == "value":
            value = parse_value(answer)
            if isinstance(value, list):
                return value
        return [self._read_output(line) for line in answer.splitlines()]

    @abstractmethod
    def _has_place_for(self, name: str) -> bool:
        """Return whether a parameter has a place in the request, such as ``{eps}``."""

    @abstractmethod
    def _ask(self, sent: bytes, params: Mapping[str, Any]) -> str:
        """Send encoded data with parameters, and return the answer of one run as text.

        Raises CannotRun if nobody answers in time; ProgramError, HTTPError or ConnectionLost if the
        run failed, which is an output.
        """


@dataclass(eq=False)
class Program(BlackBox):
    """A program that is started for each run."""

    command: tuple[str, ...]
    cwd: str | None
    env: Mapping[str, str]

    def __repr__(self) -> str:
        return f"dp_command({on_one_line(list(self.command), SHORT_LENGTH)})"

    def _has_place_for(self, name: str) -> bool:
        return any(f"{{{name}}}" in part for part in self.command)

    def _ask(self, sent: bytes, params: Mapping[str, Any]) -> str:
        """Run the program and return its stdout; raise ProgramError if its exit code is not 0.

        Raises CannotRun if the program cannot be started, or runs for more than `seconds`.
        """
        command = [_fill_in(part, params) for part in self.command]
        try:
            done = subprocess.run(
                command,
                input=sent,
                capture_output=True,
                timeout=self.seconds,
                check=False,
                cwd=self.cwd,
                env={**os.environ, **self.env},
            )
        except subprocess.TimeoutExpired as slow:
            last = _last_lines(slow.stderr or b"")
            raise CannotRun("\n".join([_timeout_message(self), *last])) from None
        except OSError as error:
            raise CannotRun(
                f"{self!r} cannot be started ({error}). Give the path of a program, absolute or "
                f"seen from {self.cwd or Path.cwd()}, and its arguments, each a text of its own."
            ) from None
        if done.returncode:
            raise ProgramError(done.returncode, done.stderr)
        return decode_answer(done.stdout)


@dataclass(eq=False)
class Service(BlackBox):
    """A service that answers requests over HTTP."""

    url: str
    method: str
    headers: Mapping[str, str]
    _idle: deque[tuple[int, HTTPConnection]] = field(default_factory=deque, init=False)
    """Connections that wait for the next request, with the process that opened them."""

    def __repr__(self) -> str:
        return f"dp_url({self.url!r})"

    def __del__(self) -> None:
        while self._idle:
            self._idle.pop()[1].close()

    def _has_place_for(self, name: str) -> bool:
        return f"{{{name}}}" in self.url

    def _ask(self, sent: bytes, params: Mapping[str, Any]) -> str:
        """Send a request and return the text of the answer; keep the connection for later.

        Raises HTTPError for a status outside of 200 to 299, ConnectionLost if the connection ends
        without an answer, and CannotRun if there is no connection or no answer in `seconds`.
        """
        quoted = {name: quote(str(value), safe="") for name, value in params.items()}
        parts = urlsplit(_fill_in(self.url, quoted))
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        kind = {"Content-Type": _SENT[self.send]} if self.send in _SENT else {}
        connection = self._connect()
        try:
            connection.request(self.method, target, sent, {**kind, **self.headers})
            answer = connection.getresponse()
            charset = answer.headers.get_content_charset("utf-8")
            text = decode_answer(answer.read(), charset)
        except TimeoutError:
            connection.close()
            raise CannotRun(_timeout_message(self)) from None
        except (OSError, HTTPException) as error:
            connection.close()
            raise ConnectionLost(type(error).__name__) from None
        except BaseException:
            connection.close()
            raise
        self._idle.append((os.getpid(), connection))
        if not 200 <= answer.status < 300:
            said = " ".join(text.split())[:MAX_ANSWER_LENGTH]
            raise HTTPError(f"{answer.status} {answer.reason}" + (f": {said}" if said else ""))
        return text

    def _connect(self) -> HTTPConnection:
        """Return an idle or new connection; raise CannotRun if there is none within `seconds`."""
        while self._idle:
            with suppress(IndexError):  # taken by another thread
                process, kept = self._idle.pop()
                if process == os.getpid() and kept.sock and not _is_over(kept):
                    return kept
                kept.close()
        parts = urlsplit(self.url)
        secure = parts.scheme == "https"
        connection = (HTTPSConnection if secure else HTTPConnection)(
            str(parts.hostname), parts.port, timeout=self.seconds
        )
        until = clocks.seconds() + self.seconds
        while True:
            try:
                connection.connect()
            except OSError as error:
                if clocks.seconds() < until and not isinstance(error, ssl.SSLError):
                    sleep(RETRY_SECONDS)
                    continue
                raise CannotRun(
                    f"{self!r}: no connection to {parts.netloc} in {self.seconds:g} s ({error}). "
                    "Start the service before, as in a fixture of the test."
                ) from None
            return connection


def _fill_in(template: str, params: Mapping[str, Any]) -> str:
    """Return a text with each ``{name}`` replaced by the value of the parameter `name`."""
    places = {f"{{{name}}}": str(value) for name, value in params.items()}
    if not places:
        return template
    return re.sub("|".join(map(re.escape, places)), lambda place: places[place.group()], template)


def _is_over(connection: HTTPConnection) -> bool:
    """Return whether the other side closed an idle connection, or sent unexpected data."""
    return bool(wait([connection.sock], 0))


def _timeout_message(box: BlackBox) -> str:
    """Return the message of a run that gave no answer in time."""
    return (
        f"{box!r} gave no answer in {box.seconds:g} s, so there is no verdict on privacy: how long "
        "a run takes is not audited. Give it more time with seconds=, or less data."
    )


def encode_data(send: str | Callable[[Any], str | bytes], data: Any) -> bytes:
    """Return data as bytes in the form `send`: as JSON, as CSV, or as a function encodes them.

    Raises TypeError or ValueError if JSON or CSV has no form for the data, and any error of the
    function.
    """
    if callable(send):
        made = send(data)
        return made if isinstance(made, bytes) else made.encode()
    if send == "csv":
        return _csv(data).encode()
    try:
        return json.dumps(json_value(data), allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:  # infinities, and keys that are no text
        raise type(error)(f"JSON has no form for these data: {error}{_OWN}") from None


def json_value(value: Any) -> Any:
    """Return a value as numbers, texts, lists and dicts, which JSON has.

    Rows of tables become dicts, missing values None, dates ISO 8601, and enum members their values.
    Raises TypeError if there is no such form. Infinite numbers stay as they are.
    """
    if isinstance(value, Enum):
        return json_value(value.value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {key: json_value(part) for key, part in value.items()}
    kind = type_of(value)
    if kind is not None:
        columns, records = kind.columns(value), map(json_value, kind.records(value))
        return [dict(zip(columns, row, strict=True)) for row in records] if columns else [*records]
    if isinstance(value, tuple):  # a named one
        return list(map(json_value, value))
    if is_dataclass(value) and not isinstance(value, type):
        return json_value(asdict(value))
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:
    """Return a date or library scalar as number or text, None if missing; else raise TypeError."""
    if is_missing(value):
        return None
    if isinstance(value, float):
        return float(value)
    for method in ("isoformat", "item"):  # of dates, of scalars of numpy
        if hasattr(value, method):
            return json_value(getattr(value, method)())
    if isinstance(value, Decimal | UUID | PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} is neither a number nor text")


def _csv(data: Any) -> str:
    """Return a dataset as CSV text, headed by names if it has some; raise TypeError for others."""
    kind = type_of(data)
    if kind is None:
        raise TypeError(f"CSV is of datasets, not of {type(data).__name__}{_OWN}")
    columns, rows = kind.columns(data), list(map(json_value, kind.records(data)))
    if columns is None and rows and all(isinstance(row, dict) for row in rows):
        columns = list(dict.fromkeys(name for row in rows for name in row))
        rows = [[row.get(name) for name in columns] for row in rows]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    if columns is not None:
        writer.writerow(columns)
    writer.writerows(row if isinstance(row, list) else [row] for row in rows)
    return file.getvalue()


def decode_answer(answer: bytes, charset: str = "utf-8") -> str:
    """Decode an answer to text; bytes that are no text become escapes with a backslash."""
    return answer.decode(charset, "backslashreplace")


def parse_value(text: str) -> Any:
    """Return a text as the JSON in it, else as a float, else as the text without its line ends."""
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    with suppress(ValueError):
        if "_" not in text:  # which is a digit to Python alone
            return float(text)
    return text.rstrip("\r\n")
