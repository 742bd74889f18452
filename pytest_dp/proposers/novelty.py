"""Which of many candidates are worth samples: those with a behaviour that no other showed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from pytest_dp.data import kind_of
from pytest_dp.data.conversion import length
from pytest_dp.data.relations import Pair
from pytest_dp.pairs.unreached import Step
from pytest_dp.proposers.observing import Clock, Observation, Observer
from pytest_dp.running.calling import Call

MIN_GAIN = 1.25
"""Factor by which an answer moves more than before. Larger: small gains are lost; smaller: each
input is one."""
MIN_NOISES = 4
"""Different noises that may be new behaviour in any case. Larger: noise counts as behaviour;
smaller: it is left out."""

KNOWN = 3
"""The rank of pairs that show nothing new, given after those of `Screen.rank`."""


class Screen:
    """Ranks candidates by what their runs show; nothing is run before it is needed.

    The `pairs` are those of the claim, which are known from the start. `inside` tells whether an
    input is inside the claim, and `allows` whether one may be proposed at all. The clock runs for
    making inputs and for observing them.
    """

    def __init__(
        self,
        call: Call,
        pairs: Sequence[Pair],
        inside: Callable[[Any], bool],
        clock: Clock,
        seed: int,
        allows: Callable[..., bool] = lambda _: True,
        *,
        is_sample: bool = False,
    ) -> None:
        self.call, self.pairs, self.clock = call, pairs, clock
        self._inside, self._allows, self._seed = inside, allows, seed
        self.rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
        self.new_inputs: list[Any] = []
        """Inputs that showed a new behaviour, in order."""
        inputs = (data for pair in pairs for data in (pair.d1, pair.d2))
        self.records = max((length(data) for data in inputs if kind_of(data)), default=1)
        """The most that an input of the claim has."""
        self._observer: Observer | None = None
        self._behaviours: set[Hashable] = set()
        self._noises: set[Hashable] = set()
        self._kinds: Counter[Hashable] = Counter()
        self._farthest, self._works = 0.0, False
        self._is_sample, self._steps_inside = is_sample, set[Step]()

    @property
    def observer(self) -> Observer:
        """What observes inputs; those of the claim first."""
        if self._observer is None:
            self._observer = Observer(self.call, self._seed, self.clock)
            for pair in self.pairs:
                if not self.blind:
                    self.rank(pair)
        return self._observer

    @property
    def steps(self) -> set[Step]:
        """All instructions that observed runs executed, as far as any were observed.

        Of a claim that means more inputs than it gives, those of runs on the given ones.
        """
        if self._observer is None:
            return set()
        return self._steps_inside if self._is_sample else self._observer.steps

    @property
    def blind(self) -> bool:
        """Whether nothing more can be observed."""
        return self.observer.blind

    def rank(self, pair: Pair) -> int | None:
        """How new a pair is: 0 is the newest, KNOWN not at all; None if it must not be proposed."""
        d1, d2 = pair.inputs
        observation1, observation2 = self._observed(d1), self._observed(d2)
        if observation1 is None or observation2 is None:
            return None
        is_new = self._enter(d1, observation1) | self._enter(d2, observation2)
        kind = frozenset((self._behaviour(observation1), self._behaviour(observation2)))
        self._kinds[kind] += 1
        apart = _apart(observation1, observation2)
        is_farther = apart > MIN_GAIN * self._farthest
        self._farthest = max(self._farthest, apart)
        if len(kind) > 1 and self._kinds[kind] <= 2:
            return 0
        if is_new:
            return 1
        return 2 if is_farther else KNOWN

    def is_new(self, data: Any) -> bool:
        """Whether an input shows a behaviour that no other did; it is known from then on."""
        observation = self._observed(data)
        return observation is not None and self._enter(data, observation)

    def behaviour_of(self, data: Any) -> Hashable | None:
        """A key that is equal for inputs that behave alike; None for one that is not proposed."""
        observation = self._observed(data)
        return None if observation is None else self._behaviour(observation)

    def _observed(self, data: Any) -> Observation | None:
        """What runs on an input show; None if it is not to be proposed.

        An input that the claim does not give, and at which the mechanism raises, may be one that it
        refuses. A copy that always raises says nothing about the mechanism.
        """
        observation = self.observer.observe(data) if self._allows(data) else None
        if observation is None:
            return None
        self._works |= not observation.raised
        if self._is_sample and not self._steps_inside.issuperset(observation.coverage):
            self._steps_inside |= observation.coverage if self._inside(data) else set()
        refused = observation.raised and self._works and not self._inside(data)
        return None if refused else observation

    def _behaviour(self, observation: Observation) -> Hashable:
        uses_noise = len(self._noises) <= max(MIN_NOISES, len(self._behaviours) // 3)
        return observation.coverage, observation.form, observation.noise if uses_noise else ()

    def _enter(self, data: Any, observation: Observation) -> bool:
        """Record an observation; returns whether its behaviour is new."""
        self._noises.add(observation.noise)
        behaviour = self._behaviour(observation)
        is_new = behaviour not in self._behaviours
        self._behaviours.add(behaviour)
        if is_new:
            self.new_inputs.append(data)
        return is_new


def _apart(one: Observation, other: Observation) -> float:
    """How far apart outputs on the same random numbers are, in units of their noise."""
    if one.numbers is None or other.numbers is None or len(one.numbers) != len(other.numbers):
        return 0.0
    with np.errstate(all="ignore"):
        distance = float(np.mean(np.abs(one.numbers - other.numbers)))
    spread = min(one.spread, other.spread)
    if not math.isfinite(distance) or distance == 0:
        return 0.0
    return distance / spread if spread else math.inf
