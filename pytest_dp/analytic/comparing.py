"""Outcomes on D against those on D': what there is to tell them apart, part by part.

Outputs of different structure, or with other constants, are different; of those that agree in
these, parts that share no draw are independent, and their losses add up.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NoReturn

import numpy as np

from pytest_dp.analytic.conditioned import log_weight
from pytest_dp.analytic.experiments import Experiment, Largest, Table
from pytest_dp.analytic.linear import linear
from pytest_dp.analytic.mixed import Mixed
from pytest_dp.analytic.outcomes import Outcome
from pytest_dp.analytic.parts import Part, blocks_of, is_compared, is_free, log_total, parts_of
from pytest_dp.analytic.values import Affine, Finite
from pytest_dp.randomness.stand_ins import CannotInstrument
from pytest_dp.sampling.deadline import Deadline, OutOfTime

MAX_TABLE = 200_000
"""Combinations of what draws may be, of which leaves that share draws may depend."""


@dataclass(frozen=True, slots=True)
class Case:
    """Outputs of one kind.

    Attributes
    ----------
    log_p, log_q : float
        Logarithms of the probability of the kind on D and on D'; minus infinity if there is none.
    experiments : list of Experiment
        What tells the inputs apart within it; independent.
    """

    log_p: float
    log_q: float
    experiments: list[Experiment]

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
    """What tells the outputs on two inputs apart.

    Raises
    ------
    CannotInstrument
        If some of it has no closed form.
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

    Raises
    ------
    OutOfTime
        If the deadline passes.
    CannotInstrument
        If some are not known.
    """
    found = []
    for case in cases:
        if deadline is not None and deadline.remaining() <= 0:
            raise OutOfTime
        found.append(case.largest())
    return Largest(
        max(0.0, *(each.forward for each in found)),
        max(0.0, *(each.backward for each in found)),
        max(each.error for each in found),
    )


def kinds(outcomes: Sequence[Outcome]) -> list[Hashable]:
    """Of each outcome, its structure with the constants at places where nothing else may be."""
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
    """Refuse whole numbers that come as sums on one way, and as something else on another."""
    sums, others = set(), set()
    for outcome in outcomes:
        for at, leaf in enumerate(outcome.leaves):
            place = outcome.structure, at
            if not isinstance(leaf, Affine):
                others.add(place)
            elif all(law.lattice for law in leaf.laws):
                sums.add(place)
    if sums & others:
        _refuse("whole numbers that several ways lead to")


def key_of(value: Any) -> tuple[str, Any]:
    """Equal for values that are the same to whoever sees the output."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and math.isnan(value):
        return "float", "nan"
    return type(value).__name__, value


def _case(ours: list[Outcome], theirs: list[Outcome]) -> Case:
    if len(ours) == len(theirs) == 1:
        return _one_way(ours[0], theirs[0])
    if not ours or not theirs:
        return Case(log_total(ours), log_total(theirs), [])
    leaves = ours[0].leaves
    open_leaves = [at for at, leaf in enumerate(leaves) if isinstance(leaf, Affine)]
    if not open_leaves:
        return Case(0.0, 0.0, [_table(ours, theirs, range(len(leaves)))])
    finite = any(isinstance(leaf, Finite) for outcome in ours + theirs for leaf in outcome.leaves)
    if len(open_leaves) > 1 or finite:
        _refuse("several ways lead to the same outputs")
    return Case(0.0, 0.0, [Mixed(_ways(ours, open_leaves[0]), _ways(theirs, open_leaves[0]))])


def _ways(outcomes: list[Outcome], at: int) -> list[tuple[Outcome, Part, float]]:
    """The part of each outcome with this leaf, and the logarithm of what the others weigh."""
    found = []
    for outcome in outcomes:
        parts = parts_of(outcome)
        (part,) = (part for part in parts if at in part.leaves)
        rest = [log_weight(outcome, p) for p in parts if not is_free(outcome, p)]
        found.append((outcome, part, math.fsum(rest)))
    return found


