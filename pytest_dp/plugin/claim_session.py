"""The state of one run of pytest, and how its options are read.

Every run of pytest loads this module, so it imports next to nothing.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pytest

from pytest_dp.claiming.setting_fields import OPTIONS

MARKER = "dp_claim"
PLUGIN = "dp_session"
"""The name under which pytest knows the `ClaimSession`."""
_CLAIMS = "__dp_claims__"


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
    profile : str
        The name of the profile of this run, where it says anything.
    stderr : int or None
        A copy of the file descriptor of errors, from before pytest captured it.
    searched : set of Collector
        Modules of which pytest looked at each name, which it does not for doctests.
    audits : dict
        The `Audits` of each test.
    """

    def __init__(self, parser: pytest.Parser) -> None:
        self.parser = parser
        self.profile = ""
        self.stderr: int | None = None
        self.searched: set[pytest.Collector] = set()
        self.audits: dict[pytest.Item, Audits] = {}
        self._config: Any = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Keep a way to write to the terminal while pytest captures what tests print."""
        self._config = config
        with suppress(OSError):  # there is none
            self.stderr = os.dup(2)
            config.add_cleanup(partial(os.close, self.stderr))

    @cached_property
    def typed(self) -> frozenset[str]:
        """The names of options that are not as the ini file with its ``addopts`` says."""
        by_files = vars(self.parser.parse_known_args(self._config.getini("addopts")))
        given = vars(self._config.option).items()
        return frozenset(name for name, value in given if value != by_files.get(name))


def claim_session_of(config: pytest.Config) -> ClaimSession:
    """Return the state of a run."""
    session: Any = config.pluginmanager.get_plugin(PLUGIN)
    assert isinstance(session, ClaimSession)
    return session


def audits_of(item: pytest.Item) -> Audits:
    """Return the audits of a test."""
    return claim_session_of(item.config).audits.setdefault(item, Audits())


def ini(config: pytest.Config, name: str) -> Any:
    """Return the value of an ini key; None if it is not set."""
    try:
        return config.getini(f"dp_{name}")
    except (pytest.UsageError, TypeError, ValueError) as error:
        is_flag = name in OPTIONS and OPTIONS[name].kind == "flag"
        allowed = " Allowed: true or false." if is_flag else ""
        raise pytest.UsageError(f"ini key dp_{name}: {error}.{allowed}") from None


def option_or_ini(config: pytest.Config, name: str) -> Any:
    """Return the value of an option or, if it is not given, of its ini key."""
    option = getattr(config.option, f"dp_{name}", None)
    return ini(config, name) if option is None else option


def claims_path(config: pytest.Config) -> Path:
    """Return the file of this run: beside the ini file, or at the root of the tests.

    Its name is fixed: else a change of settings could put a file of weaker claims in its place.
    """
    root = config.inipath.parent if config.inipath is not None else config.rootpath
    return root / "dp-claims.json"


def reports(config: pytest.Config) -> list[Path]:
    """Return the files of the options, and those of the ini key, which are relative to the root."""
    typed = map(Path, getattr(config.option, "dp_report", None) or ())
    return [*typed, *(config.rootpath / line for line in ini(config, "report") or ())]


def has_claims(obj: object) -> bool:
    """Return whether an object has a claim or, if it is a class, something in its body has one.

    Asks carefully: mocks make up any attribute, and proxies may raise anything when touched.
    """
    try:
        if type(getattr(obj, _CLAIMS, None)) is tuple:
            return True
        inside = list(vars(obj).values()) if issubclass(type(obj), type) else []
        inside += [value.__func__ for value in inside if type(value) in (classmethod, staticmethod)]
        return any(type(getattr(value, _CLAIMS, None)) is tuple for value in inside)
    except Exception:  # whatever it raises, it was not made by @dp_claim
        return False
