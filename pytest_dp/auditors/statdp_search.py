"""The search of StatDP: which pair and which event look most suspicious, on samples of its own.

Algorithm 1 of the paper draws 100,000 samples of every pair. Here pairs are compared on few samples
first, and only the suspicious half goes on (successive halving). Nothing found here is evidence:
what comes out is tested on held-out samples.

Source: Ding, Wang, Wang, Zhang, Kifer, "Detecting Violations of Differential Privacy", CCS 2018,
Algorithms 1 and 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pytest_dp.arrays import Floats, Ints
from pytest_dp.attacks.expected_bounds import apart, likelier_first
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.pool import Contender, Pool, draw_up_to, line_up
from pytest_dp.auditors.witness import Witness
from pytest_dp.counterexample import simplest
from pytest_dp.evidence.event_test import event_test
from pytest_dp.limits import ENOUGH, NEARLY_HALF, THOUSAND
from pytest_dp.outputs.event_search import Rank, RankedEvent, search
from pytest_dp.privacy import Guarantee
from pytest_dp.sampling.deadline import OutOfTime

LUCK = 8.0
"""Log likelihood ratio that choosing the best of many events gives to a claim that holds. It ranks
events only: with 0, StatDP takes no more samples, but bets miss what the last digit of a number
says. Measured."""
DECISIVE = 30.0
"""Log likelihood ratio beyond luck at which the search is over: larger values search longer,
smaller ones test what may be luck. Measured."""
SUGGESTIVE = DECISIVE / 5
"""The same, for a pair to be preferred over a decisive one because it is simpler."""
TIE_WEIGHT = 1e-6
"""Weight of a log likelihood ratio where so few outputs were seen that no bound says anything: it
only breaks ties. StatDP takes as many samples without it; but the best event of a dozen outputs,
from which the first bets come, is then missed. Measured."""


@dataclass(slots=True, eq=False)
class Suspect(Contender):
    """A pair in the search."""

    ranked: RankedEvent | None = None
    """Its most suspicious event on `runs` samples of each input."""
    runs: int = 0
    decided: bool = False
    """Whether no more samples are needed to pick it."""

    @property
    def rank(self) -> float:
        return self.ranked.rank if self.ranked is not None else -math.inf

    @property
    def witness(self) -> Witness:
        """Its event, in the direction that the search saw."""
        assert self.ranked is not None
        sign = -1 if self.ranked.c2 > self.ranked.c1 else 1
        p1, p2 = (c / self.runs for c in likelier_first(sign, self.ranked.c1, self.ranked.c2))
        return Witness(self, None, self.ranked.event, sign, p1, p2)


def find_suspect(context: Context, pool: Pool) -> tuple[list[Suspect], Suspect | None]:
    """Successive halving: a quick look at all pairs, then equal effort for ever fewer of them.

    Returns the pairs that took part, and the one to test, or None if no event is worth a test.
    """
    budget = NEARLY_HALF * context.max_samples
    contenders = everyone = line_up(context, pool, budget, Suspect)
    deadline = context.deadline.sooner(NEARLY_HALF)
    rank = rank_for(context.guarantee)
    a_round = budget / (math.ceil(math.log2(len(contenders))) + 1)
    full = max(1, int(a_round / len(pool.inputs)))
    runs = min(THOUSAND // 2, full)
    while True:
        try:
            draw_up_to(context, pool, contenders, runs, deadline)
        except OutOfTime as out:
            if out.stack or not any(pool.drawn):
                raise
            break  # judge by what there is
        for contender in contenders:
            _look(contender, pool, rank)
        contenders = sorted(contenders, key=lambda c: (-c.rank, c.number))
        best = contenders[0].rank
        if best > DECISIVE:  # among pairs about as suspicious, the first one is the simplest
            near = [c for c in contenders if c.rank > max(SUGGESTIVE, 0.4 * best)]
            contenders = [min(near, key=lambda c: c.number)]
            contenders[0].decided = True
            break
        if runs < full:
            runs = min(4 * runs, full)
        elif len(contenders) == 1:
            break
        else:
            contenders = contenders[: len(contenders) // 2]
            runs += int(a_round / len({i for c in contenders for i in (c.input1, c.input2)}))
    return everyone, next((c for c in contenders if c.ranked is not None), None)


def _look(contender: Suspect, pool: Pool, rank_of: Callable[[int], Rank]) -> None:
    """Find the most suspicious event of a pair on all search samples so far."""
    table, on_d = pool.table(contender)
    contender.runs = len(on_d) // 2
    rank = rank_of(contender.runs)
    events = search(table, on_d, rank, contender.references, limit=1)
    contender.ranked = simplest(events[0], table, on_d, rank) if events else None


def rank_for(guarantee: Guarantee, rarest: float = 0.001) -> Callable[[int], Rank]:
    """How suspicious counts are; above 0 if they exceed the claim by more than luck explains.

    Up there it is a log likelihood ratio, an inexpensive stand-in for the p-value by which the
    paper ranks events. Below, events that came out on top by luck would beat those that can prove
    something, so it is how far a cautious bound on the loss stays from the claim.

    Events have to come at least five times. On D' their probability is `rarest` or more if the
    claim is used up: the paper's filter, by default.
    """
    sticks, test = guarantee.hockey_sticks, event_test(guarantee)

    def of_runs(runs: int) -> Rank:
        fewest = max(5.0, runs * min(stick.largest_probability(rarest) for stick in sticks))

        def rank(c1: Ints, c2: Ints) -> Floats:
            high, low = np.maximum(c1, c2), np.minimum(c1, c2)
            score = test.score(high, low, runs)
            excess = score - LUCK
            seldom, often = np.maximum(high - 4 * np.sqrt(high), 0.1), low + 4 * np.sqrt(low) + 4.0
            allowed = np.min([stick.largest_probability(often, runs) for stick in sticks], axis=0)
            short = np.minimum(np.log(seldom / allowed), 0.0)
            ranks = np.where(excess > 0, excess, short - 1.0 + TIE_WEIGHT * score)
            return np.where(c1 + c2 >= min(fewest, runs), ranks, -np.inf)

        return rank

    return of_runs


def largest_shown(contender: Contender, pool: Pool, guarantee: Guarantee) -> float:
    """The most that any event showed of the claim in the search, less two standard errors."""

    def cautious(c1: Ints, c2: Ints, runs: int) -> tuple[Floats, Floats]:
        high, low = np.maximum(c1, c2) + 0.5, np.minimum(c1, c2) + 0.5
        error = np.sqrt(1 / high + 1 / low)
        return high / runs * np.exp(-error), np.minimum(low / runs * np.exp(error), 1.0)

    table, on_d = pool.table(contender)
    runs = len(on_d) // 2

    def rank(c1: Ints, c2: Ints) -> Floats:
        far = apart(*cautious(c1, c2, runs), guarantee)
        return np.where(np.maximum(c1, c2) >= ENOUGH, far, -np.inf)

    events = search(table, on_d, rank, contender.references, limit=1)
    if not events:
        return 0.0
    counts = np.array(events[0].c1), np.array(events[0].c2)
    return float(event_test(guarantee).shows(*cautious(*counts, runs)))
