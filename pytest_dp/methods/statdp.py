"""StatDP: look for the most suspicious event on some samples, test it on held-out ones.

Algorithm 1 of the paper searches 100,000 samples of every pair, and tests on 500,000 held-out ones.
Here pairs are compared on few samples first, and only the suspicious half goes on; and there are as
many held-out samples as the search says are needed. That, the pair and the event rest on search
samples only, and the one event is tested once, on samples that nobody has looked at; so the p-value
is valid whatever the search did.

Source: Ding, Wang, Wang, Zhang, Kifer, "Detecting Violations of Differential Privacy", CCS 2018,
Algorithms 1 to 4; the p-value is that of `pytest_dp.statistics.statdp_test`. For claims of more
than ε, which the paper does not have, it is that of `pytest_dp.statistics.event_test`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import ndtri

from pytest_dp.auditors.pair_state import PairState
from pytest_dp.auditors.session import AuditFinding, Session
from pytest_dp.auditors.witness import Witness, likelier_first
from pytest_dp.basics.arrays import Bools, Floats, Ints
from pytest_dp.counterexample import simplest_event
from pytest_dp.methods.hamming import distance_features
from pytest_dp.methods.searching import PairSearch, search_by_halving
from pytest_dp.methods.two_stage import search_then_test
from pytest_dp.outputs.event_search import RankedEvent, search
from pytest_dp.outputs.feature import Feature, about_extract
from pytest_dp.outputs.features import features
from pytest_dp.outputs.table import Table
from pytest_dp.privacy import Guarantee
from pytest_dp.statistics.event_bets import rank_for
from pytest_dp.statistics.event_test import EventTest, StatDPTest

SEARCH_SHARE = 0.4
"""Share of the samples and of the time for choosing pair and event. Larger: the test sees less;
smaller: a worse event is tested."""
FIRST_OUTPUTS = 500
"""Pairs of outputs on each pair before the first comparison. More: many pairs take longer; fewer:
the best one is given up by chance."""
MIN_EVENT_COUNT = 50
"""Outputs of an event on one side, at least. With fewer, the luckiest event is taken; with more,
rare ones are missed."""

DECISIVE = 30.0
"""Log wealth beyond luck, of the best bet on an event, at which the search is over: larger values
search longer, smaller ones test what may be luck. Measured."""
SUGGESTIVE = DECISIVE / 5
"""The same, for a pair to be preferred over a decisive one because it is simpler."""


def audit(session: Session) -> AuditFinding:
    """Audit one claim with StatDP; errors are those of `sequential.audit`.

    The result is that of `search_then_test`.
    """
    return AuditFinding(search_then_test(session, suspect, StatDPTest))


def suspect(pairs: PairSearch) -> Witness | None:
    """Return the most suspicious event, or None if none is worth a test.

    The search is decided if no more samples were needed to pick it.
    """
    session = pairs.session
    budget = SEARCH_SHARE * session.budget.max_samples
    deadline = session.budget.deadline.sooner(SEARCH_SHARE)
    judge = partial(_most_suspicious, pairs)
    found = search_by_halving(pairs, budget, deadline, judge, first=FIRST_OUTPUTS)
    if not found:
        return None
    return replace(found[0].witness, largest=_largest_shown(session, found[0].state))


def _most_suspicious(pairs: PairSearch, known: Sequence[PairState]) -> list[_Suspect]:
    """Return the most suspicious event of each pair, the worst first; a decisive one alone."""
    found = [one for state in known for one in _suspicious_events(pairs.session, state)]
    found.sort(key=lambda one: (-one.rank, one.state.number))
    if not found or found[0].rank <= DECISIVE:
        return found
    pairs.is_decided = True
    # Among pairs that are about as suspicious, the first one is the simplest.
    near = [one for one in found if one.rank > max(SUGGESTIVE, 0.4 * found[0].rank)]
    return [min(near, key=lambda one: one.state.number)]


@dataclass(frozen=True, slots=True)
class _Suspect:
    """The most suspicious event of a pair, on so many samples of each input."""

    state: PairState
    event: RankedEvent
    runs: int

    @property
    def rank(self) -> float:
        return self.event.rank

    @property
    def witness(self) -> Witness:
        sign = -1 if self.event.c2 > self.event.c1 else 1
        p1, p2 = (c / self.runs for c in likelier_first(sign, self.event.c1, self.event.c2))
        return Witness(self.state, self.event.event, sign, p1, p2)


def _suspicious_events(session: Session, state: PairState) -> list[_Suspect]:
    table, on_d = state.outputs.table()
    rank = rank_for(session.guarantee)(state.outputs.pairs)
    events = search(table, on_d, rank, _readable_features(session, state, table, on_d), 1)
    return [
        _Suspect(state, simplest_event(event, table, on_d, rank), state.outputs.pairs)
        for event in events
    ]


def _readable_features(
    session: Session, state: PairState, table: Table, on_d: Bools
) -> list[Feature]:
    if table.is_extract:
        return about_extract(table)
    if state.added is None:
        state.added = distance_features(session, state.pair.inputs)
    return features(table, on_d) + state.added


def _largest_shown(session: Session, state: PairState) -> float:
    """Return the most that any event showed in the search, less two standard errors."""

    def cautious(c1: Ints, c2: Ints, runs: int) -> tuple[Floats, Floats]:
        high, low = np.maximum(c1, c2) + 0.5, np.minimum(c1, c2) + 0.5
        error = np.sqrt(1 / high + 1 / low)
        return high / runs * np.exp(-error), np.minimum(low / runs * np.exp(error), 1.0)

    table, on_d = state.outputs.table()
    runs, guarantee = state.outputs.pairs, session.guarantee

    def rank(c1: Ints, c2: Ints) -> Floats:
        far = _apart(*cautious(c1, c2, runs), guarantee)
        return np.where(np.maximum(c1, c2) >= MIN_EVENT_COUNT, far, -np.inf)

    events = search(table, on_d, rank, _readable_features(session, state, table, on_d), 1)
    if not events:
        return 0.0
    counts = np.array(events[0].c1), np.array(events[0].c2)
    return float(EventTest(guarantee).shows(*cautious(*counts, runs)))


def _apart(p1: Floats, p2: Floats, guarantee: Guarantee) -> Floats:
    """Return how far an event tells two inputs apart: its ε, or else its µ as of Gaussian privacy.

    Quick to find, and other notions have events in about the order of their µ.
    """
    with np.errstate(all="ignore"):
        if guarantee.eps is None:
            return np.asarray(ndtri(p1) - ndtri(p2), dtype=np.float64)
        return np.asarray(np.log((p1 - guarantee.delta) / p2), dtype=np.float64)
