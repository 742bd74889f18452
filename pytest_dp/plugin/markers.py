"""The marker ``dp_claim`` on tests, classes and modules: what it says, and whether it is audited.

Collecting tests needs no more than this: audits, with all that they load, begin with the first one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from pytest_dp.basics.errors import ClaimError
from pytest_dp.claiming.claim import variants
from pytest_dp.claiming.keywords import read_keywords
from pytest_dp.plugin.claim_session import audits_of, claim_session_of
from pytest_dp.plugin.failure import relative
from pytest_dp.plugin.names import MARKER


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Make one item for each claim, if the markers of a test make several."""
    variations: list[tuple[dict[str, Any], str]] = []
    for marker in reversed(closest_markers(metafunc.definition)[1]):  # the topmost first
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


def refuse_unaudited(marked: Sequence[pytest.Collector], items: Sequence[pytest.Item]) -> None:
    """Let a test fail for each marker of a module or a class that none of its tests audits.

    A class that inherits the marker may leave the audit to others that inherit it.
    """
    by_owner: dict[int, list[pytest.Collector]] = {}
    for node in marked:
        by_owner.setdefault(id(_written_on(node)[0]), []).append(node)
    for owner, nodes in by_owner.items():
        tests = [test for node in nodes for test in _tests(node)]
        if not any(test is None or _audits(test, owner) for test in tests):
            first = next((item for item in items if item in tests), None)
            if first is not None:
                audits_of(first).unaudited = nodes[0].name


def _tests(node: pytest.Item | pytest.Collector) -> Iterator[pytest.Item | None]:
    """Yield all tests of a module or class, also deselected ones; None for unknown content."""
    if isinstance(node, pytest.Item):
        yield node
        return
    content = claim_session_of(node.config).contents.get(node)
    for child in (None,) if content is None else content:
        yield from (None,) if child is None else _tests(child)


def _audits(item: pytest.Item, owner: int) -> bool:
    """Return whether a test audits the claim that is written on the object with this id."""
    return takes_dp_check(item) and id(closest_markers(item)[0]) == owner


def closest_markers(item: pytest.Item) -> tuple[object, list[pytest.Mark]]:
    """Return the closest test, class or module with markers, and its markers."""
    written = map(_written_on, reversed(item.listchain()))
    return next(((owner, marks) for owner, marks in written if marks), (item, []))


def _written_on(node: Any) -> tuple[object, list[pytest.Mark]]:
    """Return the test, class or module that has the markers, or its base class; and these."""
    own = [marker for marker in node.own_markers if marker.name == MARKER]
    for kind in getattr(getattr(node, "obj", None), "__mro__", ()):
        marks = vars(kind).get("pytestmark", ())
        listed = [getattr(m, "mark", m) for m in (marks if isinstance(marks, list) else [marks])]
        here = [marker for marker in own if any(marker is mark for mark in listed)]
        if here:
            return kind, here
    return node, own


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
