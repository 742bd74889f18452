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
from pytest_dp.analytic.trace import Condition
from pytest_dp.analytic.values import Affine, Finite
from pytest_dp.randomness.stand_ins import CannotInstrument

MAX_TABLE = 200_000
"""Combinations of what draws may be, of which leaves that share draws may depend."""


@dataclass(frozen=True, slots=True)
class Part:
    """Leaves of an outcome, and the draws and conditions that belong to them.

    Attributes
    ----------
    leaves : tuple of int
    draws : frozenset of int
    conditions : tuple of Condition
    """

    leaves: tuple[int, ...]
    draws: frozenset[int]
    conditions: tuple[Condition, ...] = ()


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
    keys = _kinds(both)
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


def largest_of(cases: Sequence[Case]) -> Largest:
    """The suprema of the loss and of its negative over all outputs."""
    found = [case.largest() for case in cases]
    return Largest(
        max(0.0, *(each.forward for each in found)),
        max(0.0, *(each.backward for each in found)),
        max(each.error for each in found),
    )


def _kinds(outcomes: Sequence[Outcome]) -> list[Hashable]:
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
                else ("constant", *_key(leaf))
                for at, leaf in enumerate(outcome.leaves)
            ),
        )
        for outcome in outcomes
    ]


def _key(value: Any) -> tuple[str, Any]:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and math.isnan(value):
        return "float", "nan"
    return type(value).__name__, value


def _case(ours: list[Outcome], theirs: list[Outcome]) -> Case:
    if len(ours) == len(theirs) == 1:
        return _one_way(ours[0], theirs[0])
    if not ours or not theirs:
        return Case(_log_total(ours), _log_total(theirs), [])
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
        rest = [log_weight(outcome, p) for p in parts if not _free(outcome, p)]
        found.append((outcome, part, math.fsum(rest)))
    return found


def _free(outcome: Outcome, part: Part) -> bool:
    return any(isinstance(outcome.leaves[at], Affine | Finite) for at in part.leaves)


def _log_total(outcomes: list[Outcome]) -> float:
    """The logarithm of the probability of any of some outcomes."""
    if not outcomes:
        return -math.inf
    logs = [
        math.fsum(log_weight(outcome, part) for part in parts_of(outcome) if part.draws)
        for outcome in outcomes
    ]
    return float(np.logaddexp.reduce(logs))


def _one_way(one: Outcome, other: Outcome) -> Case:
    parts1, parts2 = parts_of(one), parts_of(other)
    log_p, log_q = (
        math.fsum(log_weight(outcome, part) for part in parts if not part.leaves)
        for outcome, parts in ((one, parts1), (other, parts2))
    )
    experiments: list[Experiment] = []
    for block in _blocks([part.leaves for part in (*parts1, *parts2) if part.leaves]):
        experiments += _block(one, other, block)
    return Case(log_p, log_q, experiments)


def _block(one: Outcome, other: Outcome, block: tuple[int, ...]) -> list[Experiment]:
    pairs = [[outcome.leaves[at] for outcome in (one, other)] for at in block]
    sums = [isinstance(leaf, Affine) for pair in pairs for leaf in pair]
    if not any(sums):
        return [_table([one], [other], block)]
    if not all(sums):
        _refuse("values and sums of draws depend on each other")
    free = True
    for outcome in (one, other):
        for part in parts_of(outcome):
            if set(part.leaves) & set(block):
                free &= not (part.conditions or part.draws & outcome.allowed.keys())
    if free:
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
                math.fsum(log_weight(outcome, p) for p in parts if not _free(outcome, p))
            )
        for key, probability in _joint(outcome, block).items():
            found.setdefault(key, []).append(weight * probability)
    return {key: math.fsum(parts) for key, parts in found.items()}


def _joint(outcome: Outcome, block: Sequence[int]) -> dict[Hashable, float]:
    """The probability of every combination of values of leaves, on this way."""
    leaves = [outcome.leaves[at] for at in block]
    finite = [leaf for leaf in leaves if isinstance(leaf, Finite)]
    if not finite:
        return {tuple(map(_key, leaves)): 1.0}
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
                _key(leaf if column is None else column[number])
                for leaf, column in zip(leaves, columns, strict=True)
            )
            found[key] = found.get(key, 0.0) + probability
    return found


def parts_of(outcome: Outcome) -> list[Part]:
    """Leaves, draws and conditions that hang together; a constant is a part of its own."""
    sets: list[tuple[set[int], set[int], list[Condition]]] = []
    for at, leaf in enumerate(outcome.leaves):
        draws = set(leaf.terms) if isinstance(leaf, Affine) else set()
        draws |= set(leaf.cuts) if isinstance(leaf, Finite) else set()
        sets.append(({at}, draws, []))
    sets += [(set(), set(condition.terms), [condition]) for condition in outcome.conditions]
    sets += [(set(), {draw}, []) for draw in outcome.allowed]
    return [
        Part(tuple(sorted(leaves)), frozenset(draws), tuple(conditions))
        for leaves, draws, conditions in _united(sets)
    ]


def _united(
    sets: list[tuple[set[int], set[int], list[Condition]]],
) -> list[tuple[set[int], set[int], list[Condition]]]:
    """Sets put together where they share draws."""
    owner: dict[int, int] = {}
    united: dict[int, tuple[set[int], set[int], list[Condition]]] = {}
    for number, (leaves, draws, conditions) in enumerate(sets):
        mine = (set(leaves), set(draws), list(conditions))
        for index in sorted({owner[draw] for draw in draws if draw in owner}):
            other = united.pop(index)
            mine[0].update(other[0])
            mine[1].update(other[1])
            mine[2].extend(other[2])
        for draw in mine[1]:
            owner[draw] = number
        united[number] = mine
    return list(united.values())


def _blocks(parts: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The finest partition of leaves in which every part is inside of one block."""
    merged: list[set[int]] = []
    for part in parts:
        mine = set(part)
        rest = []
        for block in merged:
            if block & mine:
                mine |= block
            else:
                rest.append(block)
        merged = [*rest, mine]
    return sorted(tuple(sorted(block)) for block in merged)


def _refuse(reason: str) -> NoReturn:
    raise CannotInstrument(reason)
