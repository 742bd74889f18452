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
from pytest_dp.blame import runs as of_runs
from pytest_dp.blame.findings import (
    Finding,
    find_caller,
    format_draw,
    format_leaf,
    format_number,
    format_places,
)
from pytest_dp.blame.noise import noise_of
from pytest_dp.blame.runs import BELOW_ONE, UNIFORM, WHOLE, Element, Leaf, Run, Runs
from pytest_dp.limits import NEARLY_EQUAL
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.randomness import laws
from pytest_dp.randomness.laws import Law
from pytest_dp.randomness.tape import Draw

Leaves = tuple[Leaf | None, ...]
MAX_VALUES = 8
"""Values that a leaf may have; of more, it is not decided. More take a bisection each."""
MAX_OPTIONS = 24
"""Values that a draw may choose from, each of which takes a run on either input."""
MAX_NUMBERS = 24
"""Random numbers that are looked at, each of which takes dozens of runs."""
MAX_PLACES = 8
"""Leaves that are taken together. With more, their values are too many to tell."""
CHECKED_RUNS = 24
"""Runs in which the leaves have to be what the number decides."""


@dataclass(frozen=True, slots=True)
class _Scale:
    """Values of a random number, by a number of a standard law."""

    law: Law
    grid: Sequence[float]
    """Where to look first."""
    most: int
    """Values that a leaf may have."""
    value_at: Callable[[float], Any]
    at: Callable[[Any], float]


def _scale(draw: Draw, index: int | None) -> _Scale | None:
    """Return the scale of one number of a draw; None if it has none, or too many values."""
    uniform = Law(laws.UNIFORM)
    if options := _options(draw):
        values, ends = [repr(v) for v, _ in options], [*accumulate(p for _, p in options)]
        middles = [end - share / 2 for end, (_, share) in zip(ends, options, strict=True)]
        return _Scale(
            uniform,
            [at for at, (_, share) in zip(middles, options, strict=True) if share],
            len(options),
            lambda at: options[min(bisect_left(ends, at), len(ends) - 1)][0],
            lambda value: middles[values.index(repr(value))],
        )
    shares = [*np.linspace(0, 1, 17)[:-1].tolist(), BELOW_ONE]
    if draw.request.method in UNIFORM:
        return _Scale(uniform, shares, MAX_VALUES, float, float)
    noise = noise_of(draw, index)
    if noise is None or noise.law.lattice:
        return None
    kind = float if np.ndim(draw.value) else type(draw.value)
    far = [4.0**power for power in range(12)]
    low, high = noise.law.support
    grid = [-x for x in far[::-1] if -x > low] + [x for x in (0.0, *far) if low <= x < high]
    return _Scale(
        noise.law,
        shares if noise.law.family is laws.UNIFORM else grid,
        MAX_VALUES,
        lambda at: kind(noise.location + noise.scale * at),
        lambda value: (float(value) - noise.location) / noise.scale,
    )


def _options(draw: Draw) -> list[tuple[Any, float]]:
    """Return what a draw chooses from, with probabilities; nothing of others, and of too many."""
    if draw.request.method != "choice" or np.ndim(draw.value):
        return []
    try:
        given = draw.request.arguments
    except TypeError:
        return []
    among: Any = given.get("a", given.get("seq"))
    options = list(range(int(among)) if isinstance(among, int | np.integer) else among)
    if not 0 < len(options) <= MAX_OPTIONS:
        return []
    shares = given.get("p")
    shares = [1 / len(options)] * len(options) if shares is None else map(float, shares)
    return list(zip(options, shares, strict=True))


class _Number:
    """A random number on one input, and outputs that it makes there."""

    def __init__(self, runs: Runs, side: int, element: Element, scale: _Scale) -> None:
        self._runs, self._side, self._element, self._scale = runs, side, element, scale
        self._tried = [self._run(at) for at in scale.grid]
        first, *others = self._tried
        # Places that change with it:
        self.moved = set[str]().union(*(of_runs.changed_leaves(first, run) for run in others))

    def _run(self, at: float) -> Run:
        value = self._scale.value_at(at)
        return self._runs.run(self._side, 0, of_runs.one_number(self._element, lambda _: value))

    def has_few(self, place: str) -> bool:
        """Return whether it gives a leaf so few values that these may be decided by it."""
        return len({_at(run, (place,)) for run in self._tried}) <= self._scale.most

    def probabilities(self, places: tuple[str, ...]) -> dict[Leaves, float]:
        """Return those of leaves; nothing if these do not follow from it, or are many."""
        ends: list[float] = []
        leaves = [_at(self._tried[0], places)]
        for (low, _), (high, run) in pairwise(zip(self._scale.grid, self._tried, strict=True)):
            while _at(run, places) != leaves[-1]:
                if len(ends) > self._scale.most:
                    return {}
                differs = partial(self._differs, places, leaves[-1])
                _, low = bracket(differs, low, high, (high - low) / 2**30)
                ends.append(low)
                leaves.append(_at(self._run(low), places))
        for usual in (self._runs.usual(self._side, noise) for noise in range(CHECKED_RUNS)):
            value = usual.value_of(self._element)
            following = None if value is None else leaves[bisect_left(ends, self._scale.at(value))]
            if following != _at(usual, places):
                return {}
        edges = np.array([-np.inf, *ends, np.inf])
        shares = np.exp(self._scale.law.log_between(edges[:-1], edges[1:])).tolist()
        probabilities: Counter[Leaves] = Counter()
        for some, share in zip(leaves, shares, strict=True):
            probabilities[some] += share
        return dict(probabilities)

    def _differs(self, places: tuple[str, ...], leaves: Leaves, at: float) -> bool:
        return _at(self._run(at), places) != leaves


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
    scale: float | None
    """That of noise; None of a coin or a choice."""

    @property
    def kind(self) -> str:
        if self.scale is None:
            return "too far apart"
        shared = len(self.places) > 1 and math.isinf(self.loss)
        return "shared noise" if shared else "too little noise"

    def __str__(self) -> str:
        values = ", ".join(map(format_leaf, self.leaves[:2])) + ", ..." * (len(self.leaves) > 2)
        verb = "is" if len(self.places) == 1 else "are"
        here, there = map(format_number, self.shares)
        return (
            f"by {format_draw(self.draw.request)} here, {format_places(self.places)} {verb} "
            f"{values} with probability {here} on D and {there} on D'"
        )


