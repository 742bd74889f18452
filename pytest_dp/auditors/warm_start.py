"""What a run takes over from earlier ones of the same audit: where to begin, and what to bet on."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_dp.attacks.binning import Binning
from pytest_dp.datasets import key
from pytest_dp.datasets.relations import Pair
from pytest_dp.evidence.betting import Record
from pytest_dp.reprs import without_addresses
from pytest_dp.results.evidence import Evidence

if TYPE_CHECKING:
    from pytest_dp.auditors.arms import Arm


@dataclass(frozen=True, slots=True)
class Learned:
    """What one of the claim's pairs of inputs has taught."""

    pair: str
    """A digest of its inputs: what a strategy draws is another with each seed."""
    coupled: bool
    binnings: tuple[Binning, ...]
    record: Record
    pairs: int
    """Pairs of outputs by which the binnings were made."""


def learned_by(arms: Sequence[Arm]) -> tuple[Learned, ...]:
    """What the most promising pairs have taught."""
    known = [arm for arm in arms if arm.binnings]
    best = sorted(known, key=lambda arm: (-arm.earned, -arm.hope))[:4]
    return tuple(
        Learned(pair_digest(arm.pair), arm.coupled, arm.binnings, arm.record, arm.learned)
        for arm in best
    )


def remind(arm: Arm, known: Sequence[Learned]) -> None:
    """Go on from what the same pair has taught before, if it is run in the same way."""
    digest = pair_digest(arm.pair) if known else ""
    for before in known:
        if digest and before.pair == digest and before.coupled == arm.coupled:
            arm.binnings, arm.record, arm.learned = before.binnings, before.record, before.pairs


def pair_digest(pair: Pair) -> str:
    """The same for equal inputs, in every process; empty where that cannot be known."""
    try:
        inside = _stable_repr((key(pair.d1), key(pair.d2), key(dict(pair.params))))
    except Exception:  # records are the user's objects: their repr may raise
        return ""
    hides = without_addresses(inside) != inside  # what an object holds
    return "" if hides else hashlib.sha256(inside.encode("utf-8", "backslashreplace")).hexdigest()


def _stable_repr(content: Hashable) -> str:
    """The repr of a key, but for its sets: their order is another in every process."""
    if isinstance(content, frozenset):
        return f"{{{', '.join(sorted(map(_stable_repr, content)))}}}"
    if isinstance(content, tuple):
        return f"({', '.join(map(_stable_repr, content))})"
    return repr(content)


def note_of(earlier: Evidence) -> str:
    """What counts in this run beside its own evidence."""
    value = f"{math.exp(min(earlier.log_e_value, 700.0)):.2g}"
    runs = "an earlier run" if earlier.runs == 1 else f"{earlier.runs:,} earlier runs"
    return f"the evidence of {runs} counts as well: an e-value of {value} before this one"
