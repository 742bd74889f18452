"""The pairs of inputs that an audit may bet on, and losses on them that are known without a bet.

Known losses decide when an audit may pass; what breaks a claim is found by bets. The optional part
`oracle` finds and checks them; by default none is known.
"""
# ruff: noqa: ARG002  the defaults of `KnownLosses` ignore their arguments

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import filterfalse
from typing import Any

from pytest_dp.auditors.pair_state import Pool, raise_if_nothing_returned, set_target
from pytest_dp.auditors.session import Session
from pytest_dp.basics.arrays import Outputs
from pytest_dp.basics.reprs import LABEL_LENGTH
from pytest_dp.betting.betting_loop import NEW_PAIR_EDGE, PairQueue, PairState
from pytest_dp.data import describe, kind_of
from pytest_dp.data.conversion import length
from pytest_dp.outputs.paired_outputs import TOTAL_ROOM, PairedOutputs
from pytest_dp.outputs.raised import all_equal, all_raised
from pytest_dp.pairs import Pair
from pytest_dp.pairs.sources import PairSource
from pytest_dp.privacy import Guarantee
from pytest_dp.registry import load
from pytest_dp.results.outcome import Estimate
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.sampler import Sampler
from pytest_dp.statistics.ledger import standard_errors_against

OTHER_OUTPUTS = "real runs give other outputs than derived"
"""Why no pass rests on a known loss."""

MIN_ROOM = 50_000
"""Numbers kept of the outputs of each pair, at least. More take memory; fewer teach less."""
CLEAR_ERRORS = 3.0
"""Standard errors from which a pair looks broken. Fewer: chance is bet on."""


