"""Outcomes of traced runs: outputs as functions of draws, under conditions on these."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from pytest_dp.errors import ClaimError, MechanismError
from pytest_dp.known.affine import Affine
from pytest_dp.known.arrays import array_of, of_function, of_ufunc
from pytest_dp.known.branching import Branching
from pytest_dp.known.conversions import FLOAT, INT, functions_of_draws
from pytest_dp.known.finite import Finite
from pytest_dp.known.lazy import Lazy
from pytest_dp.known.monotone import is_draw, objects
from pytest_dp.known.paths import Path, Weight, explored
from pytest_dp.known.trace import Condition, Interval, Trace, simplest
from pytest_dp.limits import STEPS, THOUSAND
from pytest_dp.outputs.outcome import Raised
from pytest_dp.randomness.laws import INTEGERS, UNIFORM, Law
from pytest_dp.randomness.stand_ins import CannotInstrument
from pytest_dp.sampling.calling import Call
from pytest_dp.sampling.deadline import Deadline, OutOfTime
from pytest_dp.sampling.instrumented import apply_instrument, run_copy


class Tracer(Branching):
    """Answers draws by traced numbers of their laws, or else by branches.

    `trace` is that of the run under way.
    """

    def start(self, path: Path) -> None:
        """Trace a new run, which takes this path."""
        super().start(path)
        self.trace = Trace(path, self, of_ufunc, of_function)

    def takes(self, law: Law) -> bool:  # noqa: ARG002
        """Any law is traced."""
        return True

    def choose(self, weights: Sequence[Weight]) -> int:
        """By a draw that is uniform, and is in one of as many intervals."""
        draw = self.trace.new(Law(UNIFORM))
        cuts = list(itertools.accumulate(map(float, weights[:-1])))
        return self.trace.restrict(draw, self.trace.cells(draw, cuts))

    def give_up(self) -> NoReturn:
        self.refuse("a draw has endless values, which are branches")

    def integer(self, count: int, low: int = 0) -> Any:
        return Affine(self.trace, {self.trace.new(Law(INTEGERS, count)): 1.0}, float(low))

    def value_of(self, law: Law) -> Any:
        if len(self.trace.laws) >= STEPS:
            self.refuse(f"it takes more than {STEPS:,} draws")
        return Affine(self.trace, {self.trace.new(law): 1.0}, 0.0)

    def number(self, law: Law, scale: Any, loc: Any) -> Any:
        scale = float(scale)
        if law.family is not UNIFORM and not scale >= 0 and not law.lattice:
            raise ValueError("scale < 0")
        return self.value_of(law) * scale + loc if scale else loc

    def array(self, law: Law, scale: Any, loc: Any, room: Any) -> Any:
        return array_of(self.trace, super().array(law, objects(scale), objects(loc), room))


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """Leaves of an outcome, and the draws and conditions that belong to them, all by number."""

    leaves: tuple[int, ...]
    draws: frozenset[int]
    conditions: tuple[Condition, ...] = ()
    is_random: bool = False
    """Whether some leaf depends on draws."""


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """What a mechanism puts out on one path through its comparisons of draws."""

    structure: Hashable
    """Of the output without its numbers."""
    leaves: tuple[Any, ...]
    """Its numbers. No `Finite` shares a draw with an `Affine` or with a condition."""
    laws: Sequence[Law]
    """Of all draws."""
    allowed: Mapping[int, tuple[Interval, ...]]
    """Where draws lie on this path; others may be anywhere."""
    conditions: tuple[Condition, ...]
    cut_off: frozenset[int] = frozenset()
    """Draws with endless values, whose tails are left out where they are negligible."""

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Leaves and conditions that share draws are one part; a constant is a part by itself."""
        count = len(self.leaves)
        draws = [_draws_of(leaf) for leaf in self.leaves]
        draws += [frozenset(condition.terms) for condition in self.conditions]
        draws += [frozenset({draw}) for draw in self.allowed]
        conditions = dict(enumerate(self.conditions, start=count))
        return tuple(
            Part(
                tuple(number for number in group if number < count),
                frozenset().union(*(draws[number] for number in group)),
                tuple(conditions[number] for number in group if number in conditions),
                any(draws[number] for number in group if number < count),
            )
            for group in connected(draws)
        )

    def part_with(self, leaf: int) -> Part:
        """The part that a leaf belongs to."""
        return next(part for part in self.parts if leaf in part.leaves)

    def is_compared(self, block: Collection[int]) -> bool:
        """Whether a draw that some leaves depend on was compared with something."""
        return not self._compared.isdisjoint(block)

    @cached_property
    def _compared(self) -> frozenset[int]:
        return frozenset(
            leaf
            for part in self.parts
            for leaf in part.leaves
            if part.conditions or part.draws & self.allowed.keys()
        )


def _draws_of(leaf: object) -> frozenset[int]:
    if isinstance(leaf, Affine):
        return frozenset(leaf.terms)
    return frozenset(leaf.cuts) if isinstance(leaf, Finite) else frozenset()


