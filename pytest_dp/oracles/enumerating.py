"""Enumeration: every path that a mechanism can take on an input, and its output's distribution."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import default_rng

from pytest_dp.oracles.branching import Path, Weight, explore_paths
from pytest_dp.oracles.deferred import (
    COMBINED,
    COMPARED,
    HELD,
    is_draw,
)
from pytest_dp.oracles.enumerated import (
    DEPENDENT,
    TOO_MANY,
    Distribution,
    Factors,
    Key,
    flatten_output,
    group_outputs,
    have_equal_laws,
    key_of_leaves,
)
from pytest_dp.oracles.open_numbers import Enumeration
from pytest_dp.outputs.raised import Raised, attributes
from pytest_dp.running.calling import Call, RunCounter
from pytest_dp.running.chunks import Input
from pytest_dp.running.copies import CannotCopy
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generator_stand_ins import CannotInstrument
from pytest_dp.running.instrumented import apply_instrument, run_copy

BASES = 10
"""Runs in which each choice is changed. Fewer: a choice seems to change less than it does."""
OTHERS = 4
"""Values of other choices for each part. Fewer: dependent parts count as independent."""
MAX_CHOICES = 200
"""In a run. With more, enumeration takes seconds."""
MAX_DEPTH = 5
"""Levels of containers in which open draws are looked for. Fewer: deeper ones go unseen."""
WEIGHT_ERROR = 1e-13
"""Relative error of a weight that is no fraction. Smaller: rounding may make a bound too small."""
UNKNOWN_LEFT = 1e-12
"""Probability that may stay unknown. Larger: losses of rare outputs are missed."""
MAX_WORK = 8_192
"""Runs of an enumeration. More take longer; fewer: losses are not known."""

TOO_SLOW = "runs take too long"


def has_open_draw(output: Any, depth: int = MAX_DEPTH) -> bool:
    """Return whether an output holds a deferred number, up to `depth` containers deep."""
    if is_draw(output):
        return True
    if isinstance(output, str | bytes | int | float | Raised | None) or not depth:
        return False
    if isinstance(output, np.ndarray):
        inside: Iterable[Any] = output.flat if output.dtype.hasobject else ()
    elif isinstance(output, dict):
        inside = [*output.keys(), *output.values()]
    elif isinstance(output, list | tuple | set | frozenset):
        inside = output
    else:
        inside = (attributes(output) or {}).values()
    return any(has_open_draw(member, depth - 1) for member in inside)


def enumerate_outputs(call: Call, data: Any, deadline: Deadline) -> Distribution:
    """Run along all paths on an input; return the distribution of outputs, each run a new copy.

    Outcomes that are not enumerated after `MAX_WORK` are residual. If draws are compared with each
    other, the first is the shared one (`Enumeration`). Raises CannotInstrument if the paths cannot
    be enumerated, are too many, or take too long.
    """

    def enumerate_by(instrument: Enumeration) -> Distribution:
        with enumeration(instrument, deadline):
            paths = Paths(call, data, instrument)
            paths.explore(deadline)
            return paths.distribution()

    try:
        return enumerate_by(Enumeration())
    except CannotInstrument as reason:
        if str(reason) not in (COMBINED, COMPARED):
            raise
    first = Enumeration(shared=True)
    enumerate_by(first)  # which shows where comparisons put kinks into integrands
    return enumerate_by(Enumeration(shared=True, found=first))


@contextmanager
def enumeration(instrument: Enumeration, deadline: Deadline) -> Iterator[None]:
    """Put an instrument in place for runs; raise CannotInstrument if copies or time run out."""
    try:
        with apply_instrument(instrument, deadline):
            yield
    except CannotCopy as reason:
        raise CannotInstrument(str(reason)) from None
    except OutOfTime:
        raise CannotInstrument(TOO_SLOW) from None
    except (MemoryError, RecursionError) as error:
        raise CannotInstrument(type(error).__name__) from None


class Paths:
    """The runs of an enumeration along the paths of a mechanism on one input.

    `outputs` and `weights` are those of paths that came to an end; `left` and `abandoned` are the
    probabilities of paths that were not run, and of those that were given up. `inexact` is the
    largest number of rounded choices on a path.
    """

    def __init__(
        self,
        call: Call,
        data: Any,
        instrument: Enumeration | None = None,
    ) -> None:
        self.call = replace(call, made=RunCounter())  # no runs of the audit
        self.data = data if isinstance(data, Input) else Input(data)
        self.instrument = instrument or Enumeration()
        self.outputs: list[Any] = []
        self.weights: list[Weight] = []
        self.left: Weight = 1
        self.abandoned: Weight = 0
        self.runs = self.inexact = self.choices = 0
        # after so many runs, so much of the probability has to be known
        self._steps = iter(((64, 0.1), (256, 0.65), (1_024, 0.95)))
        self._next: tuple[float, float] = next(self._steps)

    def explore(
        self, deadline: Deadline, path_of: Callable[[tuple[int, ...]], Path] = Path
    ) -> None:
        """Run along all paths, or as many as there is work for, and keep their outputs.

        Raises OutOfTime, and CannotInstrument if a run cannot be enumerated, or too many paths are
        left.
        """
        for _, _, left in explore_paths(self._run, path_of):
            self.left = left
            if self._are_done():
                return
            if deadline.remaining() <= 0:
                raise OutOfTime

    def _run(self, path: Path) -> None:
        """Run a copy of the mechanism along a path, and keep its output and weight.

        Raises CannotInstrument if the run is refused; a run that was too rare adds to `abandoned`.
        """
        instrument = self.instrument
        instrument.start(path)
        self.runs += 1
        output = None
        try:
            output = run_copy(self.call, self.data, instrument)
            if not instrument.abandoned and not instrument.refusal and has_open_draw(output):
                instrument.refuse(HELD)
        except CannotInstrument:
            if not instrument.abandoned:
                raise
        if instrument.refusal:  # the mechanism may have caught it
            raise CannotInstrument(instrument.refusal)
        self.choices += len(path.taken)
        if instrument.abandoned:
            self.abandoned += path.weight
            return
        self.inexact = max(self.inexact, instrument.inexact)
        self.outputs.append(output)
        self.weights.append(path.weight)

    def _are_done(self) -> bool:
        """Return whether nearly all of the probability is enumerated, or the work is used up.

        Raises CannotInstrument if too little of it is enumerated for the work so far.
        """
        left, work = float(self.left + self.abandoned), self.runs + self.choices / 10
        while work >= self._next[0]:
            if left > UNKNOWN_LEFT and 1 - left < self._next[1]:
                raise CannotInstrument(TOO_MANY)
            self._next = next(self._steps, (math.inf, 0.0))
        return left <= UNKNOWN_LEFT or work >= MAX_WORK

    def distribution(self) -> Distribution:
        """Return the distribution of the outputs of the paths that were run."""
        residual = max(self.left, 0) + self.abandoned
        return group_outputs(self.outputs, self.weights, residual, self.rounding)

    @property
    def rounding(self) -> float:
        """The relative error of the weights."""
        return self.inexact * WEIGHT_ERROR


# Outputs of independent parts


def enumerate_law(call: Call, data: Any, deadline: Deadline) -> Distribution | Factors:
    """Return the law of a mechanism's outputs on an input, or the laws of independent parts.

    Raises CannotInstrument if neither outputs nor their parts can be enumerated.
    """
    try:
        return enumerate_outputs(call, data, deadline)
    except CannotInstrument as reason:
        if str(reason) != TOO_MANY:
            raise
    return factor_laws(call, data, deadline)


class FixedPath(Path):
    """A path whose choices a seed makes, except the `free` choices.

    Seed 0 takes the likeliest branch each time, other even seeds draw by the weights, and odd ones
    draw all branches alike. At the choice `changed`, the path takes another branch than that.
    `seen` has the weights of the branches at all choices.
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
        """Return the branch by the seed, or as `Path` if the choice is free; note all weights."""
        number = len(self.taken)
        self.seen.append(tuple(weights))
        if number in self._free:
            return super().choose(weights)
        possible = [branch for branch, weight in enumerate(weights) if weight > 0]
        generator = default_rng((self._seed, number))
        if self._seed % 2:
            choice = int(generator.integers(len(possible)))
        else:
            likely = np.array([float(weights[branch]) for branch in possible])
            drawn = int(generator.choice(len(possible), p=likely / likely.sum()))
            choice = drawn if self._seed else int(likely.argmax())
        if number == self._changed and len(possible) > 1:
            choice += 1 + int(generator.integers(len(possible) - 1))
        self.taken.append(possible[choice % len(possible)])
        return self.taken[-1]


