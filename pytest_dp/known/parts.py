"""Independent parts of an outcome: leaves, with the draws and conditions that they depend on."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pytest_dp.known.affine import Affine
from pytest_dp.known.finite import Finite
from pytest_dp.known.outcomes import Outcome
from pytest_dp.known.trace import Condition
from pytest_dp.limits import MAX_WORK


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


@dataclass(frozen=True, slots=True)
class Part:
    """Leaves of an outcome, and the draws and conditions that belong to them, all by number."""

    leaves: tuple[int, ...]
    draws: frozenset[int]
    conditions: tuple[Condition, ...] = ()


@lru_cache(maxsize=MAX_WORK // 2)
def parts_of(outcome: Outcome) -> tuple[Part, ...]:
    """Leaves and conditions that share draws are one part; a constant is a part by itself."""
    count = len(outcome.leaves)
    draws = [_draws_of(leaf) for leaf in outcome.leaves]
    draws += [frozenset(condition.terms) for condition in outcome.conditions]
    draws += [frozenset({draw}) for draw in outcome.allowed]
    conditions = dict(enumerate(outcome.conditions, start=count))
    return tuple(
        Part(
            tuple(number for number in group if number < count),
            frozenset().union(*(draws[number] for number in group)),
            tuple(conditions[number] for number in group if number in conditions),
        )
        for group in connected(draws)
    )


def _draws_of(leaf: object) -> frozenset[int]:
    if isinstance(leaf, Affine):
        return frozenset(leaf.terms)
    return frozenset(leaf.cuts) if isinstance(leaf, Finite) else frozenset()


def blocks_of(parts: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The finest partition of leaves in which every part is inside of one block."""
    groups = (set().union(*(parts[number] for number in group)) for group in connected(parts))
    return sorted(tuple(sorted(block)) for block in groups)


def part_with(outcome: Outcome, leaf: int) -> Part:
    """The part that a leaf belongs to."""
    return next(part for part in parts_of(outcome) if leaf in part.leaves)


def is_random(outcome: Outcome, part: Part) -> bool:
    """Whether some leaf of a part depends on draws."""
    return any(isinstance(outcome.leaves[at], Affine | Finite) for at in part.leaves)


@lru_cache(maxsize=MAX_WORK // 2)
def _compared_leaves(outcome: Outcome) -> frozenset[int]:
    return frozenset(
        leaf
        for part in parts_of(outcome)
        for leaf in part.leaves
        if part.conditions or part.draws & outcome.allowed.keys()
    )


def is_compared(outcome: Outcome, block: Sequence[int]) -> bool:
    """Whether a draw that some leaves depend on was compared with something."""
    return not _compared_leaves(outcome).isdisjoint(block)
