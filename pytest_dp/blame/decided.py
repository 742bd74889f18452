"""Parts of the output that one random number decides: a uniform one, or a choice."""

from __future__ import annotations

import math
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from pytest_dp.blame.additive import is_pure
from pytest_dp.blame.findings import (
    Finding,
    format_draw,
    format_leaf,
    format_number,
    format_places,
)
from pytest_dp.blame.origins import origins
from pytest_dp.blame.runs import (
    BELOW_ONE,
    UNIFORM,
    WHOLE,
    Element,
    Leaf,
    Run,
    Runs,
    changed,
    halved,
    indices,
    one_number,
    place_of,
)
from pytest_dp.limits import DOZENS, NEARLY_EQUAL, SEVERAL
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.randomness.tape import Draw


@dataclass(frozen=True, slots=True)
class _Law:
    """What a leaf is on one input, by the random number that decides it."""

    probabilities: dict[Leaf | None, float]
    leaf_of: Callable[[Any], Leaf | None]


@dataclass(frozen=True, slots=True)
class _Decided:
    """A leaf that one random number decides, with its laws on D and on D'."""

    place: str
    element: Element
    draw: Draw
    laws: tuple[_Law, _Law]

    def losses(self) -> dict[Leaf | None, float]:
        """The absolute logarithm of the ratio of probabilities of each value."""
        p, q = (law.probabilities for law in self.laws)
        return {leaf: _log_ratio(p.get(leaf, 0.0), q.get(leaf, 0.0)) for leaf in p | q}

    @property
    def loss(self) -> float:
        return max(self.losses().values())


def decided(runs: Runs, claim: Guarantee) -> Iterator[Finding]:
    """Leaves that are decided by one random number each, and lose too much together."""
    leaves = _decided_leaves(runs) if is_pure(claim) else []
    loss = sum(leaf.loss for leaf in leaves)
    if loss <= claim.claimed * (1 + NEARLY_EQUAL):
        return
    worst = max(leaves, key=lambda leaf: leaf.loss)
    others = [leaf.place for leaf in leaves if leaf is not worst]
    with_others = f"with {format_places(others)}, " if others else ""
    losses = worst.losses()
    value = max(losses, key=losses.__getitem__)
    here, there = (format_number(law.probabilities.get(value, 0.0)) for law in worst.laws)
    text = (
        f"by {format_draw(worst.draw.request)} here, {worst.place} is {format_leaf(value)} with "
        f"probability {here} on D and {there} on D': {with_others}a loss of {format_number(loss)} "
        f"for {format_number(claim.claimed)} claimed"
    )
    yield Finding("too far apart", place_of(worst.draw.stack), text, loss=loss)
    yield from origins(runs, worst.draw, worst.place, loss=loss)


def _log_ratio(p: float, q: float) -> float:
    return abs(math.log(p / q)) if p and q else math.inf


def _decided_leaves(runs: Runs) -> list[_Decided]:
    """Differing leaves that one random number decides on both inputs, each another number."""
    here, there = runs.both(0)
    elements = [
        ((key, index), draw)
        for key, draw in here.keyed.items()
        if key in there.keyed and (draw.request.method in UNIFORM or _options(draw))
        for index in indices(draw)
    ]
    if not 0 < len(elements) <= DOZENS:
        return []
    differing = {place for place in runs.differing if place not in WHOLE}
    candidates: dict[str, list[tuple[Element, Draw]]] = defaultdict(list)
    for element, draw in elements:
        for place in differing & _moved_by(runs, element, draw):
            candidates[place].append((element, draw))
    leaves = []
    for place, deciding in candidates.items():
        if len(deciding) == 1 and len(runs.lines_of(place)) == 1:
            ((element, draw),) = deciding
            laws = _law(runs, 0, element, place), _law(runs, 1, element, place)
            leaf = _Decided(place, element, draw, laws)
            if all(law.probabilities for law in laws) and _holds(runs, leaf):
                leaves.append(leaf)
    used = {leaf.element for leaf in leaves}
    return leaves if len(used) == len(leaves) else []


def _options(draw: Draw) -> list[tuple[Any, float]]:
    """What a draw chooses from, with the probability of each; none of others, and of too many."""
    if draw.request.method != "choice" or np.ndim(draw.value):
        return []
    try:
        given = draw.request.arguments
    except TypeError:
        return []
    among: Any = given.get("a", given.get("seq"))
    options = list(range(int(among)) if isinstance(among, int | np.integer) else among)
    if not 0 < len(options) <= DOZENS:
        return []
    shares = given.get("p")
    if shares is None:
        shares = [1 / len(options)] * len(options)
    return list(zip(options, map(float, shares), strict=True))


def _moved_by(runs: Runs, element: Element, draw: Draw) -> set[str]:
    """Leaves that change with a random number."""
    values = [value for value, _ in _options(draw)] or [0.0, 0.25, 0.5, 0.75, BELOW_ONE]
    moved: set[str] = set()
    for side in (0, 1):
        for value in values:
            moved |= changed(runs.usual(side, 0), _run_with(runs, side, element, value))
    return moved


def _run_with(runs: Runs, side: int, element: Element, value: Any) -> Run:
    return runs.run(side, 0, one_number(element, lambda _: value))


def _law(runs: Runs, side: int, element: Element, place: str) -> _Law:
    """What a leaf is by a random number; without probabilities if that is too much to know."""

    def leaf(value: Any) -> Leaf | None:
        return _run_with(runs, side, element, value).leaves.get(place)

    probabilities: Counter[Leaf | None] = Counter()
    options = _options(runs.usual(side, 0).keyed[element[0]])
    if options:
        by_option = {repr(value): leaf(value) for value, _ in options}
        for value, share in options:
            if share > 0:
                probabilities[by_option[repr(value)]] += share  # type: ignore[assignment]
        return _Law(dict(probabilities), lambda value: by_option.get(repr(value)))
    cuts, leaves = _cuts(leaf)
    for low, high, value in zip([0.0, *cuts], [*cuts, 1.0], leaves, strict=False):
        probabilities[value] += high - low  # type: ignore[assignment]
    return _Law(dict(probabilities), lambda value: leaves[bisect(cuts, value)])


def _cuts(leaf: Callable[[float], Leaf | None]) -> tuple[list[float], list[Leaf | None]]:
    """Where a leaf changes while a uniform number goes from 0 to 1, and its values in between."""
    grid = [*np.linspace(0, 1, 2 * SEVERAL + 1)[:-1].tolist(), BELOW_ONE]
    on_grid = [leaf(value) for value in grid]
    if len(set(on_grid)) > SEVERAL:
        return [], []
    cuts, leaves = [], [on_grid[0]]
    for (low, before), (high, after) in pairwise(zip(grid, on_grid, strict=True)):
        if before != after:
            unchanged = partial(lambda before, value: leaf(value) == before, before)
            cuts.append(halved(low, high, unchanged, 30)[1])
            leaves.append(after)
    return cuts, leaves


def _holds(runs: Runs, leaf: _Decided) -> bool:
    """Whether a leaf is what the number says, in all runs on either input."""
    for side, law in enumerate(leaf.laws):
        for noise in range(DOZENS):
            run = runs.usual(side, noise)
            value = run.value_of(leaf.element)
            if value is None or run.leaves.get(leaf.place) != law.leaf_of(value):
                return False
    return True
