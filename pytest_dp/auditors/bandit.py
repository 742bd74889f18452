"""Which pair of inputs a sequential audit draws next: a bandit, whose arms are pairs.

The pair with the largest edge that is possible by all that is known is next; new ones are looked at
while less is hoped of those that were. Pairs that a search proposes get a bounded share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from pytest_dp.auditors.pair_state import PairState
from pytest_dp.auditors.pool import Pool
from pytest_dp.inputs import Pair
from pytest_dp.inputs.sources import PairSource, Tried
from pytest_dp.limits import (
    CLEAR_ERRORS,
    HOPE_UNSEEN,
    MIN_ROOM,
    SMALL_SHARE,
    THOUSAND,
    TOTAL_ROOM,
)
from pytest_dp.outputs.paired_outputs import PairedOutputs
from pytest_dp.privacy import Guarantee
from pytest_dp.statistics.ledger import suspicion


class Bandit:
    """The pairs of inputs of a game, and which of them is next.

    `states` are the pairs of the claim, then those that were proposed; `seen` are those that were
    looked at, in the order in which they were: the `urgent` ones first. While `inside_only` is set,
    pairs beyond what the claim gives are passed over.
    """

    def __init__(
        self, source: PairSource, pool: Pool, guarantee: Guarantee, urgent: Sequence[Pair] = ()
    ) -> None:
        self.source, self.pool, self.guarantee = source, pool, guarantee
        self.claimed = len(source.given)
        """How many pairs the claim gives: the first ones."""
        self.states: list[PairState] = []
        self.seen: list[PairState] = []
        self.inside_only = False
        for pair in source.pairs:
            self._join(pair)
        places = {id(pair): at for at, pair in enumerate(source.given)}
        given = [places[id(pair)] for pair in urgent if id(pair) in places]
        self._in_order = list(dict.fromkeys([*given, *range(self.claimed)]))
        self._urgent_given, self._urgent_proposed = len(given), len(urgent) - len(given)

    def _join(self, pair: Pair) -> PairState:
        """Add a pair, which is allowed at any time, as bets are made before draws."""
        input1, input2 = map(self.pool.add, pair.inputs)
        outputs = PairedOutputs(max(MIN_ROOM, TOTAL_ROOM // self.claimed))
        state = PairState(len(self.states), pair, outputs, input1=input1, input2=input2)
        self.states.append(state)
        return state

    def next_pair(self, *, eager: bool = False) -> PairState:
        """The pair with the largest edge that is possible by all that is known."""
        if eager and (state := self._unseen()) is not None:
            return state
        best = max(self._in_play(), key=lambda state: state.edge_bound, default=None)
        if best is None:
            return (None if self.all_seen else self.newcomer()) or self.states[0]
        return (self.newcomer() if best.edge_bound < HOPE_UNSEEN else None) or best

    def is_proposed(self, state: PairState) -> bool:
        """Whether a search proposed the pair, not the claim."""
        return state.number >= self.claimed

    @property
    def accepted(self) -> list[PairState]:
        """Pairs that were looked at, without those whose inputs the mechanism refuses."""
        return [
            state
            for state in self.seen
            if not state.refused and not (self.inside_only and state.pair.beyond)
        ]

    @property
    def seen_given(self) -> list[PairState]:
        """Pairs of the claim that were looked at."""
        return [state for state in self.seen if not self.is_proposed(state)]

    @property
    def has_urgent(self) -> bool:
        """Whether a pair is left to look at on which the answer moves farther than it may."""
        return bool(self._urgent_given or self._urgent_proposed)

    @property
    def drawn(self) -> int:
        """Pairs of outputs so far."""
        return sum(state.drawn for state in self.seen)

    @property
    def drawn_on_proposed(self) -> int:
        """Pairs of outputs that were drawn for pairs of inputs which the claim does not give."""
        return sum(state.drawn for state in self.seen if self.is_proposed(state))

    @property
    def may_search(self) -> bool:
        """Whether proposed pairs of inputs have not used up their share of the outputs yet."""
        return self.drawn_on_proposed <= max(THOUSAND // 2, SMALL_SHARE * self.drawn)

    @property
    def all_seen(self) -> bool:
        return len(self.seen) == len(self.states)

    def _in_play(self) -> Iterable[PairState]:
        """The pairs to choose from: proposed ones while their share lasts or they look broken."""
        if self.drawn_on_proposed <= SMALL_SHARE * self.drawn:
            return self.accepted
        accepted = self.accepted
        return [s for s in accepted if not self.is_proposed(s) or self.looks_broken(s)]

    def looks_broken(self, state: PairState) -> bool:
        """Whether a pair may well break the claim, by what was drawn on it."""
        errors = suspicion(state.record, self.guarantee)
        return state.edge_bound >= HOPE_UNSEEN or errors > CLEAR_ERRORS

    def newcomer(self) -> PairState | None:
        """The next pair of inputs to look at, if one is left, and the search has not had its share.

        Urgent ones come first, then those that the claim gives, then those that are proposed by
        what is known of them.
        """
        if self._urgent_given:
            self._urgent_given -= 1
            return self._unseen()
        while self._urgent_proposed:
            self._urgent_proposed -= 1
            if (state := self._proposed("movement")) is not None:
                return state
        unseen = self._unseen()
        return self._proposed() if unseen is None and self.may_search else unseen

    def _unseen(self) -> PairState | None:
        """Return the next pair of those that there are on which nothing was drawn."""
        seen = {state.number for state in self.seen}
        order = chain(self._in_order, range(self.claimed, len(self.states)))
        return next((self.states[at] for at in order if at not in seen), None)

    def _proposed(self, name: str = "") -> PairState | None:
        """Return the next pair that a proposer (of some name) has; None if it has none."""
        past = [Tried(state.pair, state.drawn, state.edge_bound) for state in self.seen]
        pair = self.source.more(past, name)
        while pair is not None and pair.beyond and self.inside_only:
            pair = self.source.more(past, name)
        return None if pair is None else self._join(pair)