def factor_laws(call: Call, data: Any, deadline: Deadline) -> Factors:
    """Return the laws of independent parts of outputs on an input.

    Runs in which single choices differ show which parts of an output a choice changes; the law of
    each part has to be the same whatever the other choices are. Raises CannotInstrument if there
    are no such parts, or they cannot be enumerated.
    """
    runs = _Runs(call, data, deadline)
    with enumeration(runs.instrument, deadline):
        plain = [(runs.outcomes(seed)[0][0], runs.last.seen) for seed in range(BASES)]
        blocks = _blocks_of(runs, plain)
        if len(blocks) < 2:
            raise CannotInstrument(TOO_MANY)
        parts = {}
        for choices, places in blocks:
            laws = [
                runs.law_of_part(choices, places, seed, leaves)
                for seed, (leaves, _) in enumerate(plain[:OTHERS])
            ]
            if not all(have_equal_laws(laws[0], law) for law in laws[1:]):
                raise CannotInstrument(DEPENDENT)
            parts[places] = laws[0]
    return Factors(runs.structure, parts, runs.rounding)


Plain = tuple[list[Any], list[Sequence[Weight]]]
"""The leaves of a run in which no choice is free, and the weights of its choices."""


def _blocks_of(runs: _Runs, plain: Sequence[Plain]) -> list[tuple[set[int], tuple[int, ...]]]:
    """Return blocks of choices, and the places of the leaves that they change; no two overlap.

    Choices whose probabilities another choice changes are in its block. Blocks without a leaf are
    left out.
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
    """Runs along paths that a seed fixes except for some choices; all have equally many choices."""

    def __init__(self, call: Call, data: Any, deadline: Deadline) -> None:
        self.instrument, self.rounding = Enumeration(), 0.0
        self._call, self._data, self._deadline = call, Input(data), deadline
        self.structure: Hashable = None
        self.choices: int | None = None
        self.last = FixedPath((), 0)

    def outcomes(
        self, seed: int, free: Collection[int] = (), changed: int | None = None
    ) -> list[tuple[list[Any], Weight]]:
        """Run along all paths with these free choices; return the leaves of outputs, and weights.

        Raises CannotInstrument if paths have other numbers of choices than before, or outputs
        another structure.
        """
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

    def law_of_part(
        self,
        choices: Collection[int],
        places: tuple[int, ...],
        seed: int,
        plain: Sequence[Any],
    ) -> dict[Key, Weight]:
        """Return the law of the leaves at some places by choices that change no other leaves.

        Raises CannotInstrument if these choices change other leaves.
        """
        law: dict[Key, Weight] = {}
        for leaves, weight in self.outcomes(seed, choices):
            key = key_of_leaves(leaves, places)
            law[key] = law.get(key, 0) + weight
            if not _find_changed(leaves, plain) <= set(places):
                raise CannotInstrument(DEPENDENT)
        return law


def _find_changed(leaves: Sequence[Any], before: Sequence[Any]) -> set[int]:
    """Return the places at which two lists of equal length differ."""
    return {
        at
        for at, (one, other) in enumerate(zip(leaves, before, strict=True))
        if type(one) is not type(other) or not (one == other or (one != one and other != other))
    }
