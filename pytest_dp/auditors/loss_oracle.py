"""Losses that are known without a bet, as the betting asks for them; by default none is.

The optional part `oracle` finds and checks them. What is known only proposes: the bets decide.
"""
# ruff: noqa: ARG002  the defaults ignore their arguments

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pytest_dp.auditors.pair_state import PairState
from pytest_dp.auditors.pairs_in_play import ClaimPairs
from pytest_dp.auditors.pool import Pool
from pytest_dp.auditors.session import Session
from pytest_dp.betting.binning import Binning
from pytest_dp.pairs import Pair
from pytest_dp.privacy import Guarantee
from pytest_dp.registry import load
from pytest_dp.results.outcome import Estimate
from pytest_dp.running.deadline import Deadline

OTHER_OUTPUTS = "real runs give other outputs than derived"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A set of outputs that breaks the claim, if nothing was overlooked."""

    edge: float
    """Standard deviations of a payoff that it should win, on average."""
    needed: int
    """Pairs of outputs after which it should have won, about."""
    binning: Binning | None = None
    """The set; None if it is left to what is learned."""


class KnownLosses:
    """What is known of pairs without a sample: nothing, unless a subclass says more.

    `refusal` is why no loss is known of further pairs; empty if there could be.
    """

    def __init__(self, refusal: str = "") -> None:
        self.refusal = refusal

    @property
    def is_above(self) -> bool:
        """Whether the loss is likely to be above the claim."""
        return False

    def without_pairs(self) -> KnownLosses:
        """Return how losses are found of pairs that no alignment bounds, with none found."""
        return self

    def is_aligned(self, pair: Pair, deadline: Deadline) -> bool:
        """Return whether an alignment bounds the loss on one more pair within the claim."""
        return False

    def add(self, number: int, pair: Pair, deadline: Deadline) -> None:
        """Look for the loss on one more pair."""

    def proposal(
        self, number: int, guarantee: Guarantee, alpha: float, max_pairs: float
    ) -> Proposal | None:
        """Return what breaks the claim on a pair, if so many pairs of outputs should show it."""
        return None

    def checked_estimate(
        self, session: Session, pool: Pool, states: Sequence[PairState], violated: bool
    ) -> tuple[Estimate | None, str]:
        """Return the loss on the claim's pairs, and else why it is not known."""
        return None, self.refusal

    def cheaper_claim(self, guarantee: Guarantee) -> str:
        """Return which claim needs fewer runs; empty if none does."""
        return ""


class LossCheck:
    """Known losses of an audit's pairs, held against real runs: none, unless a subclass has some.

    `runs` is how many real runs agree with what is known, once a pass rests on it, else 0.
    `against` is why not to rely on it; empty if nothing speaks for that.
    """

    def __init__(self) -> None:
        self.runs, self.against = 0, ""

    @property
    def is_within(self) -> bool:
        """Whether the loss is known on all pairs that the claim gives, and nowhere exceeds it."""
        return False

    @property
    def exceeds(self) -> bool:
        """Whether a known loss is larger than the claim: then a violation may still be found."""
        return False

    @property
    def unknown(self) -> list[PairState]:
        """Pairs without a known loss that lack outputs."""
        return []

    @property
    def estimate(self) -> Estimate:
        """The loss on the claim's pairs."""
        raise ValueError("no loss is known")

    @property
    def suspicion(self) -> str:
        """That the loss is larger than the claim, and what to do about it."""
        return ""

    def distrust(self, reason: str) -> None:
        """Rely on nothing that is known."""
        self.against = reason

    def decides(self, state: PairState) -> bool:
        """Return whether a few runs on a pair are enough, so that none is made for bets."""
        return False

    def required_runs(self) -> int:
        """Return how many pairs of outputs are enough on each pair; 0 if no number is."""
        return 0

    def missing(self, state: PairState) -> int:
        """Return how many pairs of outputs are missing on a pair whose loss is known."""
        return 0

    def is_enough(self) -> bool:
        """Return whether there were enough real runs on all pairs so far, which look as derived."""
        return False

    def accept_pass(self) -> None:
        """Let the audit's pass rest on what is known."""

    def is_suspect(self) -> bool:
        """Return whether the loss is larger than the claim, by all that runs show."""
        return False

    def suspects(self) -> list[PairState]:
        """Return the pairs of the largest known loss, if that breaks the claim."""
        return []


class LossOracle(Protocol):
    """Finds losses, and checks them: the optional part `oracle`."""

    def find_losses(self, session: Session) -> KnownLosses:
        """Return what is known of the claim's first pairs."""

    def check_losses(self, session: Session, known: KnownLosses, pairs: ClaimPairs) -> LossCheck:
        """Return the check of what is known of the pairs of an audit."""


def losses_of(session: Session) -> KnownLosses:
    """Return what the oracle knows of the claim's first pairs; nothing where there is none."""
    try:
        oracle: LossOracle = load("oracle", "known")
    except ImportError as error:
        session.sampler.note(f"no losses were derived: {error}")
        return KnownLosses(str(error))
    return oracle.find_losses(session)


def check_known(session: Session, known: KnownLosses, pairs: ClaimPairs) -> LossCheck:
    """Return the check of what is known of some pairs."""
    if type(known) is KnownLosses:
        return LossCheck()
    oracle: LossOracle = load("oracle", "known")
    return oracle.check_losses(session, known, pairs)
