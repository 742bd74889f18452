"""The search of methods that search on some samples and test on others: which pairs, how many runs.

How many outputs are drawn on which pair depends on counts and outputs alone. Nothing is bet, and
what was drawn here is never tested. Where time runs out, the search ends with what there is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from pytest_dp.auditors.pair_state import (
    PairState,
    Pool,
    check_users_parts,
    draw_batch,
    model_fitter,
    outputs_to_learn,
)
from pytest_dp.auditors.pairs_in_play import ClaimPairs, look_at_first_outputs
from pytest_dp.auditors.session import Session
from pytest_dp.betting.detector import Detector, fit_score
from pytest_dp.betting.models import Posterior
from pytest_dp.claiming.settings import Settings
from pytest_dp.pairs import Pair
from pytest_dp.pairs.sources import PairSource
from pytest_dp.running.deadline import Deadline, OutOfTime, within
from pytest_dp.statistics.ledger import BetRecord

MIN_RUNS = 20
"""Runs on either input of a pair in a search, at least. With fewer, halves are given up by chance;
with more, fewer pairs are tried."""

MAX_SCORE_CUTS = 200
"""Cuts of a learned score, at most. A test of fixed size counts outputs beyond one cut: with fewer,
the best one is met less closely; with more, the one that was lucky is taken."""
MAX_KEPT = 400_000
"""Pairs of outputs that are kept of a pair of inputs, at most. More take memory, and teach little.
"""
MAX_BATCH = 50_000
"""Pairs of outputs in a batch, at most. With larger ones the last batch may not be kept at all."""
FIRST_LOOK = 12
"""Pairs of outputs by which pairs of inputs are compared first, at least. With fewer, halves are
given up by chance; with more, less is left for those that are suspicious."""
MIN_FITTED = 8
"""Pairs of outputs that a score is learned from, at least. Of fewer there is nothing to learn."""


class PairSearch:
    """Pairs of inputs under search, and what was drawn on them.

    `purpose` is the first part of the keys of its samples. `coupled` is whether both inputs may be
    run with the same random numbers.
    """

    def __init__(
        self, session: Session, pairs: Sequence[Pair], purpose: int, *, coupled: bool
    ) -> None:
        self.session, self.purpose, self.coupled = session, purpose, coupled
        source = PairSource(pairs)
        self.pairs = ClaimPairs(source, session.guarantee, source.given)
        self.is_decided = False
        """Whether no more samples were needed to choose what is to be tested."""

    @property
    def pool(self) -> Pool:
        """The inputs, and a few of the outputs on each."""
        return self.pairs.pool

    @property
    def seen(self) -> list[PairState]:
        """The pairs that outputs were drawn on."""
        return [state for state in self.pairs.seen if state.outputs.pairs]

    @property
    def are_alike(self) -> bool:
        """Return whether both inputs of all pairs gave equal outputs with equal random numbers."""
        return bool(self.seen) and all(state.outputs.alike() for state in self.seen)

    def begin(self, most: int, size: int, deadline: Deadline) -> list[PairState]:
        """Draw outputs on the first `most` pairs, and return those that are not rejected.

        Of those on which nothing was drawn before, `size` pairs of outputs each.
        """
        while len(self.pairs.seen) < most and (state := self.pairs.newcomer()) is not None:
            state.coupled = self._couple(state, deadline)
            self.draw(state, size, deadline)
            look_at_first_outputs(self.session, self.pairs, state)
        return self.pairs.accepted

    def draw(self, state: PairState, total: int, deadline: Deadline) -> None:
        """Draw outputs on a pair, up to `total` pairs of outputs in all."""
        while state.drawn < total:
            size = min(total - state.drawn, MAX_BATCH)
            args = self.session, self.pool, state, size, self.purpose, MAX_KEPT, deadline
            batch = draw_batch(*args)
            if state.binnings:
                state.record = state.record.with_batch(batch)

    def _couple(self, state: PairState, deadline: Deadline) -> bool:
        """Return whether both inputs can share their random numbers.

        Where those of one pair cannot, no others do from then on.
        """
        if self.coupled:
            input1, input2 = (self.pool.inputs[at] for at in (state.input1, state.input2))
            self.coupled = self.session.sampler.can_couple(input1, input2, deadline)
        return self.coupled


class Judged(Protocol):
    """A finding of a method on a pair."""

    @property
    def state(self) -> PairState:
        """The pair."""


J = TypeVar("J", bound=Judged)


def search_by_halving(
    search: PairSearch,
    budget: float,
    deadline: Deadline,
    judge: Callable[[Sequence[PairState]], list[J]],
    first: float = math.inf,
) -> list[J]:
    """Return what was found on the best pairs: those that are left after successive halving.

    All pairs get as many outputs, then the better half as many again in all, and so on, within a
    `budget` of runs. `judge` returns what was found on pairs, the most suspicious first; what is
    not among it is given up first. It may decide the search. Before that, all pairs are judged by
    `first` pairs of outputs on each, then by four times as many, and so on.

    Source: Karnin, Koren, Somekh, "Almost Optimal Exploration in Multi-Armed Bandits", ICML 2013.
    """
    number = min(search.pairs.claimed, max(1, int(budget / (4 * MIN_RUNS))))
    rounds = number.bit_length()
    least = min(FIRST_LOOK, budget / 2 / number)
    full = max(1, int(max(least, budget / 2 / rounds / number)))
    a_round = (budget / 2 - full * number) / max(rounds - 1, 1)
    total, found = int(min(first, full)), list[J]()
    known: Sequence[PairState] = ()
    while True:
        try:
            known = known or search.begin(number, total, deadline)
            for state in known:
                search.draw(state, total, deadline)
        except OutOfTime as out:
            if out.stack or not search.seen:
                raise
            return judge([state for state in known or search.pairs.accepted if state.outputs.pairs])
        found = judge(known)
        if search.is_decided or (total >= full and len(known) == 1):
            return found
        if total < full:
            total = min(4 * total, full)
        else:
            promising = [one.state for one in found]
            rest = [state for state in known if state not in promising]
            known = [*promising, *rest][: len(known) // 2]
            total += int(a_round / len(known))


def learn_score(settings: Settings, state: PairState, deadline: Deadline) -> None:
    """Learn a score of the outputs on a pair, and count them through it."""
    table, on_d, about = outputs_to_learn(settings, state)
    fit_model = model_fitter(settings, about)
    fitting = partial(fit_score, table, on_d, about, fit_model, MAX_SCORE_CUTS)
    by_score, counts, means = within(deadline.remaining(), fitting)
    state.detector = Detector((by_score,), state.outputs.pairs)
    state.record = BetRecord([counts], means)
    check_users_parts(settings, state, by_score.model, about)


def learn_model(settings: Settings, state: PairState) -> Posterior:
    """Return a model of which input an output of a pair came from, learned from all of them."""
    table, on_d, about = outputs_to_learn(settings, state)
    fit_model = model_fitter(settings, about)
    model = fit_model(table, on_d) if fit_model else fit_score(table, on_d, about)[0].model
    check_users_parts(settings, state, model, about)
    return model
