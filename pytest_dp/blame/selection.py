"""Outputs that are selected: by probabilities that a draw is given, or by a uniform draw."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from pytest_dp.blame.findings import Finding
from pytest_dp.blame.flow import UNIFORM, Flow, halved, with_element
from pytest_dp.blame.losses import is_pure
from pytest_dp.blame.origins import origins
from pytest_dp.blame.runs import LENGTH, Element, Key, Leaf, Run, indices, place_of
from pytest_dp.blame.texts import format_draw, format_leaf, format_number, format_places
from pytest_dp.limits import DOZENS, NEARLY_EQUAL, SEVERAL
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.randomness.tape import Draw


def by_probabilities(flow: Flow, claim: Guarantee) -> Iterator[Finding]:
    """Draws of ``choice(p=...)`` that decide the output, with probabilities too far apart."""
    if not is_pure(claim):
        return
    here, there = flow.both(0)
    for key, draw in here.keyed.items():
        twin, line = there.keyed.get(key), place_of(draw.stack)
        places = [place for place in flow.differing if flow.lines_of(place) == {line}]
        if twin is None or not places or not _decided(flow, key, places[0]):
            continue
        loss = _largest_loss(_probabilities(draw), _probabilities(twin))
        if loss is not None and loss > claim.claimed * (1 + NEARLY_EQUAL):
            text = (
                f"the probabilities of {draw.request.source.name}.choice here differ by up to a "
                f"factor of {format_number(math.exp(loss))} between D and D', and it alone decides "
                f"{places[0]}: a loss of {format_number(loss)} for "
                f"{format_number(claim.claimed)} claimed"
            )
            yield Finding("too far apart", line, text, loss=loss)
            return


def _probabilities(draw: Draw) -> np.ndarray[Any, Any] | None:
    if draw.request.method != "choice" or np.ndim(draw.value):
        return None
    try:
        probabilities = draw.request.arguments.get("p")
    except TypeError:
        return None
    return None if probabilities is None else np.asarray(probabilities, dtype=float)


def _largest_loss(p: Any, q: Any) -> float | None:
    """The largest absolute logarithm of a ratio of probabilities of the same value."""
    if p is None or q is None or p.shape != q.shape:
        return None
    with np.errstate(all="ignore"):
        losses = np.abs(np.log(p) - np.log(q))
    return float(losses[(p > 0) | (q > 0)].max())


def _decided(flow: Flow, key: Key, place: str) -> bool:
    """Whether a leaf tells what was drawn: it has another value for each value of the draw."""
    pairs = set()
    for run in flow.all_runs():
        draw = run.keyed.get(key)
        if draw is None or len(run.draws) != 1:
            return False
        pairs.add((repr(draw.value), run.leaves.get(place)))
    values, leaves = {value for value, _ in pairs}, {leaf for _, leaf in pairs}
    return len(pairs) == len(values) == len(leaves)


@dataclass(frozen=True, slots=True)
class _Selection:
    """A leaf that one uniform number decides."""

    place: str
    element: Element
    draw: Draw
    cuts: tuple[tuple[list[float], list[Leaf | None]], ...]
    """On D and on D': where the leaf changes, and what it is in between."""

    def probabilities(self, side: int) -> dict[Leaf | None, float]:
        cuts, leaves = self.cuts[side]
        probabilities: dict[Leaf | None, float] = {}
        for low, high, leaf in zip([0.0, *cuts], [*cuts, 1.0], leaves, strict=True):
            probabilities[leaf] = probabilities.get(leaf, 0.0) + high - low
        return probabilities

    @property
    def loss(self) -> float:
        """The largest absolute logarithm of a ratio of probabilities."""
        p, q = self.probabilities(0), self.probabilities(1)
        if p.keys() != q.keys():
            return math.inf
        return max(_log_ratio(p[leaf], q[leaf]) for leaf in p)