class ClaimPairs(PairQueue):
    """The queue of the pairs that an audit draws on: those of the claim, then proposed ones.

    Proposed pairs for which `is_apart` returns True are kept in `left_out`, for an audit outside of
    the claim. The `urgent` pairs, on which screening saw the answer move too far, come before all
    others. The `waiting` pairs, which an earlier queue left out, are proposed first. The search
    ends once `most_left_out` pairs in a row are left out.
    """

    def __init__(
        self,
        source: PairSource,
        guarantee: Guarantee,
        given: Sequence[Pair],
        is_apart: Callable[[Pair], bool] = lambda _: False,
        urgent: Sequence[Pair] = (),
        waiting: Iterable[Pair] = (),
        most_left_out: float = math.inf,
    ) -> None:
        self.source, self.pool = source, Pool()
        self.left_out: list[Pair] = []
        self._waiting, self._most_left_out = filterfalse(is_apart, waiting), most_left_out
        self._guarantee, self._is_apart = guarantee, is_apart
        self._room = max(MIN_ROOM, TOTAL_ROOM // max(len(given), 1))
        places = {id(pair): at for at, pair in enumerate(given)}
        first = [places[id(pair)] for pair in urgent if id(pair) in places]
        proposed = self._propose_urgent(len(urgent) - len(first))
        super().__init__(given, self._next_proposed, self._state_of, first, proposed)

    @property
    def accepted_pairs(self) -> list[PairState]:
        """The pairs that outputs were drawn on, without those with a refused input."""
        return [state for state in self.seen if state.drawn and not state.refused]

    @property
    def all_seen(self) -> bool:
        """True if all pairs in the queue were picked."""
        return len(self.seen) == len(self.states)

    def looks_broken(self, state: PairState) -> bool:
        """Return whether a pair may break the claim: past bets gain, or its edge bound is high."""
        errors = standard_errors_against(state.record, self._guarantee)
        return state.edge_bound >= NEW_PAIR_EDGE or errors > CLEAR_ERRORS

    def _state_of(self, number: int, pair: Pair) -> PairState:
        """Add the inputs of a pair to the pool, and return its state."""
        input1, input2 = map(self.pool.add, pair.inputs)
        return PairState(number, pair, PairedOutputs(self._room), input1=input1, input2=input2)

    def _propose_urgent(self, most: int) -> Iterator[Pair]:
        """Yield at most `most` pairs on which screening saw the answer move too far.

        Pairs for an audit outside of the claim are moved to `left_out` instead.
        """
        for _ in range(most):
            pair = self.source.propose_pair("movement")
            if pair is None:
                return
            if self._is_apart(pair):
                self.left_out.append(pair)
            else:
                yield pair

    def _next_proposed(self) -> Pair | None:
        """Return the next waiting or proposed pair; None if there is none.

        Pairs outside of the claim go to `left_out`; None after `most_left_out` of them in a row.
        """
        if (pair := next(self._waiting, None)) is not None:
            return pair
        most = len(self.left_out) + self._most_left_out
        while (pair := self.source.propose_pair()) is not None and self._is_apart(pair):
            self.left_out.append(pair)
            if len(self.left_out) >= most:
                return None
        return pair


def judge_first_outputs(session: Session, pairs: ClaimPairs, state: PairState) -> None:
    """Set `refused` and the target of a pair by its first outputs, with a note if it is refused.

    Raises MechanismError once all pairs in the queue were picked and no run has returned.
    """
    _skip_rejected_input(session.sampler, session.claim.promise.inputs, pairs, state)
    if pairs.claimed and pairs.all_seen:
        examples = session.claim.promise.inputs
        raise_if_nothing_returned(session.sampler, pairs.pool, session.pairs[0].d1, examples)
    set_target(session.settings, state)


def _skip_rejected_input(
    sampler: Sampler, examples: Any, pairs: ClaimPairs, state: PairState
) -> None:
    """Set `refused`, with a note, if the mechanism seems to check its inputs.

    It seems so if it always raises on an input that a search proposed, or on an empty dataset that
    is no example. If all pairs of the claim would be refused, none is.
    """
    sides = state.outputs.sides()
    raised = [all_raised(outputs) for outputs in sides]
    at = raised.index(True) if any(raised) else 0
    data = state.pair.inputs[at]
    if any(raised) and pairs.is_proposed(state):
        state.refused = pairs.source.generated is None
    elif any(raised) and not all(raised):
        state.refused = rejects_empty_dataset(examples, data, sides[at])
    given = pairs.seen_given
    if pairs.all_seen and all(seen.refused for seen in given):
        for seen in given:
            seen.refused = False
    elif state.refused and not state.pair.beyond:
        shown = describe(data, LABEL_LENGTH)
        sampler.note(
            f"it always {sides[at][0]!r} on {shown}, which is inside the claim, as "
            "if it checked its inputs: skipped. An exception reveals the input; with this example "
            "in inputs=, it counts"
        )


def rejects_empty_dataset(examples: Any, data: Any, outputs: Outputs) -> bool:
    """Return whether a mechanism always raises the same error of its own on an empty dataset.

    False if `data` is not empty, or an example of the claim is.
    """
    if not isinstance(examples, list | tuple) or not kind_of(data) or length(data):
        return False
    is_given = any(not length(example) for example in examples if kind_of(example))
    return not is_given and all_equal(outputs) and any(output.is_stated for output in outputs)


class KnownLosses:
    """Losses on pairs of inputs that are known without bets: none, unless a subclass derives some.

    `refusal` says why the loss on further pairs is not known, and `against` why no pass may rest on
    known losses; both are empty without such a reason. `runs` is the number of real runs that
    agree, once a pass rests on known losses; else 0.
    """

    def __init__(self, refusal: str = "") -> None:
        self.refusal, self.against, self.runs = refusal, "", 0

    @property
    def may_exceed(self) -> bool:
        """True if a known loss is above the claim, or likely to be."""
        return False

    @property
    def is_within(self) -> bool:
        """True if the losses on all pairs of the claim are known, and none is above the claim."""
        return False

    @property
    def unknown_pairs(self) -> Sequence[PairState]:
        """Accepted pairs without a known loss, on which more outputs are to be drawn."""
        return ()

    def of_pairs(self, session: Session, pairs: ClaimPairs, *, found: bool = True) -> KnownLosses:
        """Return the losses for the pairs of an audit: those `found` before too, or new ones."""
        return self

    def add(self, number: int, pair: Pair, deadline: Deadline) -> None:
        """Derive the loss on one more pair, and keep it by the pair's number if there is one."""

    def is_aligned(self, pair: Pair, deadline: Deadline) -> bool:
        """Run replays; return whether an alignment bounds the loss on a pair within the claim."""
        return False

    def required_runs(self) -> int:
        """Return the pairs of outputs that a pass by known losses needs on each pair of inputs.

        0 if no pass may rest on known losses. May run copies of the mechanism, and set `against`.
        """
        return 0

    def missing_runs(self, state: PairState) -> int:
        """Return how many of the required pairs of outputs are missing; 0 if no loss is known."""
        return 0

    def needs_no_bets(self, state: PairState) -> bool:
        """Return whether the loss on a pair is known, and a pass may rest on known losses."""
        return False

    def accepts_pass(self) -> bool:
        """Compare real runs with the known losses; return whether a pass may rest on these.

        Sets `runs` if so. False if real runs are missing; sets `against` if runs differ.
        """
        return False

    def pairs_above_claim(self) -> Sequence[PairState]:
        """Return the pairs of the largest known loss; [] if within the claim, or runs disagree."""
        return ()

    def describe_suspicion(self) -> tuple[Estimate, str]:
        """Return the loss on `pairs_above_claim`, and a sentence on it; here, raise ValueError."""
        raise ValueError("no loss is known")

    def estimate(
        self, states: Sequence[PairState], *, violated: bool
    ) -> tuple[Estimate | None, str]:
        """Return the loss on the claim's pairs and ""; or None, and the reason why it is not known.

        `states` are the pairs that were run; `violated` is whether the claim is refuted.
        """
        return None, self.refusal

    def cheaper_claim(self) -> str:
        """Return advice on a claim that needs fewer runs; "" if there is none."""
        return ""


def load_known_losses(session: Session) -> KnownLosses:
    """Derive the losses on the claim's first pairs by the oracle, and return them.

    If the oracle cannot be imported, a note gives the reason, and no loss is known.
    """
    try:
        find_losses = load("oracle", "known")
    except ImportError as error:
        session.sampler.note(f"no losses were derived: {error}")
        return KnownLosses(str(error))
    found: KnownLosses = find_losses(session)
    return found
