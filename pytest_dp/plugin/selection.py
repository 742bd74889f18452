"""Which claims a run is about: what the command line asks for, and what files leave out."""

from __future__ import annotations

import os
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

import pytest

from pytest_dp.plugin.claim_session import claim_session_of

_SHARES = frozenset(("splits", "group", "shard_id", "num_shards"))
_SELECTING = _SHARES | {"keyword", "deselect", "lf", "stepwise", "stepwise_skip"}
_SELECTING |= {"markexpr", "testmon", "picked"}
"""Options that leave tests out of one run, of pytest and of common plugins."""


def typed_options(config: pytest.Config) -> frozenset[str]:
    """Return the names in ``config.option`` of options that are not as files say.

    Files are the ini file with its ``addopts``.
    """
    session = claim_session_of(config)
    if session.typed is None:
        by_files = vars(session.parser.parse_known_args(config.getini("addopts")))
        given = vars(config.option).items()
        session.typed = frozenset(name for name, v in given if v != by_files.get(name))
    return session.typed


def leaves_out(config: pytest.Config, *, deselected: bool) -> bool:
    """Return whether the command line itself may leave out a test that was collected.

    `deselected` is whether it was left out with notice; plugins that share tests out give none.
    """
    return not typed_options(config).isdisjoint(_SELECTING if deselected else _SHARES)


def scope(config: pytest.Config, folder: Path) -> Callable[[str], bool]:
    """Return a function that says whether this run should collect a claim, by its id."""
    if not typed_options(config).isdisjoint(("lf", "pyargs")):
        return lambda name: False  # noqa: ARG005  whole files are left out, nobody knows which
    here = config.invocation_params.dir
    ignored = [
        here / path for path in (config.option.ignore or []) if "ignore" in typed_options(config)
    ]
    globs = config.option.ignore_glob or [] if "ignore_glob" in typed_options(config) else []
    everything = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    wanted = [arg.partition("::") for arg in config.args]

    def is_in_scope(name: str) -> bool:
        path, _, test = name.partition("::")
        file = Path(os.path.normpath(folder / path))
        if any(_below(file, other) for other in ignored) or any(
            fnmatch(str(file), str(here / pattern)) for pattern in globs
        ):
            return False
        return everything or any(
            _below(file, here / given) and _inside(test, part) for given, _, part in wanted
        )

    return is_in_scope


def _below(file: Path, other: Path) -> bool:
    other = Path(os.path.normpath(other))
    return file == other or other in file.parents


def _inside(test: str, part: str) -> bool:
    return not part or test == part or test.startswith((f"{part}::", f"{part}["))
