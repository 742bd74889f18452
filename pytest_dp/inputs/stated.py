"""Pairs that a claim states itself."""

from __future__ import annotations

from typing import Any

from pytest_dp.datasets import describe, key
from pytest_dp.datasets.relations import AddRemoveOne, Pair, Relation
from pytest_dp.errors import ClaimError


def stated_pair(where: str, d1: Any, d2: Any, relation: Relation | None) -> Pair:
    """A pair that the claim states, checked; errors say where."""
    both = f"D = {describe(d1)} and D' = {describe(d2)}"
    if key(d1) == key(d2):
        raise ClaimError(
            f"{where} is not a pair of neighbours: {both} are identical, so no mechanism "
            "could tell them apart. Write two inputs that differ, such as "
            f"{(relation or AddRemoveOne()).example}."
        )
    if relation is None:
        return Pair(d1, d2)
    fault = relation.fault(d1, d2)
    if fault:
        raise ClaimError(
            f"{where} is not a pair of neighbours under {relation}: {both}; {fault}. Required: "
            f"{relation.required}, such as {relation.example}. Correct the pair, or leave "
            "neighbors= out to audit it as it stands."
        )
    return Pair(d1, d2, relation.difference(d1, d2))
