"""The identity of code: the same in every process, and another once anything may have changed.

Evidence is about *modules*: the syntax trees of all of the project's modules that a mechanism's
module imports, directly or not, and what their globals hold (`of_modules`). Claims on record are
about a few functions, so that not every edit of their module changes them: those, and what they
name (`of_names`). Neither depends on comments, formatting, docstrings and names of locals; on the
order of sets and of hashes; on addresses; or on the place of the project on a disk.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_dp.records.syntax import digest, environment, imports, loads, normalised, source_digest
from pytest_dp.records.walking import MACHINERY, Space, Walk, is_project, new, pieces, version

__all__ = ["digest", "forget", "incomparable", "of_modules", "of_names", "source_digest"]


def of_modules(*roots: Any) -> str:
    """What evidence is about: objects, and all modules of the project that their code imports."""
    return _looked_into(roots)[0]


def incomparable(*roots: Any) -> list[str]:
    """Types of what cannot be compared from one process to the next, so that it is always new."""
    return _looked_into(roots)[1]


def _looked_into(roots: Sequence[Any]) -> tuple[str, list[str]]:
    walk = Walk(whole=True)
    about = [walk.content(root) for root in roots]
    done: dict[int, _Module] = {}
    packages, unknown = set(walk.packages), set(walk.unknown)
    ahead = list(walk.spaces)
    while ahead:
        space = ahead.pop()
        if id(space) not in done:
            module = done[id(space)] = _module(space)
            packages |= module.packages
            unknown |= {f"{what} in {space['__name__']}" for what in module.unknown}
            ahead += module.reached
    python = ".".join(map(str, sys.version_info[:2]))
    modules = sorted(module.text for module in done.values())
    text = digest(repr([python, about, modules, sorted(map(version, packages))]))
    return text, sorted(unknown)


def forget() -> None:
    """Look at all modules anew."""
    _MODULES.clear()


def of_names(root: Any) -> str:
    """What a claim on record is about: a function or class, and what it names; empty if not ours.

    Of any other object, the project's code that is found in it.
    """
    walk = Walk(whole=False)
    code = [root] if is_project(root) else pieces(root)
    found = sorted({walk.content(piece) for piece in code})
    return digest(repr(found)) if found else ""


@dataclass(frozen=True, slots=True)
class _Module:
    """What is known of a module: its text, and what the walk through it has found."""

    text: str
    reached: tuple[Space, ...]
    packages: frozenset[str]
    unknown: tuple[str, ...]


_MODULES: dict[int, tuple[Space, _Module]] = {}
"""By the addresses of their spaces, which are held: as they were before runs changed them."""


def _module(space: Space) -> _Module:
    known = _MODULES.get(id(space))
    if known is None:
        known = _MODULES[id(space)] = (space, _looked_at(space))
    return known[1]


def _looked_at(space: Space) -> _Module:
    file = Path(str(space["__file__"]))
    walk = Walk(whole=True, folder=file.parent)
    code: list[str] = []
    try:
        source = file.read_bytes()
        if file.suffix == ".py":
            tree = ast.parse(source)
            walk.follow(imports(tree, space))
            loaded = [f"code that is loaded by {name}" for name in loads(tree)]
            code += sorted(set(environment(tree, source.decode("utf-8", "replace"))))
            code += [normalised(tree), *(new() for _ in loaded)]
            walk.unknown += loaded
        else:
            code.append(walk.content(source))
    except (OSError, SyntaxError, ValueError, RecursionError):
        code.append(new())
    held = [
        (name, walk.content(value))
        for name, value in sorted(space.items())
        if name.isidentifier() and name not in MACHINERY
    ]
    text = digest(repr((space.get("__name__"), code, held)))
    return _Module(text, tuple(walk.spaces), frozenset(walk.packages), tuple(walk.unknown))
