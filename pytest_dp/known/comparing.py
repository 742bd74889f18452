"""Outcomes on D compared with those on D', part by part.

Outputs of different structure, or with other constants, are different; of those that agree in
these, parts that share no draw are independent, and their losses add up.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from pytest_dp.known.affine import Affine
from pytest_dp.known.conditioned import log_total, log_weight, log_weight_apart
from pytest_dp.known.experiments import Component, Experiment, Largest, Mixture, Table
from pytest_dp.known.finite import Finite, all_cuts, combinations_of
from pytest_dp.known.linear import linear
from pytest_dp.known.outcomes import Outcome, blocks_of
from pytest_dp.limits import NEGLIGIBLE, STEPS
from pytest_dp.randomness.stand_ins import CannotInstrument
from pytest_dp.sampling.deadline import Deadline, OutOfTime


@dataclass(frozen=True, slots=True)
class Case:
    """Outputs of one kind, by `kinds`."""

    log_p: float
    """Logarithm of the probability of the kind on D; minus infinity if it has none."""
    log_q: float
    """The same on D'."""
    experiments: list[Experiment]
    """Independent parts of outputs of this kind."""

    def largest(self) -> Largest:
        """The suprema of the loss over outputs of this kind."""
        if math.isinf(self.log_p) and math.isinf(self.log_q):
            return Largest(-math.inf, -math.inf)
        difference = self.log_p - self.log_q
        if math.isinf(difference):
            return Largest(difference, -difference)
        total = Largest(difference, -difference)
        for experiment in self.experiments:
            total += experiment.largest()
        return total


def compared(outcomes1: Sequence[Outcome], outcomes2: Sequence[Outcome]) -> list[Case]:
    """The kinds of outputs on two inputs, with what tells the inputs apart in each.

    Raises CannotInstrument if some of it has no closed form.
    """
    both = [*outcomes1, *outcomes2]
    keys = kinds(both)
    _check_lattices(both)
    cases = []
    for kind in dict.fromkeys(keys):
        ours = [o for o, key in zip(outcomes1, keys, strict=False) if key == kind]
        theirs = [
            o for o, key in zip(outcomes2, keys[len(outcomes1) :], strict=True) if key == kind
        ]
        case = _case(ours, theirs)
        if max(case.log_p, case.log_q) > -math.inf:
            cases.append(case)
    return cases


def largest_of(cases: Sequence[Case], deadline: Deadline | None = None) -> Largest:
    """The suprema of the loss and of its negative over all outputs.

    Raises OutOfTime if the deadline passes, CannotInstrument if some are not known.
    """
    suprema = []
    for case in cases:
        if deadline is not None and deadline.remaining() <= 0:
            raise OutOfTime
        suprema.append(case.largest())
    return Largest(
        max(0.0, *(largest.forward for largest in suprema)),
        max(0.0, *(largest.backward for largest in suprema)),
        max(largest.error for largest in suprema),
    )


def kinds(outcomes: Sequence[Outcome]) -> list[Hashable]:
    """Of each outcome, its structure, and whether leaves are sums, finite, or which constants."""
    varied: dict[Hashable, set[int]] = {}
    for outcome in outcomes:
        places = {at for at, leaf in enumerate(outcome.leaves) if isinstance(leaf, Finite)}
        varied.setdefault(outcome.structure, set()).update(places)
    return [
        (
            outcome.structure,
            tuple(
                "sum"
                if isinstance(leaf, Affine)
                else "finite"
                if at in varied[outcome.structure]
                else ("constant", *key_of(leaf))
                for at, leaf in enumerate(outcome.leaves)
            ),
        )
        for outcome in outcomes
    ]


def _check_lattices(outcomes: Sequence[Outcome]) -> None:
    """Refuse whole numbers that are sums in one outcome, and something else in another."""
    sums, others = set(), set()
    for outcome in outcomes:
        for at, leaf in enumerate(outcome.leaves):
            place = outcome.structure, at
            if not isinstance(leaf, Affine):
                others.add(place)
            elif all(law.lattice for law in leaf.laws):
                sums.add(place)
    if sums & others:
        raise CannotInstrument("whole numbers that several ways lead to")


