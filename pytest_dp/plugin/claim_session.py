"""The state of one run of pytest: what the hooks of this plugin leave for each other."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pytest

PLUGIN = "dp_session"
"""The name under which pytest knows the `ClaimSession`."""


@dataclass(slots=True)
class Audits:
    """The audits of one test."""

    made: list[tuple[int, Any, Any, Any]] = field(default_factory=list)
    """The number of each audit, the mechanism, the claim as written, and the result."""
    records: list[tuple[Any, Any]] = field(default_factory=list)
    """The record of each audit that ended, and its result."""
    calls: int = 0
    """How often ``dp_check`` was called."""
    claim: Any = None
    """The claim of the last call."""
    is_uncalled: bool = False
    """Whether the test took ``dp_check`` and has not called it."""
    unaudited: str = ""
    """The module or class around the test with a marker that no test makes use of."""


class ClaimSession:
    """The state of a run, from the time when pytest loads this plugin.

    Attributes
    ----------
    parser : pytest.Parser
        It knows what options are called, and which of them take values.
    profiles : tuple or None
        The profiles in use as pytest started; None if their module was not loaded.
    profile : str
        The name of the profile of this run, where it says anything.
    stderr : int or None
        A copy of the file descriptor of errors, from before pytest captured it.
    marked : list of Collector
        Modules and classes with a claim as their marker.
    contents : dict
        Of a module or class: all tests and classes in it; None where that is not known.
    searched : set of Collector
        Modules of which pytest looked at each name, which it does not for doctests.
    audits : dict
        The `Audits` of each test.
    typed : frozenset of str, or None
        The result of `selection.typed_options`, once it is known.
    """

    def __init__(self, parser: pytest.Parser) -> None:
        self.parser = parser
        profiles = sys.modules.get("pytest_dp.claiming.profiles")
        self.profiles = profiles.in_use() if profiles is not None else None
        self.profile = ""
        self.stderr: int | None = None
        self.marked: list[pytest.Collector] = []
        self.contents: dict[Any, list[pytest.Item | pytest.Collector] | None] = {}
        self.searched: set[pytest.Collector] = set()
        self.audits: dict[pytest.Item, Audits] = {}
        self.typed: frozenset[str] | None = None
        self._clean_up: Any = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Keep a way to write to the terminal while pytest captures what tests print."""
        self._clean_up = config.add_cleanup
        with suppress(OSError):  # there is none
            self.stderr = os.dup(2)
            config.add_cleanup(partial(os.close, self.stderr))

    @cached_property
    def collected_file(self) -> Path | None:
        """The file by which workers of pytest-xdist say what they collect; None without one."""
        with suppress(OSError):
            folder = tempfile.TemporaryDirectory(prefix="pytest-dp-")
            self._clean_up(folder.cleanup)
            return Path(folder.name, "claims.json")
        return None


def claim_session_of(config: pytest.Config) -> ClaimSession:
    """Return the state of a run."""
    session: Any = config.pluginmanager.get_plugin(PLUGIN)
    assert isinstance(session, ClaimSession)
    return session


def audits_of(item: pytest.Item) -> Audits:
    """Return the audits of a test."""
    return claim_session_of(item.config).audits.setdefault(item, Audits())
