"""Claims that were declared but belong to no test item: each is an error at its line.

A function that replaces another of the same name takes its claim away, and so does a decorator that
returns a function of its own: unless somebody says so, a build stays green without the audit.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from typing import Any
from weakref import ref

from pytest_dp.declaration import DECLARED, Declaration
from pytest_dp.errors import ClaimError

_NOTHING = object()


def lost_claims(
    module: Any, written_here: Callable[[Declaration], bool], collected: Iterable[Declaration]
) -> list[tuple[Declaration, str, ClaimError]]:
    """The declarations of an imported module that are not among those `collected`.

    Each comes with the name of its mechanism, and what became of it. A mechanism that was deleted,
    and that nothing holds any more, was meant to go.
    """
    spec, declared = DECLARED.get(module.__name__, (None, []))
    if spec is not vars(module).get("__spec__"):
        return []  # of another module of that name, or from before it was imported again
    tested = {id(declaration) for declaration in collected}
    missing = [
        (declaration, name, mechanism, _named(module, name))
        for declaration, name, mechanism in declared
        if id(declaration) not in tested and written_here(declaration)
    ]
    if any(now is _NOTHING for *_, now in missing):
        gc.collect()  # classes refer to themselves
    lost = []
    for declaration, name, mechanism, now in missing:
        short = name.rpartition("<locals>.")[2] or "mechanism"
        if now is not _NOTHING:
            lost.append((declaration, short, ClaimError(_replaced(short, now, mechanism))))
        elif _held(mechanism) is not None:
            lost.append((declaration, short, ClaimError(_out_of_reach(short))))
    return lost


def _held(mechanism: Any) -> Any:
    """The mechanism of an entry; None if it was deleted."""
    held = mechanism() if isinstance(mechanism, ref) else mechanism
    return _attribute(held, "__func__", held)


def _attribute(of: Any, name: str, default: Any) -> Any:
    """As `getattr`, also of proxies, which may raise anything when touched."""
    try:
        return getattr(of, name, default)
    except Exception:  # whatever it raises, it has none that we can use
        return default


def _named(module: Any, name: str) -> Any:
    """What a name stands for in a module, now; `_NOTHING` if its first part stands for nothing."""
    if "<locals>" in name:
        return _NOTHING
    root, *rest = name.split(".")
    place = vars(module).get(root, _NOTHING)
    for part in rest if place is not _NOTHING else ():
        place = _attribute(place, "__dict__", {}).get(part)
    return _attribute(place, "__func__", place)  # of a static method


def _replaced(name: str, now: Any, mechanism: Any) -> str:
    """What is said of a claim whose mechanism is not what its name stands for."""
    if now is not None and _held(mechanism) is now:
        return (
            f"No test came of this claim on {name}, where pytest-dp does not look for claims. Put "
            "it on a function of the module."
        )
    code = _attribute(now, "__code__", None)
    called = _attribute(now, "__qualname__", None) or type(now).__name__
    called = f"another {called}" if called == name else called
    where = f" (line {code.co_firstlineno})" if code is not None else ""
    return (
        f"This claim is lost, so nothing would be audited: {name} now stands for {called}{where}, "
        "which does not carry it. If that is another function of the same name, give one of them "
        "another name; if a decorator made it, put @dp_claim above that decorator, or use "
        "functools.wraps in it."
    )


def _out_of_reach(name: str) -> str:
    return (
        f"This claim is lost, so nothing would be audited: no name of this module stands for "
        f"{name} any more, but something still holds it. Give it a name of its own in the module, "
        "such as noisy_count = make(...), or claim what holds it."
    )
