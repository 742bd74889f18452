"""Replays of a pair of inputs under one shift, or under one shift for each path.

One input may ask for draws that its neighbour does not ask for, such as those of a group of one
record. Where such draws are low, nothing of them may be released: then the run on the neighbour
gives the same without them. With at most the probability that one of them is higher, outputs are
ones that only one input has; this probability adds to δ.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.random import default_rng

from pytest_dp.basics.arrays import Floats
from pytest_dp.oracles.handing_out import (
    MAX_ELEMENTS,
    NO_GAP,
    AnsweredRequest,
    Gap,
    ReplayedRun,
    Replayer,
    Shift,
)
from pytest_dp.oracles.standard_draws import Numbers, Pinned, Plan
from pytest_dp.outputs.flatten import flatten
from pytest_dp.outputs.raised import Raised, same

ROUNDING_TRIALS = 6
"""Replays with draws moved by rounding errors, where outputs differ. With fewer, a sound alignment
is dropped more often because a ratio or a rounding step amplifies such errors."""
ROUNDING_ERROR = 2.0**-47
"""Relative size of such errors: that of 32 operations on floats."""
AMPLIFIED = 8.0
"""How many times more than in these trials outputs may differ."""
MAX_INPUTS_KEPT = 4
"""Inputs whose runs are kept for further pairs. More take memory; with fewer, runs on the data that
many pairs share are made for each."""
SCALES_DEPEND = "the scale of a draw depends on other draws"
OTHER_LAWS = "it draws from other laws, or more often, on one input than on the other"
OUTPUTS_DIFFER = "no shift of its draws cancels the difference of the inputs"
ROUNDING = 1e-13
"""Relative difference of numbers that count as equal at once. With a larger one, an exact number
of a large dataset would look like that of its neighbour."""
MAX_CANDIDATES = 60
"""Ways to leave out draws that are tried. With more, pairs that have no alignment take longer."""
LOW = -60.0
"""Scales below the centre, where a draw counts as one that releases nothing: further down than
noise ever is."""
ORDINARY = 1.0
"""Scales above the centre, where most draws have to release nothing too: with less, draws are left
out that are released in many runs, which no claim allows."""
STEPS = 28
"""Halvings of the interval in which the highest draw is that releases nothing. With fewer, the
margin below is less than a step; with more, runs are made in vain."""
MARGIN = 1e-6
"""Scales by which draws stay below that. A larger margin makes δ larger by this share."""


class NotAligned(Exception):  # noqa: N818  a way out, not an error
    """No alignment was found; the message says why."""


@dataclass(slots=True)
class Memory:
    """Runs and counts that alignments on several pairs of one mechanism share."""

    runs: dict[Any, tuple[Any, dict[Any, ReplayedRun]]] = field(default_factory=dict)
    """Runs with draws that are not moved, by the input and the plan of the replays; and the input,
    of which no other object may get the identity."""
    made: int = 0
    """Runs for replays so far, whether an alignment was found or not."""
    max_runs: float = math.inf
    """Runs for replays, at most; where they are over, there is no alignment."""
    by_path: bool = False
    """Whether the last pair was aligned by a shift for each path: the next is tried so first."""

    def known_side(self, keys: Sequence[Any], plan: Plan) -> int:
        """Return the number of the input of a pair, by their keys, of which more is known."""
        of_one, of_other = ((key, *plan.key) in self.runs for key in keys)
        return int(of_other and not of_one)

    def runs_on(self, key: Any, data: Any, plan: Plan) -> dict[Any, ReplayedRun]:
        """Return the runs on an input by the seeds of their draws: a dict, which callers add to.

        Inputs of one `key` are equal; `data` is held so that its id stays its own. The inputs used
        longest ago are forgotten.
        """
        kept = self.runs.pop((key, *plan.key), (data, {}))
        while len(self.runs) >= MAX_INPUTS_KEPT:
            del self.runs[next(iter(self.runs))]
        self.runs[key, *plan.key] = kept
        return kept[1]


@dataclass(slots=True)
class Pairing:
    """The replays of one pair of inputs, in one direction.

    `source` and `target` are the numbers of the inputs in the replayer. `gaps` says which draws
    they lack.
    """

    replayer: Replayer
    source: int
    target: int
    gaps: tuple[Gap, Gap] = (NO_GAP, NO_GAP)
    pins: Mapping[tuple[int, int], float] = field(default_factory=dict)
    """Values in scales of draws that only one input asks for; how high they may be at most unless
    `exactly`."""
    exactly: bool = False
    sizes: dict[int, float] = field(default_factory=dict)
    """The largest number that the draws of a request are added to."""

    def pin_draws(self, numbers: Numbers) -> Numbers | Pinned:
        """Return the numbers with the draws that only one input asks for kept low."""
        return Pinned(numbers, self.pins, exactly=self.exactly) if self.pins else numbers

    def on_source(self, numbers: Numbers, *, tracked: bool = False) -> ReplayedRun:
        """Return the run on the source."""
        return self.noted(
            self.replayer.run(
                self.source, self.pin_draws(numbers), gap=self.gaps[0], tracked=tracked
            )
        )

    def on_target(self, numbers: Numbers, shift: Shift, *, tracked: bool = False) -> ReplayedRun:
        """Return the run on the target, with the draws moved by a shift."""
        return self.noted(
            self.replayer.run(
                self.target, self.pin_draws(numbers), shift, self.gaps[1], tracked=tracked
            )
        )

    def noted(self, run: ReplayedRun) -> ReplayedRun:
        """Return a run, after a look at how large the numbers are that draws are added to."""
        for each in run.record.sums:
            for at, _ in each.form:
                number = at // MAX_ELEMENTS
                self.sizes[number] = max(abs(each.constant), self.sizes.get(number, 0.0))
        return run

    def agrees(self, numbers: Numbers, shift: Shift, output: Any, moved: ReplayedRun) -> bool:
        """Return whether the outputs of two replays are equal to rounding.

        Where they differ, replays whose draws are moved by rounding errors say by how much
        outputs may.
        """
        found = differences(output, moved.output)
        if found is not None and not found.any():
            return True
        generator, spread = default_rng(numbers.seed), np.zeros(0 if found is None else len(found))
        for _ in range(ROUNDING_TRIALS):
            rounded = {
                each.number: self._round(generator, shift, each, noise)
                for each, noise in zip(moved.drawn, moved.noise, strict=True)
                if each.law is not None and not each.law.lattice
            }
            again = self.on_target(numbers, {**shift, **rounded}).output
            if agree(output, again):
                return True
            apart = differences(moved.output, again)
            if found is not None and apart is not None:
                spread = np.maximum(spread, apart)
        return found is not None and bool((found <= AMPLIFIED * spread).all())

    def _round(self, generator: Any, shift: Shift, each: AnsweredRequest, noise: Floats) -> Floats:
        missing = self.gaps[1].elements.get(each.number, ())
        before = shift.get(each.number, np.zeros(len(noise) + len(missing)))
        size = np.abs(noise).max(initial=0.0) + np.abs(before).max(initial=0.0)
        size += self.sizes.get(each.number, 0.0)
        errors = generator.choice([-1.0, 1.0], len(before)) * ROUNDING_ERROR * size
        moved: Floats = before + errors
        return moved


@dataclass(slots=True)
class Laws:
    """The laws of draws, by a key, which have to be the same in all replays."""

    gaps: tuple[Gap, Gap]
    seen: dict[Any, AnsweredRequest] = field(default_factory=dict)

    def check(self, ours: ReplayedRun, theirs: ReplayedRun, key: Any = None) -> None:
        """Raise NotAligned unless both runs have draws of the same laws as all before."""
        left, right = (
            [_without(each, other) for each in run.drawn if each.number not in other.requests]
            for run, other in zip((ours, theirs), reversed(self.gaps), strict=True)
        )
        if [each.number for each in left] != [each.number for each in right]:
            raise NotAligned(OTHER_LAWS)
        if not all(map(AnsweredRequest.is_like, left, right)):
            raise NotAligned(OTHER_LAWS)
        for each in ours.drawn:
            before = self.seen.setdefault((key, each.number), each)
            if before.law is not None and not before.is_like(each):
                raise NotAligned(SCALES_DEPEND)


def _without(each: AnsweredRequest, gap: Gap) -> AnsweredRequest:
    """Return draws without those that the other input does not ask for."""
    missing = gap.elements.get(each.number)
    return replace(each, scale=np.delete(each.scale, missing)) if missing else each


_NUMBER = re.compile(r"-?\d+\.\d+(?:[eE][-+]?\d+)?|-?\d+[eE][-+]?\d+")
"""A number with a fraction in a text."""


def differences(left: Any, right: Any) -> Floats | None:
    """Return by how much the numbers of two outputs differ; None if anything else does.

    Numbers that count as equal at once differ by 0.
    """
    if isinstance(left, Raised) or isinstance(right, Raised):
        return np.zeros(0) if left == right else None
    if type(left) is type(right) is float:
        found = _difference(left, right)
        return None if found is None else np.array([found])
    types = {type(left), type(right)}
    flat, _, offsets, _, structures, forms = flatten([left, right], types)
    if structures[0] != structures[1] or forms.which[0] != forms.which[1]:
        return None
    ours, theirs = flat[: offsets[1]], flat[offsets[1] :]
    each = [_difference(one, other) for one, other in zip(ours, theirs, strict=True)]
    return None if any(value is None for value in each) else np.array(each, float)


def agree(left: Any, right: Any) -> bool:
    """Return whether two outputs are equal at once."""
    found = differences(left, right)
    return found is not None and not found.any()


def _difference(left: Any, right: Any) -> float | None:
    if type(left) is not type(right):
        return None
    if isinstance(left, float | np.floating | complex | np.complexfloating):
        if left == right or (left != left and right != right):
            return 0.0
        difference = abs(left - right)
        if not np.isfinite(difference):
            return None
        small = difference <= ROUNDING * max(abs(left), abs(right))
        return 0.0 if small and not (_is_whole(left) and _is_whole(right)) else float(difference)
    if isinstance(left, str):
        return _of_texts(left, right)
    return 0.0 if same(left, right) else None


def _is_whole(number: Any) -> bool:
    """Return whether it may be an identifier or a count: such numbers are not rounded."""
    return isinstance(number, float | np.floating) and bool(number % 1 == 0)


def _of_texts(left: str, right: str) -> float | None:
    """Return the largest difference of numbers with a fraction in texts that are equal else."""
    if left == right:
        return 0.0
    if _NUMBER.sub("#", left) != _NUMBER.sub("#", right):
        return None
    pairs = zip(_NUMBER.findall(left), _NUMBER.findall(right), strict=True)
    found = [_difference(float(one), float(other)) for one, other in pairs]
    return None if any(each is None for each in found) else max(map(float, found))  # type: ignore[arg-type]


Most = dict[tuple[int, int], float]
"""How high draws may be, in scales, by the number of their request and their place in it."""


def candidates(
    ours: ReplayedRun, theirs: ReplayedRun
) -> Iterator[tuple[tuple[Gap, Gap], list[tuple[int, int]]]]:
    """Return the gaps that make two runs ask for the same draws, and the draws that they leave out.

    The first gap is that of `ours`.
    """
    for gap, missing in itertools.islice(_of_larger(ours.drawn, theirs.drawn), MAX_CANDIDATES):
        yield (NO_GAP, gap), missing
    for gap, missing in itertools.islice(_of_larger(theirs.drawn, ours.drawn), MAX_CANDIDATES):
        yield (gap, NO_GAP), missing


def _of_larger(
    larger: list[AnsweredRequest], smaller: list[AnsweredRequest]
) -> Iterator[tuple[Gap, list[tuple[int, int]]]]:
    if len(larger) > len(smaller):
        known = [each.number for each in larger if each.law is not None]
        for left_out in itertools.combinations(known, len(larger) - len(smaller)):
            draws = [(k, place) for k in left_out for place in range(larger[k].count)]
            yield Gap(requests=frozenset(left_out)), draws
    if len(larger) != len(smaller):
        return
    sizes = [
        (one.number, one.count, one.count - other.count)
        for one, other in zip(larger, smaller, strict=True)
    ]
    differing = [size for size in sizes if size[2]]
    if not differing or len({size[1:] for size in differing}) > 1 or differing[0][2] < 0:
        return
    _, count, excess = differing[0]
    for places in itertools.combinations(range(count), excess):
        elements = {number: places for number, _, _ in differing}
        yield Gap(elements=elements), [(k, place) for k in elements for place in places]


def highest(
    draws: list[tuple[int, int]], agrees: Callable[[Most, int], bool], replays: int
) -> Most | None:
    """Return how high draws may be for runs to agree, each while the others are low.

    ``agrees(values, replay)`` says whether the runs of a replay agree where these draws have these
    values. None if it depends on the replay.
    """
    found: Most = {}
    for draw in draws:
        values = dict.fromkeys(draws, LOW)
        low, high = LOW, -LOW
        for _ in range(STEPS):
            middle = (low + high) / 2
            values[draw] = middle
            low, high = (middle, high) if agrees(values, 0) else (low, middle)
        found[draw] = values[draw] = low - MARGIN
        if not all(agrees(values, replay) for replay in range(replays)):
            return None
    return found


def probability_above(most: Most, drawn: list[AnsweredRequest]) -> float:
    """Return a bound on the probability that one of the draws is higher."""
    by_number = {each.number: each for each in drawn}
    total = 0.0
    for (number, _), value in most.items():
        law = by_number[number].law
        assert law is not None
        total += math.exp(float(law.log_above(np.asarray(value))))
    return min(total, 1.0)
