"""What a run takes over from earlier ones of the same audit: where to begin, and what to bet on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_dp.attacks.binning import Binning
from pytest_dp.evidence.betting import Record
from pytest_dp.results.evidence import Evidence

if TYPE_CHECKING:
    from pytest_dp.auditors.arms import Arm

MAX_LEARNED = 4
"""Pairs of inputs of which what was learned is kept: those that earned most, or promise most."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What one of the claim's pairs of inputs has taught.

    Attributes
    ----------
    number : int
        Of the pair.
    coupled : bool
    binnings : tuple of Binning
    record : Record
    pairs : int
        Pairs of outputs by which the binnings were made.
    """

    number: int
    coupled: bool
    binnings: tuple[Binning, ...]
    record: Record
    pairs: int


def learned_by(arms: Sequence[Arm], given: int) -> tuple[Learned, ...]:
    """What the most promising of the first `given` pairs have taught."""
    known = [arm for arm in arms if arm.binnings and arm.number < given]
    best = sorted(known, key=lambda arm: (-arm.earned, -arm.hope))[:MAX_LEARNED]
    return tuple(
        Learned(arm.number, arm.coupled, arm.binnings, arm.record, arm.learned) for arm in best
    )


def remind(arm: Arm, known: Sequence[Learned]) -> None:
    """Go on from what the pair has taught before, if it is run in the same way."""
    for each in known:
        if each.number == arm.number and each.coupled == arm.coupled:
            arm.binnings, arm.record, arm.learned = each.binnings, each.record, each.pairs


def told_of(earlier: Evidence) -> str:
    """What counts in this run beside its own evidence."""
    value = f"{math.exp(min(earlier.log_e_value, 700.0)):.2g}"
    runs = "an earlier run" if earlier.runs == 1 else f"{earlier.runs:,} earlier runs"
    return f"the evidence of {runs} counts as well: an e-value of {value} before this one"
