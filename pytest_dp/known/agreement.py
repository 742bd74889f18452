"""A goodness-of-fit test of traced outcomes, by outputs of real runs.

Compiled code may ignore the objects that stand for draws, and a mechanism may behave differently
when it sees them. So the outcomes are tested with real outputs: how often each kind of output
comes, the values of finite numbers, and the draws that sums of draws were made of.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.random import default_rng

from pytest_dp.arrays import Floats
from pytest_dp.known.affine import Affine
from pytest_dp.known.comparing import joint, key_of, kinds
from pytest_dp.known.conditioned import log_total, log_weight_apart
from pytest_dp.known.finite import Finite
from pytest_dp.known.linear import independent_rows, linear_of
from pytest_dp.known.outcomes import Outcome, blocks_of, opened
from pytest_dp.limits import FLOAT_ERRORS, MIN_COUNTED, NEARLY_EQUAL, SEVERAL, STEPS
from pytest_dp.randomness.laws import INTEGERS, NORMAL, Law
from pytest_dp.randomness.stand_ins import CannotInstrument
from pytest_dp.statistics.assumptions import log_e_value

BINS = 2 * SEVERAL
"""Of equal probability, in which draws are counted."""


def evidence_against(outcomes: Sequence[Outcome], outputs: Sequence[Any]) -> float:
    """Evidence that outputs of independent runs on an input do not follow the law of its outcomes.

    The logarithm of an e-value, the average of several; infinite if an output is impossible. Raises
    CannotInstrument if there is no way to compare them.
    """
    by_kind: dict[Any, list[Outcome]] = {}
    for outcome, kind in zip(outcomes, kinds(outcomes), strict=True):
        by_kind.setdefault(kind, []).append(outcome)
    # A sum equals a constant with probability 0, so an output that does is of the constant's kind.
    by_kind = dict(sorted(by_kind.items(), key=lambda item: item[0][1].count("sum")))
    rows: dict[Hashable, list[list[Any]]] = {kind: [] for kind in by_kind}
    outside = 0
    for output in outputs:
        leaves: list[Any] = []
        structure = opened(output, leaves)
        for kind in by_kind:
            if _fits(kind, structure, leaves):
                rows[kind].append(leaves)
                break
        else:
            outside += 1
    counts = np.array([len(rows[kind]) for kind in by_kind])
    probabilities = np.exp([log_total(of_kind) for of_kind in by_kind.values()])
    evidence = [log_e_value(counts, np.minimum(probabilities, 1.0), outside, 0.0)]
    for kind, of_kind in by_kind.items():
        if rows[kind] and any(part.is_random for o in of_kind for part in o.parts):
            evidence += _by_numbers(of_kind, rows[kind])
    return float(np.logaddexp.reduce(evidence)) - math.log(len(evidence))


def _fits(kind: Any, structure: Hashable, leaves: list[Any]) -> bool:
    if kind[0] != structure:
        return False
    if set(kind[1]) == {"sum"} and set(map(type, leaves)) == {float}:
        return math.isfinite(sum(leaves))
    return all(
        isinstance(leaf, int | float) and math.isfinite(leaf)
        if what == "sum"
        else what == "finite" or what == ("constant", *key_of(leaf))
        for what, leaf in zip(kind[1], leaves, strict=True)
    )


def _by_numbers(outcomes: list[Outcome], rows: list[list[Any]]) -> list[float]:
    """Evidence by the numbers in outputs of one kind."""
    if len(outcomes) > 1:
        return _simulated(outcomes, range(len(outcomes[0].leaves)), rows)
    (outcome,) = outcomes
    evidence: list[float] = []
    draws: list[Floats] = []
    for block in blocks_of(outcome):
        leaves = [outcome.leaves[at] for at in block]
        if all(isinstance(leaf, Affine) for leaf in leaves):
            values = np.array([[row[at] for at in block] for row in rows], float)
            solved = None if outcome.is_compared(block) else _by_draws(outcome, block, values)
            if solved is None:
                evidence += _simulated(outcomes, block, rows)
            else:
                evidence += map(_by_repeats, leaves, values.T)
                draws += solved[0]
                evidence += solved[1]
        elif any(isinstance(leaf, Finite) for leaf in leaves):
            evidence.append(_finite(outcome, block, rows))
    for one, other in pairwise(draws):  # whether they are independent
        counts = np.bincount((one > 0.5) * 2 + (other > 0.5), minlength=4)
        evidence.append(log_e_value(counts, np.full(4, 0.25), 0, 0.0))
    return evidence


def _simulated(outcomes: list[Outcome], block: Sequence[int], rows: list[list[Any]]) -> list[float]:
    """Evidence by each sum among some leaves, compared with many simulated ones (approximate).

    Raises CannotInstrument if the conditions of the outcomes hold too rarely to simulate them.
    """
    evidence = []
    for at in block:
        if not isinstance(outcomes[0].leaves[at], Affine):
            continue
        values = np.sort(np.concatenate([_values(outcome, at) for outcome in outcomes]))
        real = np.array([row[at] for row in rows[: len(values) // 10]], float)
        if len(real) < min(len(rows), MIN_COUNTED):
            raise CannotInstrument("a way that is gone too rarely to be simulated")
        edges = np.unique(values[(np.arange(1, BINS) * len(values)) // BINS])
        below = np.searchsorted(values, edges, side="right")
        simulated = np.diff(below, prepend=0, append=len(values))
        counts = np.bincount(np.searchsorted(edges, real), minlength=len(simulated))
        evidence.append(_by_repeats(outcomes[0].leaves[at], np.array([row[at] for row in rows])))
        used = (simulated > 0) | (counts > 0)
        evidence.append(log_e_value(counts[used], simulated[used] / len(values), 0, 0.0))
    return evidence


def _values(outcome: Outcome, at: int) -> Floats:
    """Simulated values of a leaf in an outcome, in proportion to how often it comes."""
    part = outcome.part_with(at)
    generator = default_rng(at)
    draws = {draw: outcome.laws[draw].draws(generator, 5 * STEPS) for draw in sorted(part.draws)}
    holds = np.ones(5 * STEPS, bool)
    for condition in part.conditions:
        holds &= sum(by * draws[draw] for draw, by in condition.terms.items()) > -condition.constant
    for draw in part.draws & outcome.allowed.keys():
        holds &= np.logical_or.reduce(
            [(draws[draw] > low) & (draws[draw] <= high) for low, high in outcome.allowed[draw]]
        )
    leaf = outcome.leaves[at]
    value = leaf.constant + sum(by * draws[draw][holds] for draw, by in leaf.terms.items())
    simulated: Floats = value[: math.ceil(math.exp(log_weight_apart(outcome)) * len(value))]
    return simulated


def _finite(outcome: Outcome, block: Sequence[int], rows: list[list[Any]]) -> float:
    """Evidence by the values of finite leaves."""
    probabilities = joint(outcome, block)
    counts: Counter[Hashable] = Counter(tuple(key_of(row[at]) for at in block) for row in rows)
    observed = np.array([counts.pop(key, 0) for key in probabilities])
    p = np.array(list(probabilities.values()))
    rare = (
        p < NEARLY_EQUAL
    )  # one by one, values that hardly ever come would cost more than they show
    p, observed = (np.append(of[~rare], of[rare].sum()) for of in (p, observed))
    return log_e_value(observed, p / p.sum(), counts.total(), 0.0)


def _by_draws(
    outcome: Outcome, block: Sequence[int], values: Floats
) -> tuple[list[Floats], list[float]] | None:
    """The quantiles in their laws, from 0 to 1, of the draws behind sums; and evidence by them.

    None if the draws do not follow from the sums, or their law has no closed form.
    """
    leaves = linear_of(outcome, block)
    rows = independent_rows(leaves.matrix)
    independent = leaves.rows(rows)
    laws = [noise.law for noise in independent.noises if noise.law is not None]
    matrix: Floats = independent.matrix
    if leaves.normal and matrix.shape[0] < matrix.shape[1]:
        matrix = np.asarray(np.linalg.cholesky(matrix @ matrix.T), float)
        laws = [Law(NORMAL)] * len(matrix)
    if matrix.shape[0] != matrix.shape[1] or len(laws) < len(matrix):
        return None
    draws = np.linalg.solve(matrix, (values[:, rows] - independent.constant).T)
    if len(rows) < len(values.T):
        implied = draws.T @ leaves.matrix.T + leaves.constant
        if np.abs(implied - values).max() > NEARLY_EQUAL * np.abs(values).max():
            return [], [math.inf]
    quantiles, evidence = [], []
    for draw, law in zip(draws, laws, strict=True):
        if law.lattice:
            evidence.append(_by_integers(draw, law))
        else:
            quantile = np.exp(law.log_below(draw))
            bins = (np.minimum(quantile, 1 - 1e-9) * BINS).astype(int)
            counts = np.bincount(bins, minlength=BINS)
            evidence.append(log_e_value(counts, np.full(BINS, 1 / BINS), 0, 0.0))
            quantiles.append(quantile)
    return quantiles, evidence


def _by_repeats(leaf: Affine, values: Floats) -> float:
    """Evidence by values that come again, which those of continuous draws hardly ever do.

    By the number of equal pairs, of which Poisson's law bounds how many rounding makes (Chernoff).
    """
    scales = [
        abs(by) for by, law in zip(leaf.terms.values(), leaf.laws, strict=True) if not law.lattice
    ]
    if not scales:
        return 0.0
    times = np.unique(values, return_counts=True)[1]
    equal = float((times * (times - 1)).sum()) / 2
    step = max(float(np.spacing(np.abs(values).max())) / max(scales), FLOAT_ERRORS)
    expected = min(step, 1.0) * len(values) ** 2
    return equal * math.log(equal / expected) - equal + expected if equal > expected else 0.0


def _by_integers(draw: Floats, law: Law) -> float:
    """Evidence by draws of a law of integers."""
    if np.abs(draw - np.round(draw)).max() > NEARLY_EQUAL:
        return math.inf
    low, high = law.support
    if law.family is not INTEGERS:
        reach = 3 / -math.log(law.parameter)
        low, high = max(low, -reach), reach
    edges = np.unique(np.round(np.linspace(low, high, BINS + 1))) + 0.5
    ends = np.concatenate([[-np.inf], edges, [np.inf]])
    p = np.exp(law.log_between(ends[:-1], ends[1:]))
    return log_e_value(np.histogram(draw, ends)[0], p / p.sum(), 0, 0.0)
