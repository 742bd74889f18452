"""Outputs that are chosen: by probabilities that a draw is given, or by a uniform draw."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pytest_dp.blame.families import number, written
from pytest_dp.blame.finding import Finding, listed, told
from pytest_dp.blame.losses import ABOVE
from pytest_dp.blame.origins import origins
from pytest_dp.blame.reach import NOISES, Reach
from pytest_dp.blame.runs import LENGTH, Key, Leaf, Run, keyed, place_of
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.randomness.tape import Draw, Replaced, Replacement

UNIFORM = {"random", "random_sample", "rand", "ranf", "sample"}
MAX_ELEMENTS = 32
GRID = 16
"""Values of a uniform draw between which a leaf is looked at."""
HALVINGS = 30
MAX_VALUES = 8
"""That a leaf may have."""


def by_probabilities(reach: Reach, claim: Guarantee) -> Iterator[Finding]:
    """Draws of ``choice(p=...)`` that decide the output, with probabilities too far apart."""
    if claim.parameter != "eps" or claim.delta:
        return
    one, other = reach.both(0)
    for key, draw in one.keyed.items():
        twin, line = other.keyed.get(key), place_of(draw.stack)
        places = [place for place in reach.differing if reach.lines_of(place) == {line}]
        if twin is None or not places or not _decided(reach, key, places[0]):
            continue
        loss = _apart(_probabilities(draw), _probabilities(twin))
        if loss is not None and loss > claim.claimed * ABOVE:
            text = (
                f"the probabilities of {draw.request.source.name}.choice here differ by up to a "
                f"factor of {number(math.exp(loss))} between D and D', and it alone decides "
                f"{places[0]}: a loss of {number(loss)} for {number(claim.claimed)} claimed"
            )
            yield Finding("too far apart", line, text, loss=loss)
            return


def _probabilities(draw: Draw) -> np.ndarray[Any, Any] | None:
    if draw.request.method != "choice" or np.ndim(draw.value):
        return None
    try:
        given = draw.request.arguments.get("p")
    except TypeError:
        return None
    return None if given is None else np.asarray(given, dtype=float)


def _apart(one: Any, other: Any) -> float | None:
    if one is None or other is None or one.shape != other.shape:
        return None
    with np.errstate(all="ignore"):
        ratios = np.abs(np.log(one) - np.log(other))
    ratios = ratios[(one > 0) | (other > 0)]
    return float(ratios.max())


def _decided(reach: Reach, key: Key, place: str) -> bool:
    """Whether a leaf tells what was drawn: another one for each value in these runs."""
    pairs = set()
    for side in (0, 1):
        for noise in range(NOISES):
            run = reach.runs.usual(side, noise)
            draw = run.keyed.get(key)
            if draw is None or len(run.draws) != 1:
                return False
            pairs.add((repr(draw.value), run.leaves.get(place)))
    values, leaves = {value for value, _ in pairs}, {leaf for _, leaf in pairs}
    return len(pairs) == len(values) == len(leaves)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A leaf that one uniform draw decides.

    Attributes
    ----------
    place : str
    element : (Key, int or None)
    draw : Draw
    cuts : tuple of (list of float, list of Leaf)
        On D and on D': where the leaf changes, and what it is in between.
    """

    place: str
    element: tuple[Key, int | None]
    draw: Draw
    cuts: tuple[tuple[list[float], list[Leaf | None]], ...]

    def probability(self, side: int) -> dict[Leaf | None, float]:
        """Of each value of the leaf."""
        cuts, leaves = self.cuts[side]
        found: dict[Leaf | None, float] = {}
        for low, high, leaf in zip([0.0, *cuts], [*cuts, 1.0], leaves, strict=True):
            found[leaf] = found.get(leaf, 0.0) + high - low
        return found

    @property
    def loss(self) -> float:
        """The largest logarithm of a ratio."""
        one, other = self.probability(0), self.probability(1)
        if one.keys() != other.keys():
            return math.inf
        return max(_ratio(one[leaf], other[leaf]) for leaf in one)