def find_deciding_draws(runs: Runs, claim: Guarantee) -> Iterator[Finding]:
    """Yield the line of leaves that random numbers decide, one each, and that lose too much."""
    ways = [
        sorted(way, key=lambda part: -part.loss)
        for way in zip(*_decided_leaves(runs, claim), strict=True)
    ]
    if not is_pure(claim):  # losses of other claims do not add up
        ways = [way[:1] for way in ways]
    # What is likelier on D is not lost together with what is likelier on D'.
    parts = max(ways, key=_total, default=[])
    loss = _total(parts)
    if loss <= claim.claimed * (1 + NEARLY_EQUAL):
        return
    number = format_number(loss)
    said = f"a loss of {number}" if is_pure(claim) else claim.at_least(number)
    said = "an infinite loss" if math.isinf(loss) else said
    if claim.parameter != "scale":
        said += f" for {format_number(claim.claimed)} claimed"
    worst, *others = parts
    with_others = f"with {format_places([p for o in others for p in o.places])}, " if others else ""
    line, certain = of_runs.place_of(worst.draw.stack), worst.kind == "shared noise"
    yield Finding(worst.kind, line, f"{worst}: {with_others}{said}", certain=certain, loss=loss)
    yield from find_caller(worst.draw.stack, loss)


def is_pure(claim: Guarantee) -> bool:
    """Return whether eps is claimed without a delta."""
    return claim.parameter == "eps" and not claim.delta


def _total(parts: Sequence[_Decided]) -> float:
    return sum(part.loss for part in parts)


def _loss(claim: Guarantee, p: float, q: float) -> float:
    """Return the loss by leaves with these probabilities; beside a delta, by all others too."""
    if is_pure(claim):
        return 0.0 if p <= q else math.log(p / q) if q else math.inf
    return float(claim.shown_by(p, q))


def _decided_leaves(runs: Runs, claim: Guarantee) -> Iterator[list[_Decided]]:
    """Yield the leaves that each random number alone decides on both inputs, where some differ.

    By what tells most of D in them, and by what tells most of D'.
    """
    here, there = runs.both(0)
    reaching = [runs.lines_of(place) for place in runs.differing if place not in WHOLE]
    alone = set().union(*(lines for lines in reaching if len(lines) == 1))
    elements = [
        (key, index)
        for key, draw in here.keyed.items()
        if key in there.keyed and of_runs.place_of(draw.stack) in alone
        for index in of_runs.indices(draw)
    ]
    numbers = []
    for element in elements if len(elements) <= MAX_NUMBERS else ():
        one, other = (_scale(run.keyed[element[0]], element[1]) for run in (here, there))
        if one is not None and other is not None:
            pair = _Number(runs, 0, element, one), _Number(runs, 1, element, other)
            numbers.append((element, pair))
    times = Counter(place for _, (one, other) in numbers for place in one.moved | other.moved)
    for (key, index), pair in numbers:
        places = [
            place
            for place in here.leaves | there.leaves
            if place in pair[0].moved | pair[1].moved and place not in WHOLE
            if times[place] == len(runs.lines_of(place)) == 1
            if all(one.has_few(place) for one in pair)
        ]
        chosen = tuple(sorted(places, key=lambda place: place not in runs.differing)[:MAX_PLACES])
        p, q = (one.probabilities(chosen) for one in pair)
        if p and q and not set(chosen).isdisjoint(runs.differing):
            shares = {leaves: (p.get(leaves, 0.0), q.get(leaves, 0.0)) for leaves in p | q}
            draw, noise = here.keyed[key], noise_of(here.keyed[key], index)
            ways = []
            for way in (1, -1):
                losses = {leaves: _loss(claim, *s[::way]) for leaves, s in shares.items()}
                worst = max(losses, key=losses.__getitem__)
                scale = None if noise is None else noise.scale
                ways.append(_Decided(losses[worst], chosen, worst, shares[worst], draw, scale))
            yield ways
