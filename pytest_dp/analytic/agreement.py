"""Whether outputs of real runs look as they were traced.

Compiled code may ignore what it is given in place of draws, and a mechanism may go another way
where it sees a number that is none. So what was traced is held against real outputs: how often each
kind of output comes, the values of finite ones, and the draws that sums of draws were made of.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.random import default_rng

from pytest_dp.analytic.comparing import joint, key_of, kinds
from pytest_dp.analytic.conditioned import log_weight
from pytest_dp.analytic.laws import Law
from pytest_dp.analytic.linear import independent_rows, linear_of
from pytest_dp.analytic.outcomes import Outcome, opened
from pytest_dp.analytic.parts import blocks_of, is_compared, is_free, log_total, parts_of
from pytest_dp.analytic.values import Affine, Finite
from pytest_dp.arrays import Floats
from pytest_dp.evidence.goodness_of_fit import log_e_value
from pytest_dp.randomness.stand_ins import CannotInstrument

BINS = 16
"""Of equal probability, by which draws are compared with their law."""
SIMULATED, PER_REAL, MIN_REAL = 100_000, 10, 20
"""Runs that are simulated where a law has no closed form, how many there have to be for each real
output that is compared with them, and how many of these, if there are so many."""
NEARLY = 1e-6
"""What draws may differ by from whole numbers, or outputs from what they follow from, by rounding.
"""


def against(outcomes: Sequence[Outcome], outputs: Sequence[Any]) -> float:
    """Evidence that real outputs are not distributed as traced.

    Parameters
    ----------
    outcomes : sequence of Outcome
        On one input.
    outputs : sequence of object
        Independent ones on the same input.

    Returns
    -------
    float
        The logarithm of an e-value, the average of several. Infinite if an output cannot be.

    Raises
    ------
    CannotInstrument
        If there is no way to compare them.
    """
    patterns = kinds(outcomes)
    ways: dict[Any, list[Outcome]] = {}
    for outcome, pattern in zip(outcomes, patterns, strict=True):
        ways.setdefault(pattern, []).append(outcome)
    # A sum equals a constant with probability 0, so what does is the constant.
    ways = dict(sorted(ways.items(), key=lambda each: each[0][1].count("sum")))
    rows: dict[Hashable, list[list[Any]]] = {pattern: [] for pattern in ways}
    outside = 0
    for output in outputs:
        leaves: list[Any] = []
        structure = opened(output, leaves)
        found = next((p for p in ways if _fits(p, structure, leaves)), None)
        if found is None:
            outside += 1
        else:
            rows[found].append(leaves)
    counts = np.array([len(rows[pattern]) for pattern in ways])
    chances = np.exp([log_total(some) for some in ways.values()])
    evidence = [log_e_value(counts, np.minimum(chances, 1.0), outside, 0.0)]
    for pattern, some in ways.items():
        if rows[pattern] and any(is_free(o, part) for o in some for part in parts_of(o)):
            evidence += _within(some, rows[pattern])
    return float(np.logaddexp.reduce(evidence)) - math.log(len(evidence))


def _fits(pattern: Any, structure: Hashable, leaves: list[Any]) -> bool:
    if pattern[0] != structure:
        return False
    if set(pattern[1]) == {"sum"} and set(map(type, leaves)) == {float}:
        return math.isfinite(sum(leaves))
    return all(
        isinstance(leaf, int | float) and math.isfinite(leaf)
        if about == "sum"
        else about == "finite" or about == ("constant", *key_of(leaf))
        for about, leaf in zip(pattern[1], leaves, strict=True)
    )


def _within(outcomes: list[Outcome], rows: list[list[Any]]) -> list[float]:
    """Evidence by the numbers in outputs of one kind."""
    if len(outcomes) > 1:
        return _simulated(outcomes, range(len(outcomes[0].leaves)), rows)
    (outcome,) = outcomes
    evidence: list[float] = []
    draws: list[Floats] = []
    for block in blocks_of([part.leaves for part in parts_of(outcome) if part.leaves]):
        leaves = [outcome.leaves[at] for at in block]
        if all(isinstance(leaf, Affine) for leaf in leaves):
            values = np.array([[row[at] for at in block] for row in rows], float)
            known = None if is_compared(outcome, block) else _draws(outcome, block, values)
            if known is None:
                evidence += _simulated(outcomes, block, rows)
            else:
                draws += known[0]
                evidence += known[1]
        elif any(isinstance(leaf, Finite) for leaf in leaves):
            evidence.append(_finite(outcome, block, rows))
    for one, other in pairwise(draws):  # whether they are independent
        counts = np.bincount((one > 0.5) * 2 + (other > 0.5), minlength=4)
        evidence.append(log_e_value(counts, np.full(4, 0.25), 0, 0.0))
    return evidence


def _simulated(outcomes: list[Outcome], block: Sequence[int], rows: list[list[Any]]) -> list[float]:
    """Evidence by sums among some leaves, one by one, against many simulated ones (approximate).

    Raises
    ------
    CannotInstrument
        If the conditions on a way hold too rarely to simulate it.
    """
    evidence = []
    for at in block:
        if not isinstance(outcomes[0].leaves[at], Affine):
            continue
        values = np.sort(np.concatenate([_values(outcome, at) for outcome in outcomes]))
        real = np.array([row[at] for row in rows[: len(values) // PER_REAL]], float)
        if len(real) < min(len(rows), MIN_REAL):
            _refuse("a way that is gone too rarely to be simulated")
        edges = np.unique(values[(np.arange(1, BINS) * len(values)) // BINS])
        below = np.searchsorted(values, edges, side="right")
        chances = np.diff(below, prepend=0, append=len(values))
        counts = np.bincount(np.searchsorted(edges, real), minlength=len(chances))
        kept = (chances > 0) | (counts > 0)
        evidence.append(log_e_value(counts[kept], chances[kept] / len(values), 0, 0.0))
    return evidence


def _values(outcome: Outcome, at: int) -> Floats:
    """Simulated values of a leaf, of runs that go this way."""
    (part,) = (part for part in parts_of(outcome) if at in part.leaves)
    generator = default_rng(at)
    draws = {draw: outcome.laws[draw].draws(generator, SIMULATED) for draw in sorted(part.draws)}
    holds = np.ones(SIMULATED, bool)
    for condition in part.conditions:
        holds &= sum(by * draws[draw] for draw, by in condition.terms.items()) > -condition.constant
    for draw in part.draws & outcome.allowed.keys():
        holds &= np.logical_or.reduce(
            [(draws[draw] > low) & (draws[draw] <= high) for low, high in outcome.allowed[draw]]
        )
    leaf = outcome.leaves[at]
    value = leaf.constant + sum(by * draws[draw][holds] for draw, by in leaf.terms.items())
    rest = math.exp(
        math.fsum(
            log_weight(outcome, other) for other in parts_of(outcome) if not is_free(outcome, other)
        )
    )
    kept: Floats = value[: math.ceil(rest * len(value))]
    return kept


def _finite(outcome: Outcome, block: Sequence[int], rows: list[list[Any]]) -> float:
    known = joint(outcome, block)
    at = {key: number for number, key in enumerate(known)}
    found = [at.get(tuple(key_of(row[leaf]) for leaf in block), -1) for row in rows]
    counts = np.bincount([number for number in found if number >= 0], minlength=len(at))
    chances = np.array(list(known.values()))
    return log_e_value(counts, chances / chances.sum(), found.count(-1), 0.0)


def _draws(
    outcome: Outcome, block: Sequence[int], values: Floats
) -> tuple[list[Floats], list[float]] | None:
    """Where the draws behind outputs lie in their laws, from 0 to 1; and evidence against that.

    None if they do not follow from the outputs, or their law has no name.
    """
    traced = linear_of(outcome, block)
    kept = independent_rows(traced.matrix)
    some = traced.rows(kept)
    laws = [noise.law for noise in some.noises if noise.law is not None]
    matrix: Floats = some.matrix
    if traced.normal and matrix.shape[0] < matrix.shape[1]:
        matrix = np.asarray(np.linalg.cholesky(matrix @ matrix.T), float)
        laws = [Law("normal")] * len(matrix)
    if matrix.shape[0] != matrix.shape[1] or len(laws) < len(matrix):
        return None
    draws = np.linalg.solve(matrix, (values[:, kept] - some.constant).T)
    if len(kept) < len(values.T):
        again = draws.T @ traced.matrix.T + traced.constant
        if np.abs(again - values).max() > NEARLY * np.abs(values).max():
            return [], [math.inf]
    places, evidence = [], []
    for draw, law in zip(draws, laws, strict=True):
        if law.lattice:
            evidence.append(_whole(draw, law))
        else:
            place = np.exp(law.log_below(draw))
            counts = np.bincount((np.minimum(place, 1 - 1e-9) * BINS).astype(int), minlength=BINS)
            evidence.append(log_e_value(counts, np.full(BINS, 1 / BINS), 0, 0.0))
            places.append(place)
    return places, evidence


def _whole(draw: Floats, law: Law) -> float:
    """Evidence against a law of whole numbers."""
    if np.abs(draw - np.round(draw)).max() > NEARLY:
        return math.inf
    least, most = law.support
    if law.family != "integers":
        reach = 3 / -math.log(law.parameter)
        least, most = max(least, -reach), reach
    edges = np.unique(np.round(np.linspace(least, most, BINS + 1))) + 0.5
    ends = np.concatenate([[-np.inf], edges, [np.inf]])
    chances = np.exp(law.log_between(ends[:-1], ends[1:]))
    return log_e_value(np.histogram(draw, ends)[0], chances / chances.sum(), 0, 0.0)


def _refuse(reason: str) -> NoReturn:
    raise CannotInstrument(reason)
