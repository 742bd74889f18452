"""Which claims a run is about: what the command line asks for, and what files leave out."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

TYPED = "dp_command_line"
"""Under this name, workers are told the command line of the process that started them."""
_SHARES = ("--splits", "--group", "--shard-id", "--num-shards")
_SELECTING = (
    *("--deselect", "--lf", "--last-failed", "--sw", "--stepwise", "--sw-skip", "--stepwise-skip"),
    *("--testmon", "--picked", *_SHARES),
)
"""Options that leave tests out of one run, of pytest and of common plugins; beside -k and -m."""


def command_line(config: pytest.Config) -> list[str]:
    """What was given for this run, without what the ini file adds."""
    added = shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))
    return [str(arg) for arg in config.invocation_params.args] + added


def _given(words: Sequence[str], *flags: str) -> bool:
    return any(word.partition("=")[0] in flags for word in words)


def leaves_out(config: pytest.Config, marks: Iterable[str], *, deselected: bool) -> bool:
    """Whether the command line itself leaves out a test that was collected, by all we know.

    `deselected` is whether it was left out with notice; plugins that share tests out give none.
    """
    words = command_line(config)
    if not deselected:
        return _given(words, *_SHARES)
    if _given(words, *_SELECTING) or _short(words, "k"):
        return True
    return _short(words, "m") and not _by_marks(config, set(marks))


def _short(words: Sequence[str], letter: str) -> bool:
    return any(re.match(rf"-[a-zA-Z]*{letter}", word) for word in words)


def scope(config: pytest.Config, folder: Path) -> Callable[[str], bool]:
    """Whether a claim, by its id relative to `folder`, was to be collected by this run."""
    words = command_line(config)
    if _given(words, "--lf", "--last-failed", "--pyargs"):
        return lambda name: False  # noqa: ARG005  whole files are left out, nobody knows which
    here = config.invocation_params.dir
    ignored = [here / path for path in (config.option.ignore or []) if _given(words, "--ignore")]
    globs = config.option.ignore_glob or [] if _given(words, "--ignore-glob") else []
    everything = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    wanted = [arg.partition("::") for arg in config.args]

    def expected(name: str) -> bool:
        path, _, test = name.partition("::")
        file = Path(os.path.normpath(folder / path))
        if any(_below(file, other) for other in ignored) or any(
            fnmatch(str(file), str(here / pattern)) for pattern in globs
        ):
            return False
        return everything or any(
            _below(file, here / given) and _inside(test, part) for given, _, part in wanted
        )

    return expected


def _below(file: Path, other: Path) -> bool:
    other = Path(os.path.normpath(other))
    return file == other or other in file.parents


def _inside(test: str, part: str) -> bool:
    return not part or test == part or test.startswith((f"{part}::", f"{part}["))


def left_out_by_marks(config: pytest.Config, marks: Iterable[str], recorded: Iterable[str]) -> str:
    """Why ``-m`` leaves a claim out, if it did not by the marks on record; else empty."""
    now, before = set(marks), set(recorded)
    if _by_marks(config, now) or not _by_marks(config, before | now & BUILTIN):
        return ""
    new = ", ".join(sorted(now - before - BUILTIN)) or "a mark that it lost"
    return f"deselected: by {new}, with -m {config.option.markexpr!r}"


def _by_marks(config: pytest.Config, names: set[str]) -> bool:
    """Whether ``-m`` takes a test with these marks."""
    expression = config.option.markexpr
    if not expression:
        return True
    with suppress(Exception):  # not an expression: pytest says so
        read = Expression.compile(expression)
        return read.evaluate(lambda name, /, **kwargs: name in names)  # noqa: ARG005
    return True


BUILTIN = frozenset(
    (
        *("dp_claim", "parametrize", "usefixtures", "filterwarnings", "skip", "skipif", "xfail"),
        *("tryfirst", "trylast", "flaky"),
    )
)
"""Marks that are no part of an entry."""
