"""What an audit takes over from earlier ones of the same claim: where to begin, what to bet on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_dp.attacks.binning import Binning
from pytest_dp.auditing.detector import Detector
from pytest_dp.claim import Promise
from pytest_dp.datasets import key
from pytest_dp.datasets.relations import Pair
from pytest_dp.faults import note_fault
from pytest_dp.reprs import without_addresses
from pytest_dp.results.evidence import Evidence, e_value
from pytest_dp.statistics.ledger import Record

if TYPE_CHECKING:
    from pytest_dp.auditors.pair_state import PairState


@dataclass(frozen=True, slots=True)
class Past:
    """What earlier audits have left. Both are asked once the inputs of a promise are looked up."""

    pairs: Callable[[Promise], list[Pair]] = lambda promise: []  # noqa: ARG005
    """What broke the promise before, to be tried first."""
    evidence: Callable[[Promise, int], Evidence | None] = lambda promise, seed: None  # noqa: ARG005
    """What runs of the same audit with other seeds have shown; None if nobody collects it, so that
    this one leaves none either."""


NOTHING = Past()


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


def learned_by(states: Sequence[PairState]) -> tuple[Learned, ...]:
    """What the most promising pairs have taught."""
    known = [state for state in states if state.binnings]
    best = sorted(known, key=lambda state: (-state.earned, -state.edge_bound))[:4]
    return tuple(
        Learned(pair_digest(state.pair), state.coupled, state.binnings, state.record, state.learned)
        for state in best
    )


def remind(state: PairState, known: Sequence[Learned]) -> None:
    """Go on from what the same pair has taught before, if it is run in the same way."""
    digest = pair_digest(state.pair) if known else ""
    for before in known:
        if digest and before.pair == digest and before.coupled == state.coupled:
            state.detector = Detector(before.binnings, before.pairs)
            state.record = before.record


def pair_digest(pair: Pair) -> str:
    """The same for equal inputs, in every process; empty where that cannot be known."""
    try:
        inside = _stable_repr((key(pair.d1), key(pair.d2), key(dict(pair.params))))
    except Exception as error:  # records are the user's objects: their repr may raise
        note_fault(error, "identifying a pair")
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
    value = f"{e_value(earlier.log_e_value):.2g}"
    runs = "an earlier run" if earlier.runs == 1 else f"{earlier.runs:,} earlier runs"
    return f"the evidence of {runs} counts as well: an e-value of {value} before this one"