def key_of(value: Any) -> tuple[str, Any]:
    """A key that is equal for values that look the same in an output."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and math.isnan(value):
        return "float", "nan"
    return type(value).__name__, value


def _case(ours: list[Outcome], theirs: list[Outcome]) -> Case:
    """The case of all outcomes of one kind."""
    if len(ours) == len(theirs) == 1:
        return _case_of_pair(ours[0], theirs[0])
    if not ours or not theirs:
        return Case(log_total(ours), log_total(theirs), [])
    leaves = ours[0].leaves
    sums = [at for at, leaf in enumerate(leaves) if isinstance(leaf, Affine)]
    if not sums:
        return Case(0.0, 0.0, [_table(ours, theirs, range(len(leaves)))])
    finite = any(isinstance(leaf, Finite) for outcome in ours + theirs for leaf in outcome.leaves)
    if len(sums) > 1 or finite:
        raise CannotInstrument("several ways lead to the same outputs")
    p, q = (
        [Component(o, o.part_with(sums[0]), log_weight_apart(o)) for o in outcomes]
        for outcomes in (ours, theirs)
    )
    return Case(0.0, 0.0, [Mixture(p, q)])


def _case_of_pair(ours: Outcome, theirs: Outcome) -> Case:
    """The case of a kind that only one outcome leads to on D, and one on D'."""
    log_p, log_q = (
        math.fsum(log_weight(outcome, part) for part in outcome.parts if not part.leaves)
        for outcome in (ours, theirs)
    )
    experiments: list[Experiment] = []
    for block in blocks_of(ours, theirs):
        experiments += _experiments(ours, theirs, block)
    return Case(log_p, log_q, experiments)


def _experiments(ours: Outcome, theirs: Outcome, block: tuple[int, ...]) -> list[Experiment]:
    """What tells the inputs apart in leaves that depend on each other."""
    is_sum = [isinstance(o.leaves[at], Affine) for at in block for o in (ours, theirs)]
    if not any(is_sum):
        return [_table([ours], [theirs], block)]
    if not all(is_sum):
        raise CannotInstrument("values and sums of draws depend on each other")
    if not ours.is_compared(block) and not theirs.is_compared(block):
        return linear(ours, theirs, block)
    if len(block) > 1:
        raise CannotInstrument("several outputs depend on a draw that is compared")
    p, q = ([Component(o, o.part_with(block[0]), 0.0)] for o in (ours, theirs))
    return [Mixture(p, q)]


def _table(ours: Sequence[Outcome], theirs: Sequence[Outcome], block: Sequence[int]) -> Table:
    """The probabilities of all values of some leaves.

    Where a kind has several outcomes, they are weighted by the probabilities of their conditions.
    """
    weighted = len(ours) > 1 or len(theirs) > 1
    tables = [_probabilities(outcomes, block, weighted) for outcomes in (ours, theirs)]
    keys = list(dict.fromkeys(key for table in tables for key in table))
    endless = any(
        isinstance(leaf, Finite) and leaf.cuts.keys() & outcome.cut_off
        for outcome in (*ours, *theirs)
        for leaf in outcome.leaves
    )
    p, q = (np.array([table.get(key, 0.0) for key in keys]) for table in tables)
    return Table(p, q, NEGLIGIBLE if endless else 0.0)


def _probabilities(
    outcomes: Sequence[Outcome], block: Sequence[int], weighted: bool
) -> dict[Hashable, float]:
    summands: dict[Hashable, list[float]] = {}
    for outcome in outcomes:
        weight = math.exp(log_weight_apart(outcome)) if weighted else 1.0
        for key, probability in joint(outcome, block).items():
            summands.setdefault(key, []).append(weight * probability)
    return {key: math.fsum(probabilities) for key, probabilities in summands.items()}


def joint(outcome: Outcome, block: Sequence[int]) -> dict[Hashable, float]:
    """The probability of every combination of values of leaves in an outcome."""
    leaves = [outcome.leaves[at] for at in block]
    finite = [leaf for leaf in leaves if isinstance(leaf, Finite)]
    if not finite:
        return {tuple(map(key_of, leaves)): 1.0}
    trace = finite[0].trace
    cuts = all_cuts(finite)
    if combinations_of(cuts) > 10 * STEPS:
        raise CannotInstrument(f"outputs depend on over {10 * STEPS:,} combinations of draws")
    weights = [
        [trace.probability(draw, cell) for cell in trace.cells(draw, at)]
        for draw, at in cuts.items()
    ]
    columns = [leaf.with_cuts(cuts) if isinstance(leaf, Finite) else None for leaf in leaves]
    probabilities: dict[Hashable, float] = {}
    for number, combination in enumerate(product(*weights)):
        probability = math.prod(combination)
        if probability:
            key = tuple(
                key_of(leaf if column is None else column[number])
                for leaf, column in zip(leaves, columns, strict=True)
            )
            probabilities[key] = probabilities.get(key, 0.0) + probability
    return probabilities
