"""Parts that an audit looks up by kind and name: those of optional rooms, and of other packages.

A part of this package is given by where it is, and loaded when it is first asked for. Other
packages enter theirs by an entry point of the group `GROUP`: a function without arguments, which
calls `enter`, or puts a relation, a type of dataset, a noise or a report format into its table.
"""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Literal

GROUP = "pytest_dp"
"""The group of entry points. Given: other packages write it."""

Kind = Literal["method", "oracle", "search", "explainer", "reader"]

_PARTS: dict[Kind, dict[str, Any]] = {
    "method": {
        "sequential": "pytest_dp.auditors.sequential:audit",
        "statdp": "pytest_dp.methods.statdp:audit",
        "dpsniper": "pytest_dp.methods.dpsniper:audit",
        "dpfinder": "pytest_dp.methods.dpfinder:audit",
        "one_run": "pytest_dp.methods.one_run:audit",
        "membership": "pytest_dp.methods.membership:audit",
    },
    "oracle": {"known": "pytest_dp.known_losses.analytic_check:find_losses"},
    "search": {
        "inputs": "pytest_dp.proposers",
        "gradient": "pytest_dp.methods.dpfinder:ByGradients",
        "symbolic": "pytest_dp.proposers.proposing:BySymbols",
    },
    "explainer": {"blame": "pytest_dp.explain:explain"},
    "reader": {
        "parsed": "pytest_dp.readers.parsed:parsed_features",
        "texts": "pytest_dp.readers.text_features:text_features",
        "traces": "pytest_dp.readers.noise_traces:noise_trace_features",
    },
}


def enter(kind: Kind, name: str, part: Any) -> None:
    """Add a part, or where it is as `"module:attribute"`; raise ValueError for a name in use."""
    if name in _PARTS[kind]:
        raise ValueError(f"there is a {kind} named {name!r} already")
    _PARTS[kind][name] = part


def names(kind: Kind) -> tuple[str, ...]:
    """Return the names of all parts of a kind, those of other packages too."""
    load_entry_points()
    return tuple(_PARTS[kind])


def load(kind: Kind, name: str) -> Any:
    """Import a part if it was not used before, and return it.

    Raises KeyError if no part has that name, ImportError if its module cannot be imported, and
    AttributeError if the module lacks it.
    """
    load_entry_points()
    part = _PARTS[kind][name]
    if not isinstance(part, str):
        return part
    module, _, attribute = part.partition(":")
    return getattr(import_module(module), attribute) if attribute else import_module(module)


@cache
def load_entry_points() -> None:
    """Let other packages add their parts, once; warn of each entry point that raises."""
    for entry in entry_points(group=GROUP):
        try:
            entry.load()()
        except Exception as error:
            given = f"{entry.name} = {entry.value!r}"
            said = f"{type(error).__name__}: {error}"
            warnings.warn(f"the entry point {given} of {GROUP} failed: {said}", stacklevel=2)