def by_uniforms(flow: Flow, claim: Guarantee) -> Iterator[Finding]:
    """Leaves that are decided by one uniform number each, and lose too much together."""
    if not is_pure(claim):
        return
    selections = _selections(flow)
    loss = sum(selection.loss for selection in selections)
    if not selections or loss <= claim.claimed * (1 + NEARLY_EQUAL):
        return
    worst = max(selections, key=lambda selection: selection.loss)
    others = [selection.place for selection in selections if selection is not worst]
    with_others = f"with {format_places(others)}, " if others else ""
    p, q = worst.probabilities(0), worst.probabilities(1)
    leaf = max(
        dict.fromkeys([*p, *q]), key=lambda leaf: _log_ratio(p.get(leaf, 0.0), q.get(leaf, 0.0))
    )
    text = (
        f"by {format_draw(worst.draw.request)} here, {worst.place} is {format_leaf(leaf)} with "
        f"probability {format_number(p.get(leaf, 0.0))} on D and "
        f"{format_number(q.get(leaf, 0.0))} on D': {with_others}a loss of {format_number(loss)} "
        f"for {format_number(claim.claimed)} claimed"
    )
    yield Finding("too far apart", place_of(worst.draw.stack), text, loss=loss)
    for finding in origins(flow, worst.draw, None, None, worst.place):
        yield replace(finding, loss=loss)


def _log_ratio(p: float, q: float) -> float:
    return abs(math.log(p / q)) if p and q else math.inf


def _selections(flow: Flow) -> list[_Selection]:
    """Differing leaves that one uniform number decides on both inputs, each another number."""
    here, there = flow.both(0)
    elements = [
        ((key, index), draw)
        for key, draw in here.keyed.items()
        if draw.request.method in UNIFORM and key in there.keyed
        for index in indices(draw)
    ]
    if not 0 < len(elements) <= DOZENS:
        return []
    differing = {place for place in flow.differing if place != LENGTH}
    candidates: dict[str, list[tuple[Element, Draw]]] = {}
    for element, draw in elements:
        for place in differing & _decides(flow, element):
            candidates.setdefault(place, []).append((element, draw))
    selections = []
    for place, deciding in candidates.items():
        if len(deciding) == 1 and len(flow.lines_of(place)) == 1:
            ((element, draw),) = deciding
            cuts = tuple(_cuts(flow, side, element, place) for side in (0, 1))
            selection = _Selection(place, element, draw, cuts)
            if _holds(flow, selection):
                selections.append(selection)
    if len({selection.element for selection in selections}) < len(selections):
        return []
    return selections


def _decides(flow: Flow, element: Element) -> set[str]:
    """Leaves that change with a uniform number."""
    changing: set[str] = set()
    for side in (0, 1):
        before = flow.runs.usual(side, 0).leaves
        for value in (0.0, 0.25, 0.5, 0.75, 1 - 2.0**-53):
            after = _run_with(flow, side, element, value).leaves
            changing |= {
                place
                for place in before.keys() | after.keys()
                if before.get(place) != after.get(place)
            }
    return changing


def _run_with(flow: Flow, side: int, element: Element, value: float) -> Run:
    return flow.runs.run(side, 0, with_element(element, lambda _: value))


def _cuts(
    flow: Flow, side: int, element: Element, place: str
) -> tuple[list[float], list[Leaf | None]]:
    """Where a leaf changes while a uniform number goes from 0 to 1, and its values in between."""

    def leaf(value: float) -> Leaf | None:
        return _run_with(flow, side, element, value).leaves.get(place)

    grid = [*np.linspace(0, 1, 2 * SEVERAL + 1)[:-1].tolist(), 1 - 2.0**-53]
    on_grid = [leaf(value) for value in grid]
    if len(set(on_grid)) > SEVERAL:
        return [], [None]
    cuts, leaves = [], [on_grid[0]]
    for (low, before), (high, after) in pairwise(zip(grid, on_grid, strict=True)):
        if before != after:
            unchanged = partial(lambda before, value: leaf(value) == before, before)
            cuts.append(halved(low, high, unchanged, 30)[1])
            leaves.append(after)
    return cuts, leaves


def _holds(flow: Flow, selection: _Selection) -> bool:
    """Whether a leaf is what the number says, in all runs on either input."""
    for side in (0, 1):
        cuts, leaves = selection.cuts[side]
        for noise in range(DOZENS):
            run = flow.runs.usual(side, noise)
            value = run.value_of(selection.element)
            if value is None or run.leaves.get(selection.place) != leaves[bisect(cuts, value)]:
                return False
    return True
