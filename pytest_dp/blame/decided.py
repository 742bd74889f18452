"""Parts of the output that one random number decides: noise at thresholds, a coin, or a choice.

All that one number decides is taken together. So if it decides more than noise can hide, some of it
is there on one of D and D' only: the loss is infinite.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from pytest_dp.bisection import bracket
from pytest_dp.blame.findings import (
    Finding,
    format_draw,
    format_leaf,
    format_number,
    format_places,
)
from pytest_dp.blame.noise import Noise, noise_of
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
    indices,
    one_number,
    place_of,
)
from pytest_dp.limits import DOZENS, NEARLY_EQUAL, SEVERAL
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.randomness import laws
from pytest_dp.randomness.laws import Law
from pytest_dp.randomness.tape import Draw

Leaves = tuple[Leaf | None, ...]


@dataclass(frozen=True, slots=True)
class _Scale:
    """Values of a random number, by a number of a standard law."""

    law: Law
    grid: Sequence[float]
    """Where to look first."""
    most: int
    """Values that a leaf may have; of more, it is not decided."""
    value_at: Callable[[float], Any]
    at: Callable[[Any], float]


def _scale(draw: Draw, index: int | None) -> _Scale | None:
    """That of one number of a draw; None if there is none, or too much to choose from."""
    options = _options(draw)
    if options:
        values, ends = [repr(v) for v, _ in options], [*accumulate(p for _, p in options)]
        middles = [end - share / 2 for end, (_, share) in zip(ends, options, strict=True)]
        return _Scale(
            Law(laws.UNIFORM),
            [at for at, (_, share) in zip(middles, options, strict=True) if share],
            len(options),
            lambda at: options[min(bisect_left(ends, at), len(ends) - 1)][0],
            lambda value: middles[values.index(repr(value))],
        )
    shares = [*np.linspace(0, 1, 2 * SEVERAL + 1)[:-1].tolist(), BELOW_ONE]
    if draw.request.method in UNIFORM:
        return _Scale(Law(laws.UNIFORM), shares, SEVERAL, float, float)
    noise = noise_of(draw, index)
    if noise is None or noise.law.lattice:
        return None
    kind = float if np.ndim(draw.value) else type(draw.value)
    far = [4.0**power for power in range(DOZENS // 2)]
    low, high = noise.law.support
    grid = [-x for x in far[::-1] if -x > low] + [x for x in (0.0, *far) if low <= x < high]
    return _Scale(
        noise.law,
        shares if noise.law.family is laws.UNIFORM else grid,
        SEVERAL,
        lambda at: kind(noise.location + noise.scale * at),
        lambda value: (float(value) - noise.location) / noise.scale,
    )


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


@dataclass(frozen=True, slots=True)
class _Number:
    """A random number on one input, and outputs that it makes there."""

    runs: Runs
    side: int
    element: Element
    scale: _Scale
    tried: list[Run]
    """The runs at the grid of the scale."""

    @classmethod
    def of(cls, runs: Runs, side: int, element: Element) -> _Number | None:
        key, index = element
        scale = _scale(runs.usual(side, 0).keyed[key], index)
        if scale is None:
            return None
        number = cls(runs, side, element, scale, [])
        number.tried.extend(map(number.run, scale.grid))
        return number

    def run(self, at: float) -> Run:
        value = self.scale.value_at(at)
        return self.runs.run(self.side, 0, one_number(self.element, lambda _: value))

    @property
    def moved(self) -> set[str]:
        """Places that change with it."""
        return set().union(*(changed(self.tried[0], run) for run in self.tried[1:]))

    def probabilities(self, places: tuple[str, ...]) -> dict[Leaves, float]:
        """Of the leaves at some places; empty if they do not follow from it, or are many."""
        ends: list[float] = []
        leaves = [_at(self.tried[0], places)]
        for (low, _), (high, run) in pairwise(zip(self.scale.grid, self.tried, strict=True)):
            while _at(run, places) != leaves[-1]:
                if len(ends) > self.scale.most:
                    return {}
                differs = partial(self._differs, places, leaves[-1])
                _, low = bracket(differs, low, high, (high - low) / 2**30)
                ends.append(low)
                leaves.append(_at(self.run(low), places))
        for usual in (self.runs.usual(self.side, noise) for noise in range(DOZENS)):
            value = usual.value_of(self.element)
            following = None if value is None else leaves[bisect_left(ends, self.scale.at(value))]
            if following != _at(usual, places):
                return {}
        edges = np.array([-np.inf, *ends, np.inf])
        shares = np.exp(self.scale.law.log_between(edges[:-1], edges[1:])).tolist()
        probabilities: Counter[Leaves] = Counter()
        for some, share in zip(leaves, shares, strict=True):
            probabilities[some] += share
        return dict(probabilities)

    def _differs(self, places: tuple[str, ...], leaves: Leaves, at: float) -> bool:
        return _at(self.run(at), places) != leaves


def _at(run: Run, places: tuple[str, ...]) -> Leaves:
    return tuple(map(run.leaves.get, places))


@dataclass(frozen=True, slots=True)
class _Decided:
    """Leaves that one random number decides, and what tells most of the two inputs in them."""

    loss: float
    places: tuple[str, ...]
    leaves: Leaves
    shares: tuple[float, float]
    """Of these leaves, on D and on D'."""
    draw: Draw
    noise: Noise | None

    @property
    def text(self) -> str:
        values = ", ".join(map(format_leaf, self.leaves[:2])) + ", ..." * (len(self.leaves) > 2)
        verb = "is" if len(self.places) == 1 else "are"
        here, there = map(format_number, self.shares)
        return (
            f"by {format_draw(self.draw.request)} here, {format_places(self.places)} {verb} "
            f"{values} with probability {here} on D and {there} on D'"
        )

    @property
    def kind(self) -> str:
        if self.noise is None:
            return "too far apart"
        shared = len(self.places) > 1 and math.isinf(self.loss)
        return "shared noise" if shared else "too little noise"


