"""Outcomes taken apart: leaves, draws and conditions that hang together are a part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pytest_dp.analytic.conditioned import log_weight
from pytest_dp.analytic.outcomes import Outcome
from pytest_dp.analytic.trace import Condition
from pytest_dp.analytic.values import Affine, Finite


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


@lru_cache(maxsize=4_096)
def parts_of(outcome: Outcome) -> tuple[Part, ...]:
    """Leaves, draws and conditions that hang together; a constant is a part of its own."""
    sets: list[tuple[set[int], set[int], list[Condition]]] = []
    for at, leaf in enumerate(outcome.leaves):
        draws = set(leaf.terms) if isinstance(leaf, Affine) else set()
        draws |= set(leaf.cuts) if isinstance(leaf, Finite) else set()
        sets.append(({at}, draws, []))
    sets += [(set(), set(condition.terms), [condition]) for condition in outcome.conditions]
    sets += [(set(), {draw}, []) for draw in outcome.allowed]
    return tuple(
        Part(tuple(sorted(leaves)), frozenset(draws), tuple(conditions))
        for leaves, draws, conditions in _united(sets)
    )


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


def blocks_of(parts: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
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


def is_free(outcome: Outcome, part: Part) -> bool:
    """Whether some output of a part is no constant."""
    return any(isinstance(outcome.leaves[at], Affine | Finite) for at in part.leaves)


@lru_cache(maxsize=4_096)
def _compared_leaves(outcome: Outcome) -> frozenset[int]:
    return frozenset(
        leaf
        for part in parts_of(outcome)
        for leaf in part.leaves
        if part.conditions or part.draws & outcome.allowed.keys()
    )


def is_compared(outcome: Outcome, block: Sequence[int]) -> bool:
    """Whether something was decided of a draw behind some leaves."""
    return not _compared_leaves(outcome).isdisjoint(block)


def log_total(outcomes: list[Outcome]) -> float:
    """The logarithm of the probability of any of some outcomes."""
    if not outcomes:
        return -math.inf
    logs = [
        math.fsum(log_weight(outcome, part) for part in parts_of(outcome) if part.draws)
        for outcome in outcomes
    ]
    return float(np.logaddexp.reduce(logs))
