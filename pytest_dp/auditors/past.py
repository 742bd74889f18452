"""Pairs to begin with, and evidence, that an audit takes over from earlier ones of its claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pytest_dp.claiming.claim import Promise
from pytest_dp.data.relations import Pair
from pytest_dp.results.evidence import Evidence, e_value


@dataclass(frozen=True, slots=True)
class Past:
    """The pairs and evidence of earlier audits, asked for once a promise's inputs are looked up."""

    pairs: Callable[[Promise], list[Pair]] = lambda promise: []  # noqa: ARG005
    """What broke the promise before, to be tried first."""
    evidence: Callable[[Promise, int], Evidence | None] = lambda promise, seed: None  # noqa: ARG005
    """What runs of the same audit with other seeds have shown; None if nobody collects it, so that
    this one leaves none either."""


NOTHING = Past()


def note_of(earlier: Evidence) -> str:
    """Return what counts in this run beside its own evidence."""
    value = f"{e_value(earlier.log_e_value):.2g}"
    runs = "an earlier run" if earlier.runs == 1 else f"{earlier.runs:,} earlier runs"
    return f"the evidence of {runs} counts as well: an e-value of {value} before this one"
