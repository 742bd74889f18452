"""What an audit may ask of earlier audits of the same claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pytest_dp.claim import Promise
from pytest_dp.datasets.relations import Pair
from pytest_dp.results.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Past:
    """What earlier audits have left. Both are asked once the inputs of a promise are looked up."""

    pairs: Callable[[Promise], list[Pair]] = lambda promise: []  # noqa: ARG005
    """What broke the promise before, to be tried first."""
    evidence: Callable[[Promise, int], Evidence | None] = lambda promise, seed: None  # noqa: ARG005
    """What runs of the same audit with other seeds have shown; None if nobody collects it, so that
    this one leaves none either."""


NOTHING = Past()
