"""Outputs of independent parts, such as bits that are flipped one by one.

All combinations of their values may be too many to enumerate, but not the values of each part. Runs
in which single choices differ show which parts of an output a choice changes; and the law of each
part has to be the same whatever the other choices are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.random import default_rng

from pytest_dp.basics.arrays import Outputs
from pytest_dp.oracles.branching import Path, Weight
from pytest_dp.oracles.enumerated import Distribution, EnumeratedPair, group_outputs
from pytest_dp.oracles.enumerating import (
    TOO_MANY,
    Paths,
    enumerate_outputs,
    enumeration,
    flatten_output,
)
from pytest_dp.oracles.open_numbers import Enumeration
from pytest_dp.outputs.raised import Raised
from pytest_dp.running.calling import Call
from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.generator_stand_ins import CannotInstrument

BASES = 10
"""Runs in which each choice is changed. With fewer, mechanisms have no parts more often because a
choice seems to change less than it does; with more, enumeration takes longer."""
OTHERS = 4
"""Values of the other choices with which each part is enumerated. With fewer, parts that depend on
each other count as independent more often; with more, enumeration takes longer."""
MAX_CHOICES = 200
"""In a run. With more, enumeration takes seconds."""
MAX_COMBINATIONS = 20_000
"""Of the values of parts that differ between two inputs. With more, comparisons take seconds."""
SAME = 1e-12
"""Relative difference of probabilities that is rounding."""
DEPENDENT = "parts of its output depend on each other"

Key = tuple[tuple[str, Any], ...]
"""Types and values of some numbers of an output."""


@dataclass(frozen=True, slots=True)
class Factors:
    """The laws of independent parts of an output, by the places of their numbers in it."""

    structure: Hashable
    parts: dict[tuple[int, ...], dict[Key, Weight]]
    rounding: float


@dataclass(frozen=True)
class FactoredPair(EnumeratedPair):
    """By the distributions of those parts of outputs that differ between D and D'."""

    structures: tuple[Hashable, Hashable]
    places: tuple[int, ...]

    def evidence_against(self, side: int, outputs: Outputs) -> float:
        return super().evidence_against(side, [self._part_of(side, each) for each in outputs])

    def _part_of(self, side: int, output: Any) -> Any:
        leaves: list[Any] = []
        known = not isinstance(output, Raised)
        if known and flatten_output(output, leaves) == self.structures[side]:
            return _key(leaves, self.places)
        return "another structure"


def law_of(call: Call, data: Any, deadline: Deadline) -> Distribution | Factors:
    """Return the law of a mechanism's outputs on an input.

    Raises CannotInstrument if neither outputs nor their parts can be enumerated.
    """
    try:
        return enumerate_outputs(call, data, deadline)
    except CannotInstrument as reason:
        if str(reason) != TOO_MANY:
            raise
    return factor_laws(call, data, deadline)


def compare(on_d: Distribution | Factors, on_d2: Distribution | Factors) -> EnumeratedPair:
    """Return what the laws of outputs on two inputs say; raises CannotInstrument if nothing."""
    if isinstance(on_d, Distribution) and isinstance(on_d2, Distribution):
        return EnumeratedPair((on_d, on_d2))
    if isinstance(on_d, Distribution) or isinstance(on_d2, Distribution):
        raise CannotInstrument(TOO_MANY)
    if on_d.structure != on_d2.structure or on_d.parts.keys() != on_d2.parts.keys():
        raise CannotInstrument(DEPENDENT)
    differ = [
        places for places, law in on_d.parts.items() if not _are_same(law, on_d2.parts[places])
    ]
    joint = tuple(
        _joint_law([side.parts[at] for at in differ], side.rounding) for side in (on_d, on_d2)
    )
    places = tuple(itertools.chain.from_iterable(differ))
    return FactoredPair((joint[0], joint[1]), (on_d.structure, on_d2.structure), places)


def _joint_law(parts: Sequence[dict[Key, Weight]], rounding: float) -> Distribution:
    """Return the joint law of independent parts: each outcome joins one outcome of every part.

    `rounding` is the error of each probability of a part.
    """
    if math.prod(map(len, parts)) > MAX_COMBINATIONS:
        raise CannotInstrument(TOO_MANY)
    combinations = list(itertools.product(*(part.items() for part in parts)))
    outputs = [
        tuple(itertools.chain.from_iterable(key for key, _ in combination))
        for combination in combinations
    ]
    weights = [math.prod(weight for _, weight in combination) for combination in combinations]
    return group_outputs(outputs, weights, 0, rounding * max(len(parts), 1))


class FixedPath(Path):
    """A path on which all choices but some are made by a seed, each branch as often as others.

    The choice `changed` is another one than without. `seen` has the weights of all choices.
    """

    def __init__(
        self,
        prefix: tuple[int, ...],
        seed: int,
        free: Collection[int] = (),
        changed: int | None = None,
    ) -> None:
        super().__init__(prefix)
        self._seed, self._free, self._changed = seed, free, changed
        self.seen: list[Sequence[Weight]] = []

    def choose(self, weights: Sequence[Weight]) -> int:
        number = len(self.taken)
        self.seen.append(tuple(weights))
        if number in self._free:
            return super().choose(weights)
        possible = [branch for branch, weight in enumerate(weights) if weight > 0]
        generator = default_rng((self._seed, number))
        choice = int(generator.integers(len(possible)))
        if number == self._changed and len(possible) > 1:
            choice += 1 + int(generator.integers(len(possible) - 1))
        self.taken.append(possible[choice % len(possible)])
        return self.taken[-1]


