"""What an audit may ask of earlier audits of the same claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pytest_dp.claim import Promise
from pytest_dp.datasets.relations import Pair
from pytest_dp.results.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Past:
    """What earlier audits have left. Both are asked once the inputs of a promise are looked up.

    Attributes
    ----------
    pairs : callable
        ``pairs(promise)``: what broke the promise before, to be tried first.
    evidence : callable
        ``evidence(promise, seed)``: what runs of the same audit with other seeds have shown; None
        if nobody collects it, so that this one leaves none either.
    """

    pairs: Callable[[Promise], list[Pair]] = lambda promise: []  # noqa: ARG005
    evidence: Callable[[Promise, int], Evidence | None] = lambda promise, seed: None  # noqa: ARG005


NOTHING = Past()