def _one_way(one: Outcome, other: Outcome) -> Case:
    parts1, parts2 = parts_of(one), parts_of(other)
    log_p, log_q = (
        math.fsum(log_weight(outcome, part) for part in parts if not part.leaves)
        for outcome, parts in ((one, parts1), (other, parts2))
    )
    experiments: list[Experiment] = []
    for block in blocks_of([part.leaves for part in (*parts1, *parts2) if part.leaves]):
        experiments += _block(one, other, block)
    return Case(log_p, log_q, experiments)


def _block(one: Outcome, other: Outcome, block: tuple[int, ...]) -> list[Experiment]:
    pairs = [[outcome.leaves[at] for outcome in (one, other)] for at in block]
    sums = [isinstance(leaf, Affine) for pair in pairs for leaf in pair]
    if not any(sums):
        return [_table([one], [other], block)]
    if not all(sums):
        _refuse("values and sums of draws depend on each other")
    if not is_compared(one, block) and not is_compared(other, block):
        return linear(one, other, block)
    if len(block) > 1:
        _refuse("several outputs depend on a draw that is compared")
    return [Mixed(_ways_of(one, block[0]), _ways_of(other, block[0]))]


def _ways_of(outcome: Outcome, at: int) -> list[tuple[Outcome, Part, float]]:
    (part,) = (part for part in parts_of(outcome) if at in part.leaves)
    return [(outcome, part, 0.0)]


def _table(ours: Sequence[Outcome], theirs: Sequence[Outcome], block: Sequence[int]) -> Table:
    """The probabilities of all values of some leaves."""
    whole = len(ours) > 1 or len(theirs) > 1
    p, q = (_probabilities(outcomes, block, whole) for outcomes in (ours, theirs))
    keys = list(dict.fromkeys([*p, *q]))
    return Table(*(np.array([each.get(key, 0.0) for key in keys]) for each in (p, q)))


def _probabilities(
    outcomes: Sequence[Outcome], block: Sequence[int], whole: bool
) -> dict[Hashable, float]:
    found: dict[Hashable, list[float]] = {}
    for outcome in outcomes:
        weight = 1.0
        if whole:
            parts = [part for part in parts_of(outcome) if part.draws]
            weight = math.exp(
                math.fsum(log_weight(outcome, p) for p in parts if not is_free(outcome, p))
            )
        for key, probability in joint(outcome, block).items():
            found.setdefault(key, []).append(weight * probability)
    return {key: math.fsum(parts) for key, parts in found.items()}


def joint(outcome: Outcome, block: Sequence[int]) -> dict[Hashable, float]:
    """The probability of every combination of values of leaves, on this way."""
    leaves = [outcome.leaves[at] for at in block]
    finite = [leaf for leaf in leaves if isinstance(leaf, Finite)]
    if not finite:
        return {tuple(map(key_of, leaves)): 1.0}
    trace = finite[0].trace
    cuts: dict[int, tuple[float, ...]] = {}
    for leaf in finite:
        for draw, at in leaf.cuts.items():
            cuts[draw] = tuple(sorted({*cuts.get(draw, ()), *at}))
    if math.prod(len(at) + 1 for at in cuts.values()) > MAX_TABLE:
        _refuse(f"outputs depend on more than {MAX_TABLE:,} combinations of draws")
    weights = [
        [trace.probability(draw, cell) for cell in trace.cells(draw, at)]
        for draw, at in cuts.items()
    ]
    columns = [leaf.with_cuts(cuts) if isinstance(leaf, Finite) else None for leaf in leaves]
    found: dict[Hashable, float] = {}
    for number, chosen in enumerate(product(*weights)):
        probability = math.prod(chosen)
        if probability:
            key = tuple(
                key_of(leaf if column is None else column[number])
                for leaf, column in zip(leaves, columns, strict=True)
            )
            found[key] = found.get(key, 0.0) + probability
    return found


def _refuse(reason: str) -> NoReturn:
    raise CannotInstrument(reason)
