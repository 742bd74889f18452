"""What breaks a claim on a pair of inputs, if what is known of it without samples is right."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pytest_dp.attacks.binning import Binning
from pytest_dp.datasets.relations import Pair
from pytest_dp.randomness.stand_ins import CannotInstrument
from pytest_dp.sampling.chunks import Input

Law = TypeVar("Law")
Known = TypeVar("Known")

MAX_PAIRS = 16
"""The claim's first pairs of inputs, for which distributions are derived: more take time from the
bets, fewer leave it to the bets to find the pair that is broken. Chosen by hand."""
MIN_REAL, REFUTED = 1_000, math.log(1_000)
"""Real outputs on an input by which a derived distribution is checked, and the log likelihood ratio
that refutes it. Fewer outputs check little, and more are seldom kept; weaker evidence would refute
right distributions, one in a thousand here. Chosen by hand."""
ABOVE = 1 + 1e-9
"""Factor by which rounding may take the loss of a claim that is attained above the claim: far more
than double precision loses, far less than matters."""
CAUTION = 4.0
"""Times the pairs of outputs that should refute a claim, after which a proposal is dropped. Smaller
values drop right ones by bad luck, larger ones bet longer on wrong ones. Chosen by hand."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A set of outputs that breaks the claim, if nothing was overlooked.

    Attributes
    ----------
    edge : float
        Standard deviations of a payoff that it should win, on average.
    needed : int
        Pairs of outputs after which it should have won, about.
    binning : Binning or None
        The set; None if it is left to what is learned.
    """

    edge: float
    needed: int
    binning: Binning | None = None

    def is_open(self, drawn: int) -> bool:
        """Whether it may still win after so many pairs of outputs."""
        return drawn < CAUTION * self.needed


def proposal(
    masses: tuple[float, float], excess: float, eps: float, alpha: float, binning: Binning | None
) -> Proposal:
    """By the probabilities of the set on both inputs, and by what it exceeds the claim."""
    (p, q), factor = masses, math.exp(eps)
    variance = p * (1 - p) + factor**2 * q * (1 - q)
    edge = excess / math.sqrt(max(variance, excess**2))
    return Proposal(edge, int(2 * math.log(1 / alpha) / edge**2) + 1, binning)


def best_within(max_pairs: float, proposals: Iterable[Proposal]) -> Proposal | None:
    """The proposal with the largest edge among those that so many pairs of outputs should win."""
    affordable = (candidate for candidate in proposals if candidate.needed <= max_pairs)
    return max(affordable, key=lambda candidate: candidate.edge, default=None)


def known_pairs(
    pairs: Sequence[Pair], law_of: Callable[[Any], Law], compare: Callable[[Law, Law], Known]
) -> tuple[dict[int, Known], BaseException | None]:
    """What is known of the claim's first pairs, by number, and what kept it from the next one.

    Parameters
    ----------
    pairs : sequence of Pair
    law_of : callable
        The distribution of the outputs on an input; called once for equal inputs.
    compare : callable
        What follows from the distributions on D and on D'.
    """
    laws: dict[object, Law] = {}

    def law(data: Any) -> Law:
        frozen = Input(data).frozen
        key = id(data) if frozen is None else frozen
        if key not in laws:
            laws[key] = law_of(data)
        return laws[key]

    known: dict[int, Known] = {}
    for number, pair in enumerate(pairs[:MAX_PAIRS]):
        try:
            known[number] = compare(law(pair.d1), law(pair.d2))
        except (CannotInstrument, Exception) as reason:  # what only proposes breaks no audit
            return known, reason
    return known, None
