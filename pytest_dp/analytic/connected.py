"""Sets that hang together: those that share members, directly or through others."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence


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