def decided(runs: Runs, claim: Guarantee) -> Iterator[Finding]:
    """Leaves that are decided by one random number each, and lose too much together."""
    ways = [
        sorted(way, key=lambda part: -part.loss) for way in zip(*_decided(runs, claim), strict=True)
    ]
    if not is_pure(claim):  # losses of other claims do not add up
        ways = [way[:1] for way in ways]
    # What is likelier on D is not lost together with what is likelier on D'.
    parts = max(ways, key=_total, default=[])
    loss = _total(parts)
    number = format_number(loss)
    if loss <= claim.claimed * (1 + NEARLY_EQUAL):
        return
    said = f"a loss of {number}" if is_pure(claim) else claim.at_least(number)
    said = "an infinite loss" if math.isinf(loss) else said
    if claim.parameter != "scale":
        said += f" for {format_number(claim.claimed)} claimed"
    worst, *others = parts
    with_others = f"with {format_places([p for o in others for p in o.places])}, " if others else ""
    text = f"{worst.text}: {with_others}{said}"
    certain = worst.kind == "shared noise"
    yield Finding(worst.kind, place_of(worst.draw.stack), text, certain=certain, loss=loss)
    scale = None if worst.noise is None else worst.noise.scale
    yield from origins(runs, worst.draw, worst.places[0], scale, loss=loss)


def is_pure(claim: Guarantee) -> bool:
    """Return whether eps is claimed without a delta."""
    return claim.parameter == "eps" and not claim.delta


def _total(parts: Sequence[_Decided]) -> float:
    return sum(part.loss for part in parts)


def _loss(claim: Guarantee, p: float, q: float) -> float:
    """By leaves with these probabilities; of other claims than eps alone, by all others too."""
    if is_pure(claim):
        return 0.0 if p <= q else math.log(p / q) if q else math.inf
    return float(claim.shown_by(p, q))


def _decided(runs: Runs, claim: Guarantee) -> Iterator[list[_Decided]]:
    """The leaves that each random number alone decides on both inputs, where some differ.

    By what tells most of D in them, and by what tells most of D'.
    """
    here, there = runs.both(0)
    reaching = [runs.lines_of(place) for place in runs.differing if place not in WHOLE]
    alone = set().union(*(lines for lines in reaching if len(lines) == 1))
    elements = [
        (key, index)
        for key, draw in here.keyed.items()
        if key in there.keyed and place_of(draw.stack) in alone
        for index in indices(draw)
    ]
    if len(elements) > DOZENS:
        return
    made = ([_Number.of(runs, side, element) for side in (0, 1)] for element in elements)
    numbers = [(one, other) for one, other in made if one is not None and other is not None]
    times = Counter(place for one, other in numbers for place in one.moved | other.moved)
    for pair in numbers:
        places = [
            place
            for place in here.leaves | there.leaves
            if place in pair[0].moved | pair[1].moved and place not in WHOLE
            if times[place] == len(runs.lines_of(place)) == 1
            if all(len({_at(run, (place,)) for run in one.tried}) <= one.scale.most for one in pair)
        ]
        chosen = tuple(sorted(places, key=lambda place: place not in runs.differing)[:SEVERAL])
        p, q = (one.probabilities(chosen) for one in pair)
        if p and q and not set(chosen).isdisjoint(runs.differing):
            shares = {leaves: (p.get(leaves, 0.0), q.get(leaves, 0.0)) for leaves in p | q}
            key, index = pair[0].element
            draw, ways = here.keyed[key], []
            for way in (1, -1):
                losses = {leaves: _loss(claim, *s[::way]) for leaves, s in shares.items()}
                worst = max(losses, key=losses.__getitem__)
                about = chosen, worst, shares[worst], draw, noise_of(draw, index)
                ways.append(_Decided(losses[worst], *about))
            yield ways
