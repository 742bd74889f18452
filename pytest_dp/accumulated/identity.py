"""Which audits are the same: evidence against one says nothing about another."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pytest_dp.claim import Arguments, Promise
from pytest_dp.committed.texts import digest, source_digest, text_of
from pytest_dp.sampling.captured import is_installed, names_in
from pytest_dp.search.reachable import is_constant, reachable


def identity(promise: Promise, arguments: Arguments, mechanism: Any) -> str:
    """A digest of the mechanism, its claim and its packages: evidence is about these.

    It changes with the claim, its inputs and arguments; with the source of the mechanism and of the
    project's functions that it reaches, but not with their comments, names or formatting; with the
    constants that they use; and with the versions of installed packages that they name.

    Parameters
    ----------
    promise : Promise
        With its inputs looked up.
    arguments : Arguments
    mechanism : callable
    """
    about = [
        *(text_of(part) for part in (promise.guarantee, promise.relation, promise.group)),
        *(text_of(part) for part in (promise.inputs, promise.pairs)),
        *(text_of(part) for part in (arguments.params, arguments.vectorized, arguments.drawn)),
        source_digest(mechanism),
        *sorted(set(_reached(mechanism, dict(arguments.params)))),
    ]
    return digest("\n".join(about))


def _reached(mechanism: Any, params: dict[str, Any]) -> Iterator[str]:
    for obj, place in reachable(mechanism, params):
        if is_constant(obj):
            yield f"{place} = {obj!r}"
            continue
        yield from _package(obj)
        if isinstance(obj, types.FunctionType):
            yield source_digest(obj)
            for name in names_in(obj.__code__):
                yield from _package(obj.__globals__.get(name))


def _package(obj: Any) -> Iterator[str]:
    """The installed package of a module, function or class, with its version."""
    module = obj
    if not isinstance(obj, types.ModuleType):
        name = getattr(obj, "__module__", None) if callable(obj) else None
        module = sys.modules.get(name) if isinstance(name, str) else None
    if module is not None and is_installed(module):
        root = module.__name__.partition(".")[0]
        yield f"{root} {_version(root)}"


def _version(package: str) -> str:
    stated = getattr(sys.modules.get(package), "__version__", None)
    if isinstance(stated, str):
        return stated
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