def connected(sets: Sequence[Collection[Hashable]]) -> list[list[int]]:
    """The numbers of sets that share members, directly or through others, in order (union-find)."""
    parents = list(range(len(sets)))

    def root(number: int) -> int:
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    holders: dict[Hashable, int] = {}
    for number, members in enumerate(sets):
        for member in members:
            holder = root(holders.setdefault(member, number))
            parents[max(holder, root(number))] = min(holder, root(number))
    groups: dict[int, list[int]] = {}
    for number in range(len(sets)):
        groups.setdefault(root(number), []).append(number)
    return list(groups.values())


def blocks_of(*outcomes: Outcome) -> list[tuple[int, ...]]:
    """The finest partition of leaves in which every part of the outcomes is inside of one block."""
    parts = [part.leaves for outcome in outcomes for part in outcome.parts if part.leaves]
    groups = (set().union(*(parts[number] for number in group)) for group in connected(parts))
    return sorted(tuple(sorted(block)) for block in groups)


def outcomes_of(
    call: Call, data: Any, deadline: Deadline, max_paths: int = 2 * THOUSAND
) -> list[Outcome]:
    """The outcomes of all paths that a mechanism may take on an input.

    Raises CannotInstrument if it does with draws what is not traced, takes too many paths, or
    raises; CannotCopy and OutOfTime as `pytest_dp.sampling.instrumented.run_instrumented`.
    """
    tracer = Tracer()

    def run(path: Path) -> Outcome:
        tracer.start(path)
        try:
            output = run_copy(call, data, tracer, FLOAT | INT)
        except (ClaimError, MechanismError) as error:  # as vectorised mechanisms raise
            message = str(error).partition("\n")[0].rstrip(":")
            raise CannotInstrument(f"with draws that are traced: {message}") from None
        outcome = None if tracer.refusal else _outcome(tracer.trace, output)
        if tracer.refusal or outcome is None:  # the mechanism may have caught the refusal
            raise CannotInstrument(tracer.refusal)
        return outcome

    outcomes = []
    with apply_instrument(tracer, deadline), functions_of_draws().in_place():
        for _, outcome, left in explored(run):
            outcomes.append(outcome)
            if not left:
                break
            if deadline.remaining() <= 0:
                raise OutOfTime
            if len(outcomes) >= max_paths:
                raise CannotInstrument(f"it goes more than {max_paths:,} ways")
    return outcomes


def _outcome(trace: Trace, output: Any) -> Outcome:
    """The outcome of a run; finite leaves that share draws with others are decided."""
    if isinstance(output, Raised):
        raise CannotInstrument(f"it {output}, with draws that are traced")
    leaves: list[Any] = []
    structure = opened(output, leaves)
    leaves = [simplest(leaf) for leaf in leaves]
    if any(type(leaf) is Lazy for leaf in leaves):
        raise CannotInstrument("a function of a draw is released that is no sum of draws")
    while True:
        shared = {draw for leaf in leaves if isinstance(leaf, Affine) for draw in leaf.terms}
        shared |= {draw for condition in trace.conditions for draw in condition.terms}
        dependent = [
            at
            for at, leaf in enumerate(leaves)
            if isinstance(leaf, Finite) and (leaf.cuts.keys() & shared)
        ]
        if not dependent:
            break
        for at in dependent:
            leaf = leaves[at].simple()
            leaves[at] = leaf.decided() if isinstance(leaf, Finite) else leaf
    return Outcome(
        structure,
        tuple(leaves),
        trace.laws,
        dict(trace.allowed),
        tuple(trace.conditions),
        frozenset(trace.cut_off),
    )


def opened(output: Any, leaves: list[Any]) -> Hashable:
    """The structure of an output, whose numbers are added to `leaves`."""
    if is_draw(output):
        leaves.append(output)
        return "number"
    if isinstance(output, np.ndarray):
        if output.dtype.kind == "f":
            leaves += output.ravel().tolist()
            return ("array", output.shape)
        for element in output.astype(object).view(np.ndarray).ravel():
            opened(_as_float(element), leaves)
        return ("array", output.shape)
    if isinstance(output, dict):
        items = [(opened(key, []), repr(key), opened(v, leaves)) for key, v in output.items()]
        return ("dict", *items)
    if isinstance(output, list | tuple):
        return (type(output).__qualname__, *(opened(element, leaves) for element in output))
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        fields = (getattr(output, field.name) for field in dataclasses.fields(output))
        return (type(output).__qualname__, *(opened(value, leaves) for value in fields))
    if isinstance(output, np.generic):
        output = output.item()
    if not isinstance(output, bool | int | float | complex | str | bytes | None):
        raise CannotInstrument(f"its outputs hold objects of type {type(output).__qualname__}")
    leaves.append(output)
    return "number"


def _as_float(element: Any) -> Any:
    """An element of an array, whose numbers are all of one type."""
    element = simplest(element)
    if isinstance(element, Finite):
        return element.map(_as_float)
    return float(element) if isinstance(element, bool | int) and abs(element) < 2**53 else element