def by_uniforms(reach: Reach, claim: Guarantee) -> Iterator[Finding]:
    """Leaves that are decided by one uniform draw each, and lose too much together."""
    if claim.parameter != "eps" or claim.delta:
        return
    chosen = _all_chosen(reach)
    loss = sum(one.loss for one in chosen)
    if not chosen or loss <= claim.claimed * ABOVE:
        return
    worst = max(chosen, key=lambda one: one.loss)
    others = [one.place for one in chosen if one is not worst]
    with_others = f"with {listed(others)}, " if others else ""
    probabilities = worst.probability(0), worst.probability(1)
    leaf = max(
        dict.fromkeys([*probabilities[0], *probabilities[1]]),
        key=lambda leaf: _ratio(*(each.get(leaf, 0.0) for each in probabilities)),
    )
    here, there = (number(each.get(leaf, 0.0)) for each in probabilities)
    text = (
        f"by {written(worst.draw.request)} here, {worst.place} is {told(leaf)} with probability "
        f"{here} on D and {there} on D': {with_others}a loss of {number(loss)} for "
        f"{number(claim.claimed)} claimed"
    )
    yield Finding("too far apart", place_of(worst.draw.stack), text, loss=loss)
    for found in origins(reach, worst.draw, None, None, worst.place):
        yield replace(found, loss=loss)


def _ratio(one: float, other: float) -> float:
    return abs(math.log(one / other)) if one and other else math.inf


def _all_chosen(reach: Reach) -> list[_Chosen]:
    """Differing leaves that one uniform draw decides on either input, each another one."""
    both = reach.both(0)
    elements = [
        ((key, index), draw)
        for key, draw in both[0].keyed.items()
        if draw.request.method in UNIFORM and key in both[1].keyed
        for index in (range(np.size(draw.value)) if np.ndim(draw.value) else (None,))
    ]
    if not elements or len(elements) > MAX_ELEMENTS:
        return []
    wanted = {place for place in reach.differing if place != LENGTH}
    found: dict[str, list[tuple[tuple[Key, int | None], Draw]]] = {}
    for element, draw in elements:
        for place in wanted & _decides(reach, element):
            found.setdefault(place, []).append((element, draw))
    chosen = []
    for place, own in found.items():
        if len(own) == 1 and len(reach.lines_of(place)) == 1:
            (element, draw), *_ = own
            cuts = tuple(_changes(reach, side, element, place) for side in (0, 1))
            one = _Chosen(place, element, draw, cuts)
            if _holds(reach, one):
                chosen.append(one)
    if len({one.element for one in chosen}) < len(chosen):
        return []
    return chosen


def _decides(reach: Reach, element: tuple[Key, int | None]) -> set[str]:
    """Leaves that change with an element."""
    changing: set[str] = set()
    for side in (0, 1):
        before = reach.runs.usual(side, 0).leaves
        for at in (0.0, 0.25, 0.5, 0.75, 1 - 2.0**-53):
            after = reach.runs.run(side, 0, _put(element, at)).leaves
            changing |= {
                place
                for place in before.keys() | after.keys()
                if before.get(place) != after.get(place)
            }
    return changing


def _put(element: tuple[Key, int | None], value: float) -> Replaced:
    """What gives an element this value; good for one run."""
    wanted, index = element

    def put(draw: Draw, _: Any) -> Any:
        if index is None:
            return value
        array = draw.value.copy()
        array.flat[index] = value
        return array

    def change(key: Key, draw: Draw) -> Replacement | None:  # noqa: ARG001
        return put if key == wanted else None

    return keyed(change)


def _changes(
    reach: Reach, side: int, element: tuple[Key, int | None], place: str
) -> tuple[list[float], list[Leaf | None]]:
    """Where a leaf changes while a uniform draw goes from 0 to 1, and what it is in between."""

    def leaf(at: float) -> Leaf | None:
        return reach.runs.run(side, 0, _put(element, at)).leaves.get(place)

    grid = [*np.linspace(0, 1, GRID + 1)[:-1].tolist(), 1 - 2.0**-53]
    seen = [leaf(at) for at in grid]
    if len(set(seen)) > MAX_VALUES:
        return [], [None]
    cuts, leaves = [], [seen[0]]
    for low, high, before, after in zip(grid, grid[1:], seen, seen[1:], strict=False):
        if before == after:
            continue
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            if leaf(middle) == before:
                low = middle
            else:
                high = middle
        cuts.append(high)
        leaves.append(after)
    return cuts, leaves


def _holds(reach: Reach, one: _Chosen) -> bool:
    """Whether a leaf is what the draw says, in all runs on either input."""
    for side in (0, 1):
        cuts, leaves = one.cuts[side]
        for noise in range(NOISES):
            run = reach.runs.usual(side, noise)
            value = _drawn(run, one.element)
            if value is None or run.leaves.get(one.place) != leaves[sum(c <= value for c in cuts)]:
                return False
    return True


def _drawn(run: Run, element: tuple[Key, int | None]) -> float | None:
    key, index = element
    draw = run.keyed.get(key)
    if draw is None or (index is not None and index >= np.size(draw.value)):
        return None
    return float(draw.value if index is None else draw.value.flat[index])
