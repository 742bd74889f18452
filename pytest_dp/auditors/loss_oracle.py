"""Losses that are known without a bet, as the betting asks for them; by default none is.

The optional part `oracle` finds and checks them. They decide when an audit may pass; what breaks
a claim is found by bets.
"""
# ruff: noqa: ARG002  the defaults ignore their arguments

from __future__ import annotations

from collections.abc import Sequence

from pytest_dp.auditors.pair_state import PairState
from pytest_dp.auditors.pairs_in_play import ClaimPairs
from pytest_dp.auditors.session import Session
from pytest_dp.pairs import Pair
from pytest_dp.registry import load
from pytest_dp.results.outcome import Estimate
from pytest_dp.running.deadline import Deadline

OTHER_OUTPUTS = "real runs give other outputs than derived"


class KnownLosses:
    """Known losses on pairs: none, unless a subclass finds some.

    `refusal` is why no loss is known of further pairs, and `against` why none is relied on; both
    are empty if there is no reason. `runs` is how many real runs agree, once a pass rests on it.
    """

    def __init__(self, refusal: str = "") -> None:
        self.refusal, self.against, self.runs = refusal, "", 0

    @property
    def may_exceed(self) -> bool:
        """True if a loss is above the claim, or likely to be."""
        return False

    @property
    def is_within(self) -> bool:
        """True if the loss is known on all pairs of the claim, and nowhere above the claim."""
        return False

    @property
    def unknown(self) -> Sequence[PairState]:
        """Pairs without a known loss that lack outputs."""
        return ()

    def of_pairs(self, session: Session, pairs: ClaimPairs, *, found: bool = True) -> KnownLosses:
        """Return what is known of the pairs of an audit, perhaps without those `found` so far."""
        return self

    def add(self, number: int, pair: Pair, deadline: Deadline) -> None:
        """Look for the loss on one more pair."""

    def is_aligned(self, pair: Pair, deadline: Deadline) -> bool:
        """Return whether an alignment bounds the loss on one more pair within the claim."""
        return False

    def required_runs(self) -> int:
        """Return how many pairs of outputs are enough on each pair; 0 if no number is."""
        return 0

    def missing(self, state: PairState) -> int:
        """Return how many pairs of outputs are missing on a pair whose loss is known."""
        return 0

    def decides(self, state: PairState) -> bool:
        """Return whether a few runs on a pair are enough, so that none is made for bets."""
        return False

    def accepts_pass(self) -> bool:
        """Return whether a pass may rest on it: real runs on all pairs so far look as derived."""
        return False

    def suspects(self) -> Sequence[PairState]:
        """Return the pairs of the largest known loss, if that breaks the claim."""
        return ()

    def suspicion(self) -> tuple[Estimate, str]:
        """Return a loss that is above the claim, and what to do about it, of `suspects`."""
        raise ValueError("no loss is known")

    def estimate(
        self, states: Sequence[PairState], *, violated: bool
    ) -> tuple[Estimate | None, str]:
        """Return the loss on the claim's pairs, and else why it is not known."""
        return None, self.refusal

    def cheaper_claim(self) -> str:
        """Return which claim needs fewer runs; empty if none does."""
        return ""


def losses_of(session: Session) -> KnownLosses:
    """Return what the oracle knows of the claim's first pairs; nothing where there is none."""
    try:
        find_losses = load("oracle", "known")
    except ImportError as error:
        session.sampler.note(f"no losses were derived: {error}")
        return KnownLosses(str(error))
    found: KnownLosses = find_losses(session)
    return found
