"""How promising an event is by its counts: the order in which events are looked at and bet on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.outputs.event_search import Rank
from pytest_dp.privacy import Guarantee
from pytest_dp.statistics.event_bets import event_growth

LUCK = 8.0
"""Log wealth that choosing the best of many events afterwards gives to a claim that holds. It ranks
events only: with 0, StatDP takes no more samples, but bets miss what the last digit of a number
says. Measured."""
TIE_WEIGHT = 1e-6
"""Weight of log wealth where so few outputs were seen that no bound says anything: it only breaks
ties. StatDP takes as many samples without it; but the best event of a dozen outputs,
from which the first bets come, is then missed. Measured."""


def rank_for(guarantee: Guarantee, rarest: float = 0.001) -> Callable[[int], Rank]:
    """Return a function that ranks events by their counts, given the number of pairs of outputs.

    Positive ranks: log growth of the best bet on the event, which orders events as their p-values
    do. Negative ranks: a cautious lower bound on the loss minus the claim, so that rare events that
    came by chance do not win.

    Events have to come at least five times. On D' their probability is `rarest` or more if the
    claim is used up: the paper's filter, by default.
    """
    sticks = guarantee.hockey_sticks

    def of_runs(runs: int) -> Rank:
        fewest = max(5.0, runs * min(stick.largest_probability(rarest) for stick in sticks))

        def rank(c1: Ints, c2: Ints) -> Floats:
            high, low = np.maximum(c1, c2), np.minimum(c1, c2)
            score = event_growth(high, low, runs, sticks)
            excess = score - LUCK
            seldom, often = np.maximum(high - 4 * np.sqrt(high), 0.1), low + 4 * np.sqrt(low) + 4.0
            allowed = np.min([stick.largest_probability(often, runs) for stick in sticks], axis=0)
            short = np.minimum(np.log(seldom / allowed), 0.0)
            ranks = np.where(excess > 0, excess, short - 1.0 + TIE_WEIGHT * score)
            return np.where(c1 + c2 >= min(fewest, runs), ranks, -np.inf)

        return rank

    return of_runs