def factor_laws(call: Call, data: Any, deadline: Deadline) -> Factors:
    """Return the laws of independent parts of outputs.

    Raises CannotInstrument if there are none, or they cannot be enumerated.
    """
    runs = _Runs(call, data, deadline)
    with enumeration(runs.instrument, deadline):
        plain = [(runs.outcomes(seed)[0][0], runs.last.seen) for seed in range(BASES)]
        blocks = _blocks_of(runs, plain)
        if len(blocks) < 2:
            raise CannotInstrument(TOO_MANY)
        parts = {}
        for choices, places in blocks:
            laws = [runs.law_of(choices, places, seed, plain[seed][0]) for seed in range(OTHERS)]
            if not all(_are_same(laws[0], law) for law in laws[1:]):
                raise CannotInstrument(DEPENDENT)
            parts[places] = laws[0]
    return Factors(runs.structure, parts, runs.rounding)


Plain = tuple[list[Any], list[Sequence[Weight]]]
"""The leaves of a run in which no choice is free, and the weights of its choices."""


def _blocks_of(runs: _Runs, plain: Sequence[Plain]) -> list[tuple[set[int], tuple[int, ...]]]:
    """Return choices and the places of leaves that they change, none of which are in two blocks.

    A choice belongs to those whose probabilities it changes.
    """
    leaves, choices = len(plain[0][0]), runs.choices or 0
    blocks = [{number} for number in range(leaves + choices)]  # choices are numbered after leaves
    for choice in range(choices):
        touched = {leaves + choice}
        for seed, (before, seen) in enumerate(plain):
            ((after, _),) = runs.outcomes(seed, changed=choice)
            touched |= _find_changed(after, before)
            touched |= {leaves + at for at in _find_changed(runs.last.seen, seen)}
        joined = [block for block in blocks if block & touched]
        blocks = [block for block in blocks if not block & touched] + [set().union(*joined)]
    return [
        ({at - leaves for at in block if at >= leaves}, tuple(sorted(places)))
        for block in blocks
        if (places := {at for at in block if at < leaves})
    ]


class _Runs:
    """Runs along paths that are fixed but for some choices; all make equally many of them."""

    def __init__(self, call: Call, data: Any, deadline: Deadline) -> None:
        self.instrument, self.rounding = Enumeration(), 0.0
        self._call, self._data, self._deadline = call, Input(data), deadline
        self.structure: Hashable = None
        self.choices: int | None = None
        self.last = FixedPath((), 0)

    def outcomes(
        self, seed: int, free: Collection[int] = (), changed: int | None = None
    ) -> list[tuple[list[Any], Weight]]:
        """Return the leaves of outputs on all paths, and the weights of these."""
        paths = Paths(self._call, self._data, self.instrument)

        def path_of(prefix: tuple[int, ...]) -> Path:
            self.last = FixedPath(prefix, seed, free, changed)
            return self.last

        paths.explore(self._deadline, path_of)
        count = paths.choices // max(paths.runs, 1)
        if count != (self.choices or count) or count > MAX_CHOICES or paths.left or paths.abandoned:
            raise CannotInstrument(TOO_MANY)
        self.choices, self.rounding = count, max(self.rounding, paths.rounding)
        found = []
        for output, weight in zip(paths.outputs, paths.weights, strict=True):
            leaves: list[Any] = []
            structure = None if isinstance(output, Raised) else flatten_output(output, leaves)
            if structure is None or structure != (self.structure or structure):
                raise CannotInstrument(DEPENDENT)
            self.structure = structure
            found.append((leaves, weight))
        return found

    def law_of(
        self,
        choices: Collection[int],
        places: tuple[int, ...],
        seed: int,
        plain: Sequence[Any],
    ) -> dict[Key, Weight]:
        """Return the law of some leaves by choices that change no others."""
        law: dict[Key, Weight] = {}
        for leaves, weight in self.outcomes(seed, choices):
            key = _key(leaves, places)
            law[key] = law.get(key, 0) + weight
            if not _find_changed(leaves, plain) <= set(places):
                raise CannotInstrument(DEPENDENT)
        return law


def _find_changed(leaves: Sequence[Any], before: Sequence[Any]) -> set[int]:
    return {
        at
        for at, (one, other) in enumerate(zip(leaves, before, strict=True))
        if type(one) is not type(other) or not (one == other or (one != one and other != other))
    }


def _key(leaves: Sequence[Any], places: Sequence[int]) -> Key:
    return tuple((type(leaves[at]).__name__, leaves[at]) for at in places)


def _are_same(one: dict[Key, Weight], other: dict[Key, Weight]) -> bool:
    return one.keys() == other.keys() and all(
        math.isclose(weight, other[key], rel_tol=SAME) for key, weight in one.items()
    )
