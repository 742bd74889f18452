"""Mechanisms outside of Python: `dp_command` makes one of a program, `dp_url` one of a service."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_dp.basics.errors import invalid
from pytest_dp.black_boxes.boxes import Program, Service


def dp_command(
    command: Sequence[str | os.PathLike[str]],
    *,
    send: str | Callable[[Any], str | bytes] = "json",
    read: str | Callable[[str], Any] = "value",
    seconds: float = 10.0,
    at_once: int | None = None,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
) -> Program:
    """Return a mechanism that is a program: data to its stdin, its output from stdout.

    Raises ClaimError if an argument is invalid; the program is not started yet.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments. ``{name}`` in one of them is the parameter of that name that
        a claim gives (``params=``), and ``{size}`` a number of outputs to print, one a line or as a
        JSON list.
    send : {"json", "csv"} or callable, default "json"
        How data are written: rows of a table as objects; a function makes text or bytes of them.
    read : {"value", "text"} or callable, default "value"
        How the output is read: as JSON, a number, or else text; or as text; or by a function.
    seconds : float, default 10.0
        Time limit of one run. A longer run ends the audit.
    at_once : int, optional
        With ``vectorized="size"``, how many runs go on at once; one on each core by default.
    cwd : path, optional
        Working directory of the program; by default the current one.
    env : mapping, optional
        Variables of the environment to add.

    Returns
    -------
    Program
        A mechanism for `dp_check`, `dp_claim` and `audit`.
    """
    parts = [] if isinstance(command, str | bytes) else [os.fspath(part) for part in command]
    if not parts or not all(isinstance(part, str) for part in parts):
        allowed = "Give a list: the program, and each argument, as in ['python', 'count.py']."
        raise invalid("command", command, allowed)
    where = None if cwd is None else os.fspath(cwd)
    return Program(send, read, seconds, at_once, tuple(parts), where, dict(env or {}))


def dp_url(
    url: str,
    *,
    send: str | Callable[[Any], str | bytes] = "json",
    read: str | Callable[[str], Any] = "value",
    seconds: float = 10.0,
    at_once: int | None = None,
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
) -> Service:
    """Return a mechanism that is a service: it gets data in a request and answers the output.

    Connections are kept, and tried again for ``seconds`` if nobody listens; no request is sent
    twice. Raises ClaimError if an argument is invalid; the service is not asked yet.

    Parameters
    ----------
    url : str
        Where it listens. In its path or query, ``{name}`` and ``{size}`` are as in `dp_command`.
    send, read, at_once
        As of ``dp_command``.
    seconds : float, default 10.0
        How long the service may stay silent. A longer silence ends the audit.
    method : str, default "POST"
        The method of the request.
    headers : mapping, optional
        Headers to add, such as ``Authorization``.

    Returns
    -------
    Service
        A mechanism for `dp_check`, `dp_claim` and `audit`.
    """
    if not isinstance(url, str) or not re.match("https?://[^/?{}]+(/|[?]|$)", url):
        allowed = "Give an address such as 'http://localhost:8000/count?eps={eps}'."
        raise invalid("url", url, allowed)
    return Service(send, read, seconds, at_once, url, method, dict(headers or {}))
