"""Which of many candidates are worth samples: those that go a way that nobody went."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pytest_dp.datasets.relations import Pair
from pytest_dp.sampling.calling import Call
from pytest_dp.search.looking import Clock, Lookout, Seen

FARTHER = 1.2
"""How many times as far apart as all before two inputs have to be put to count as new."""
MAX_OF_A_KIND = 2
"""Pairs that go the same two ways, at most."""
MAX_NOISES = 4
"""Different noise on more inputs than so many, and on a third of all, tells nothing."""


@dataclass(slots=True)
class Screen:
    """Sorts candidates by what is seen of them.

    Attributes
    ----------
    lookout : Lookout
    inside : callable
        Whether an input holds nothing that the claim's own do not; it may repeat nothing either
        that none of them repeats.
    steps : set
        All instructions that were taken so far.
    found : list
        Inputs that went new ways, in the order in which they did.
    """

    lookout: Lookout
    inside: Callable[[Any], bool]
    steps: set[Any] = field(default_factory=set)
    found: list[Any] = field(default_factory=list)
    _ways: dict[Hashable, int] = field(default_factory=dict)
    _noises: Counter[Hashable] = field(default_factory=Counter)
    _kinds: Counter[Hashable] = field(default_factory=Counter)
    _farthest: float = 0.0

    @property
    def blind(self) -> bool:
        """Whether nothing more can be seen."""
        return self.lookout.blind

    @property
    def sees(self) -> bool:
        """Whether anything can be seen of the mechanism, given time."""
        return self.lookout.sees

    def rank(self, pair: Pair) -> int | None:
        """How new a pair is: 0 is most, 3 not at all; None if it is not to be proposed."""
        d1, d2 = pair.inputs
        seen1, seen2 = self.look(d1), self.look(d2)
        if seen1 is None or seen2 is None:
            return None
        new = self._enter(d1, seen1) | self._enter(d2, seen2)
        kind = frozenset((self.way(seen1), self.way(seen2)))
        self._kinds[kind] += 1
        apart = _apart(seen1, seen2)
        farther = apart > FARTHER * self._farthest
        self._farthest = max(self._farthest, apart)
        if len(kind) > 1 and self._kinds[kind] <= MAX_OF_A_KIND:
            return 0
        if new:
            return 1
        return 2 if farther else 3

    def look(self, data: Any) -> Seen | None:
        """What is seen of an input; None if it is none that the mechanism takes.

        An input that the claim does not give, and at which the mechanism raises, may be one that it
        refuses.
        """
        seen = self.lookout.look(data)
        return None if seen is None or (seen.raised and not self.inside(data)) else seen

    def is_new(self, data: Any) -> bool:
        """Whether an input goes a way that no other went; it is known from then on."""
        seen = self.look(data)
        return seen is not None and self._enter(data, seen)

    def told(self, data: Any) -> Hashable | None:
        """What tells an input from others."""
        seen = self.look(data)
        return None if seen is None else self.way(seen)

    def way(self, seen: Seen) -> Hashable:
        """What is told apart."""
        telling = len(self._noises) <= max(MAX_NOISES, len(self._ways) // 3)
        return seen.way, seen.form, seen.noise if telling else ()

    def _enter(self, data: Any, seen: Seen) -> bool:
        self._noises[seen.noise] += 1
        way = self.way(seen)
        new = way not in self._ways
        self._ways[way] = self._ways.get(way, 0) + 1
        self.steps |= seen.way
        if new:
            self.found.append(data)
        return new


def _apart(one: Seen, other: Seen) -> float:
    """How far the same random numbers put two outputs apart, in terms of what noise does."""
    if one.first is None or other.first is None or len(one.first) != len(other.first):
        return 0.0
    with np.errstate(all="ignore"):
        distance = float(np.mean(np.abs(one.first - other.first)))
    spread = min(one.spread, other.spread)
    if not math.isfinite(distance) or distance == 0:
        return 0.0
    return distance / spread if spread else math.inf


class Screened:
    """What the proposers of an audit share; nothing is done before it is asked for.

    Parameters
    ----------
    call : Call
    given : sequence of Pair
        Those of the claim.
    inside : callable
        As of a `Screen`.
    clock : Clock
        For making inputs, and for looking at them.
    seed : int
    """

    def __init__(
        self,
        call: Call,
        given: Sequence[Pair],
        inside: Callable[[Any], bool],
        clock: Clock,
        seed: int,
    ) -> None:
        self.call, self.given, self.clock = call, given, clock
        self._inside, self._seed = inside, seed
        self.rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))

    @cached_property
    def screen(self) -> Screen:
        """What is known, beginning with the pairs of the claim."""
        screen = Screen(Lookout(self.call, self._seed, self.clock), self._inside)
        for pair in self.given:
            if not screen.blind:
                screen.rank(pair)
        return screen
