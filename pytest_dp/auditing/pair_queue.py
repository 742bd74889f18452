"""The queue of pairs of inputs: the one whose edge may be largest is next.

An edge is what a bet on one pair of outputs gains on average, over the standard deviation of what
it pays; log wealth then grows by half its square for each pair of outputs. The queue is a bandit
that picks by an upper confidence bound on the edge, so that no pair is given up on a few outputs,
and few outputs are spent on pairs that cannot win.

Source: Auer, Cesa-Bianchi, Fischer, "Finite-time Analysis of the Multiarmed Bandit Problem",
Machine Learning 2002.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pytest_dp.auditing.detector import Detector
from pytest_dp.datasets.relations import Pair
from pytest_dp.inputs.sources import Tried
from pytest_dp.outputs.paired_outputs import PairedOutputs
from pytest_dp.statistics.ledger import Record

EDGE_ERRORS = 1.5
"""Standard errors by which an edge may be larger than it looks. More: outputs are spread over
pairs that cannot win; fewer: the best pair is given up on bad luck."""
NEW_PAIR_EDGE = 0.4
"""Edge that is hoped of a pair before anything was drawn on it. Larger: all pairs are looked at
before the best one is bet on; smaller: later pairs wait for long."""
PROPOSED_SHARE = 0.05
"""Share of all pairs of outputs that may be drawn on proposed pairs of inputs, unless they look
broken. More: claims of few pairs wait for the search; less: the search sees fewer inputs."""
FIRST_PROPOSED = 500
"""Pairs of outputs that may be drawn on proposed pairs of inputs in any case."""


@dataclass(slots=True, eq=False)
class PairStatus:
    """A pair of inputs, and what is known of it from past batches."""

    number: int
    pair: Pair
    outputs: PairedOutputs
    coupled: bool = False
    """Whether both inputs are run with the same random numbers."""
    rejected: bool = False
    """Whether the mechanism refuses one of the inputs, so that nothing is bet on the pair."""
    drawn: int = 0
    """Pairs of outputs."""
    batches: int = 0
    earned: float = 0.0
    """What the bets on it have added to the log wealth."""
    detector: Detector = field(default_factory=Detector)
    record: Record = field(default_factory=lambda: Record([]))
    """Counts of past batches through the detector."""
    edge_bound: float = math.inf
    """Upper confidence bound on the edge."""


def edge_upper_bound(growth: float, pairs: float, learned: float) -> float:
    """Return the largest edge that the past does not rule out.

    `growth` is the log growth of the best bet on `pairs` past pairs of outputs. A detector that was
    fitted on `learned` pairs may miss an edge of one standard error of theirs.
    """
    pairs = max(pairs, 1.0)
    seen = math.sqrt(2 * max(growth, 0.0) / pairs)
    return seen + EDGE_ERRORS / math.sqrt(pairs) + 1 / math.sqrt(max(learned, 1.0))


class PairQueue:
    """The pairs of inputs of an audit: those that the claim gives, then proposed ones.

    `propose` returns a further pair, given all that were looked at, or None if there is none.
    """

    def __init__(
        self, given: Sequence[Pair], propose: Callable[[Sequence[Tried]], Pair | None], room: float
    ) -> None:
        self._waiting, self._propose, self._room = list(given), propose, room
        self.given = len(given)
        self.seen: list[PairStatus] = []
        """The pairs that were picked so far, in that order."""

    @property
    def drawn(self) -> int:
        """Pairs of outputs that were drawn so far."""
        return sum(status.drawn for status in self.seen)

    @property
    def unseen(self) -> int:
        """The number of pairs of the claim on which nothing was drawn."""
        return len(self._waiting)

    def pick(self) -> PairStatus | None:
        """Return the pair to draw next; None if the mechanism rejects all that there are."""
        open_pairs = [status for status in self.seen if self._may_go_on(status)]
        best = max(open_pairs, key=lambda status: status.edge_bound, default=None)
        if best is not None and best.edge_bound >= NEW_PAIR_EDGE:
            return best
        return self._next_new() or best

    def _next_new(self) -> PairStatus | None:
        """Return a pair that nothing was drawn on, if one is left and the search has a share."""
        if self._waiting:
            return self._add(self._waiting.pop(0))
        if self._drawn_on_proposed > max(FIRST_PROPOSED, PROPOSED_SHARE * self.drawn):
            return None
        seen = [Tried(status.pair, status.drawn, status.edge_bound) for status in self.seen]
        pair = self._propose(seen)
        return None if pair is None else self._add(pair)

    def _add(self, pair: Pair) -> PairStatus:
        status = PairStatus(len(self.seen), pair, PairedOutputs(self._room))
        self.seen.append(status)
        return status

    def _may_go_on(self, status: PairStatus) -> bool:
        if status.rejected:
            return False
        is_given = status.number < self.given
        in_share = self._drawn_on_proposed <= PROPOSED_SHARE * self.drawn
        return is_given or in_share or status.edge_bound >= NEW_PAIR_EDGE or status.earned > 0

    @property
    def _drawn_on_proposed(self) -> int:
        return sum(status.drawn for status in self.seen[self.given :])
