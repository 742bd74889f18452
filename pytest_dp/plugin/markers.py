"""The marker ``dp_claim`` on tests, classes and modules: what it says, and whether it is audited.

Collecting tests needs no more than this: audits, with all that they load, begin with the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pytest_dp.basics.errors import ClaimError
from pytest_dp.claiming.claim import variants
from pytest_dp.claiming.keywords import read_keywords
from pytest_dp.plugin.claim_session import MARKER, audits_of
from pytest_dp.plugin.terminal import relative


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Make one item for each claim, if the markers of a test make several."""
    variations: list[tuple[dict[str, Any], str]] = []
    for marker in reversed(closest_markers(metafunc.definition)):  # the topmost first
        try:
            claims = variants(read_marker(marker))
        except ClaimError:
            return  # `before` shows it when the test is run
        for arguments, label in claims:
            keywords = dict(marker.kwargs)
            if arguments.params or arguments.drawn:
                params = {name: [value] for name, value in arguments.params.items()}
                keywords["params"] = params | dict(arguments.drawn)
            variations.append((keywords, label))
    if len(variations) > 1:
        metafunc.parametrize(
            "dp_check",
            [k for k, _ in variations],
            ids=[label or None for _, label in variations],
            indirect=True,
        )


def refuse_unaudited(items: Sequence[pytest.Item]) -> None:
    """Let a test fail for each marker of a module or a class that none of its tests audits.

    Classes that inherit a marker share it, and may leave the audit to one of them.
    """
    first: dict[int, tuple[str, pytest.Item]] = {}
    audited: set[int] = set()
    for item in items:
        *around, _ = item.listchain()
        for node in around:
            for marker in node.own_markers:
                if marker.name == MARKER:
                    first.setdefault(id(marker), (node.name, item))
        if takes_dp_check(item):
            audited |= set(map(id, closest_markers(item)))
    for key in first.keys() - audited:
        name, item = first[key]
        audits_of(item).unaudited = name


def closest_markers(item: pytest.Item) -> list[pytest.Mark]:
    """Return the markers of the closest test, class or module that has some."""
    for node in reversed(item.listchain()):
        own = [marker for marker in node.own_markers if marker.name == MARKER]
        if own:
            return own
    return []


def takes_dp_check(item: pytest.Item) -> bool:
    """Return whether a test takes the fixture that audits the claim of its marker."""
    return "dp_check" in getattr(item, "fixturenames", ())


def read_marker(marker: pytest.Mark) -> dict[str, Any]:
    """Read the keywords of a marker; ``dp_check`` may be given the rest."""
    if marker.args:
        raise ClaimError(
            f"pytest.mark.dp_claim was given {marker.args[0]!r} without a keyword. "
            "Write the name: @pytest.mark.dp_claim(eps=1.0, ...)."
        )
    return read_keywords(marker.kwargs)


def place(item: pytest.Item) -> tuple[str, int]:
    """Return the path of a test, relative to the root, and its line."""
    _, line, _ = item.reportinfo()
    return relative(item.path, item.config.rootpath), (line or 0) + 1
