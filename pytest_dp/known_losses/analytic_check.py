"""A check of known losses: real runs agree with them, so that an audit has enough.

What is known may be wrong: of code that treats deferred numbers differently than plain ones, or
that keeps something from run to run. So a mechanism is looked over for what it keeps, and its real
outputs are held against what is known. Rows of vectorised calls are held against single rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from pytest_dp.auditors.pairs_in_play import ClaimPairs, KnownLosses
from pytest_dp.auditors.session import Session
from pytest_dp.betting.betting_loop import PairState
from pytest_dp.claiming.setting_fields import is_strategy
from pytest_dp.known_losses.known import (
    KEPT_RUNS,
    TOO_FEW,
    Known,
    derive_losses,
    estimate_of,
    hold_against,
)
from pytest_dp.oracles.alignment import Alignment
from pytest_dp.oracles.known_pairs import (
    KnownPair,
    check_rows,
    content_of,
    doubt_about,
    parameter_of,
)
from pytest_dp.pairs import Pair
from pytest_dp.results.outcome import Estimate
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generator_stand_ins import CannotInstrument
from pytest_dp.statistics.clopper_pearson import SHOWN_ALPHA

FEWEST_RUNS = 12
"""Runs on an input, at least. With more, slow mechanisms that replays have run take longer; with
fewer, real runs that differ from replays in one of four go unseen more often."""
CHECKED_SHARE = 0.8
"""Share of all samples that checks may take. With more, nothing is left for what follows; with
less, small efforts check no losses."""
ROUNDING = 1e-9
"""Relative error of a parameter. Smaller: rounding makes a loss larger than the claim."""
LOSS_ERROR = 1e-6
"""Relative error of a loss that counts as exact. Larger: what is shown is less exact; smaller:
losses count as bounds."""
LOOKING_TIME = 0.1
"""Share of the time for looking inputs over once. Larger: less is left for checks; smaller: slow
mechanisms are not checked."""

REAL_RUNS = 1_000
"""Real runs that what is derived is held against. With fewer, a law that is wrong in one run of a
hundred goes unseen more often; with more, audits of data frames take seconds."""
ROWS_OF_ALIGNED = 400
"""The same for rows of vectorised calls whose loss is known by alignment: calls of one row were
replayed. Single runs of the mechanism as it is are replays themselves."""
DOUBTED_INPUTS = 2
"""Inputs on which a few runs show whether the mechanism keeps something. With more, claims of many
pairs take longer; with fewer, what is kept of some inputs alone shows less often."""
MAX_OF_UNKNOWN = 10_000
"""Pairs of outputs on proposed pairs without a known loss, where those of the claim have one.
With more, audits with a known loss take longer; with fewer, violations on such pairs go unseen."""
SHARE_OF_UNKNOWN = 0.25
"""The same, as a share of all that may be drawn. With more, little is left of a small effort to
count what was found; with less, small efforts see less on such pairs."""

SHARE_OF_CHECKED_ROWS = 0.4
"""Share of all runs that rows of vectorised calls may be, by which they are first looked at. With
more, little is left of a small effort; with less, it looks at few rows."""


class FoundLosses(KnownLosses):
    """Known losses of a claim's pairs, before any run."""

    def __init__(self, session: Session, known: Known) -> None:
        super().__init__(known.refusal)
        self.session, self.known = session, known

    def of_pairs(self, session: Session, pairs: ClaimPairs, *, found: bool = True) -> AnalyticCheck:
        known = self.known if found else replace(self.known, pairs={}, alignments=None)
        return AnalyticCheck(session, known, pairs)

    def add(self, number: int, pair: Pair, deadline: Deadline) -> None:
        self.known.add(number, pair, deadline)

    def is_aligned(self, pair: Pair, deadline: Deadline) -> bool:
        return self.known.is_aligned(pair, deadline)

    def cheaper_claim(self) -> str:
        return self.known.cheaper_claim(self.session.guarantee)


class AnalyticCheck(FoundLosses):
    """The loss on the pairs of an audit, and what speaks against relying on it.

    A pass may rest on it if it is known on all pairs that the claim gives, and above the claim on
    none. Of those that a search has proposed so far, where it is not known there are bets.
    """

    def __init__(self, session: Session, known: Known, pairs: ClaimPairs) -> None:
        super().__init__(session, known)
        self._pairs = pairs
        self._losses: dict[int, tuple[float, float] | None] = {}
        self._looked_at: set[int] = set()  # inputs
        self._calls: set[tuple[int, int]] = set()  # vectorised ones, replayed by their size
        self._held: dict[int, int] = {}  # pairs of outputs that were held against what is known
        self._seconds = LOOKING_TIME * session.budget.max_seconds  # to look inputs over once
        self._before = session.call.pristine.content if session.call.pristine else b""

    @property
    def _states(self) -> list[PairState]:
        """The pairs in question: without those whose inputs the mechanism refuses."""
        return [state for state in self._pairs.states if not state.refused]

    @property
    def loss(self) -> tuple[float, float] | None:
        """The largest parameter on any known pair inside the claim, and its error; None if unknown.

        What pairs beyond the claim lose is told beside it.
        """
        inside = (state for state in self._states if not self.session.is_report_only(state.pair))
        losses = [loss for state in inside if (loss := self._loss_on(state.number)) is not None]
        if not losses:
            return None
        return max(value for value, _ in losses), max(error for _, error in losses)

    def is_known(self, state: PairState) -> bool:
        """Return whether the loss on a pair is known, whatever it is."""
        return self._loss_on(state.number) is not None

    @property
    def unknown(self) -> list[PairState]:
        """Pairs on which it is not known, of those that were proposed, while they lack outputs.

        Together they get as many as those that the claim gives, or a share of all that may be drawn
        if these are few; and more if they look broken.
        """
        pairs = self._pairs
        unknown = [state for state in pairs.accepted if not self.is_known(state)]
        drawn = sum(state.drawn for state in unknown)
        given = sum(state.drawn for state in pairs.states[: pairs.claimed])
        most = self.session.budget.max_samples / 2
        return (
            unknown
            if drawn < max(given, min(MAX_OF_UNKNOWN, SHARE_OF_UNKNOWN * most))
            else list(filter(pairs.looks_broken, unknown))
        )

    def _loss_on(self, number: int) -> tuple[float, float] | None:
        if number not in self.known.pairs:
            return None
        if number not in self._losses:
            known, loss = self.known.pairs[number], None
            with suppress(CannotInstrument, Exception):  # such as of numbers beyond floats
                value, error = parameter_of(known, self.session.guarantee)
                if error <= LOSS_ERROR * max(value, 1.0):
                    loss = value, error
            self._losses[number] = loss
        return self._losses[number]

    @property
    def is_within(self) -> bool:
        """Return whether the loss is known on all pairs of the claim, and nowhere exceeds it."""
        given = self._pairs.states[: self._pairs.claimed]
        return bool(given) and all(map(self.is_known, given)) and not self._exceeds

    @property
    def _exceeds(self) -> bool:
        value, error = self.loss or (0.0, 0.0)
        return value > self.session.guarantee.claimed * (1 + ROUNDING) + error

    @property
    def may_exceed(self) -> bool:
        return self._exceeds or self.known.is_above

    def _is_largest_move_settled(self) -> bool:
        """Return whether enough pairs were screened, and that with the largest move is looked at.

        Where the claim lists its pairs, or gives patterns of queries, all pairs are looked at.
        """
        promise, screened = self.session.claim.promise, self.session.screened
        if not (is_strategy(promise.inputs) or isinstance(promise.inputs, list | tuple)):
            return True
        if not screened.is_enough:
            return False
        if not screened.largest or not screened.largest[0].movement.loss:
            return True
        content = screened.pairs[0].content
        largest = next((s for s in self._pairs.states if s.pair.content == content), None)
        if largest is None:
            return not self._pairs.source.exhausted
        return largest.refused or self.is_known(largest)

    def _is_doubted(self) -> bool:
        """Return whether traced runs may be misleading, by a look at each input that is new."""
        if self.against:
            return True
        try:
            self.against = self._looked_over(self.session.budget.deadline_in(self._seconds))
        except OutOfTime:
            self.against = "its runs take too long to be looked at"
        except (CannotInstrument, Exception) as error:  # the mechanism's own, or of its copies
            self.against = str(error) or type(error).__name__
        return bool(self.against)

    def _looked_over(self, deadline: Deadline) -> str:
        """Return what speaks against it on inputs that are new; empty if nothing does.

        Raises CannotInstrument where rows of vectorised calls are not what single rows are.
        """
        inputs = {
            at: data
            for state in self._states
            if self.is_known(state)
            for at, data in zip((state.input1, state.input2), state.pair.inputs, strict=True)
        }
        for key, data in inputs.items():
            if key in self._looked_at:
                continue
            doubted = len(self._looked_at) < DOUBTED_INPUTS
            if doubted and (doubt := doubt_about(self.session.call, data, deadline)):
                return doubt
            if self.session.call.size is not None:
                most = SHARE_OF_CHECKED_ROWS * self.session.settings.max_samples / (2 * len(inputs))
                rows = min(max(int(most), FEWEST_RUNS), REAL_RUNS)
                self.session.sampler.looked += check_rows(self.session.call, data, [rows], deadline)
            self._looked_at.add(key)
        return ""

    @property
    def _wanted_runs(self) -> int:
        """Real runs in all; 0 if there are too few samples for them."""
        vectorised = self.session.call.size is not None
        given = self._pairs.states[: self._pairs.claimed]
        if all(isinstance(self.known.pairs.get(state.number), Alignment) for state in given):
            return ROWS_OF_ALIGNED if vectorised else 2 * FEWEST_RUNS * len(given)
        share = CHECKED_SHARE
        if vectorised:  # each row is held against two others
            share = (share - SHARE_OF_CHECKED_ROWS) / 3
        return REAL_RUNS if share * self.session.budget.max_samples >= REAL_RUNS else 0

    def required_runs(self) -> int:
        """Return how many pairs of outputs each given pair needs; 0 if no number is enough."""
        if not self.is_within or not self._is_largest_move_settled() or self._is_doubted():
            return 0
        wanted = self._wanted_runs
        return max(wanted // (2 * self._pairs.claimed), FEWEST_RUNS) if wanted else 0

    def decides(self, state: PairState) -> bool:
        """Return whether a few runs on a pair are enough, so that none should be made for bets."""
        return self.is_known(state) and bool(self.required_runs())

    def missing(self, state: PairState) -> int:
        """Return how many pairs of outputs are missing on a pair of inputs with a known loss."""
        if not self.is_known(state) or not (wanted := self.required_runs()):
            return 0
        if self._pairs.is_proposed(state):
            wanted = FEWEST_RUNS
        return max(wanted - state.drawn, 0)

    def accepts_pass(self) -> bool:
        states = self._states
        if not self.required_runs() or any(map(self.missing, states)):
            return False
        self._hold(filter(self.is_known, states))
        if not self.against:
            self.runs = 2 * sum(state.drawn for state in states if self.is_known(state))
        return not self.against

    def _hold(self, states: Iterable[PairState]) -> None:
        """Hold real runs against what is known."""
        try:
            for state in states:
                if not self.against and self._held.get(state.number) != state.drawn:
                    self.against = self._against(state)
                    self._held[state.number] = state.drawn
        except (CannotInstrument, Exception) as reason:  # outputs that cannot be compared
            self.against = str(reason) or type(reason).__name__

    def _against(self, state: PairState) -> str:
        """Return what real runs say against what is known of a pair."""
        if content_of(self.session.call) != self._before:
            return "it keeps something from run to run"
        known: KnownPair = self.known.pairs[state.number]
        sides = state.outputs.sides()
        if min(map(len, sides)) < min(state.drawn, known.checked):
            return "not all of its outputs are kept"
        hold_against(known, sides)
        if self.session.call.size is not None:
            self._replay_calls(state)
        return ""

    def _replay_calls(self, state: PairState) -> None:
        """Check rows of calls as large as real ones were: each size may be treated otherwise.

        Raises CannotInstrument as `_looked_over`.
        """
        call, pool = self.session.call, self._pairs.pool
        deadline = self.session.budget.deadline_in(self._seconds)
        for number, data in zip((state.input1, state.input2), state.pair.inputs, strict=True):
            real = self.session.sampler.calls.get(pool.inputs[number], set())
            new = {size for size in real if (number, size) not in self._calls}
            self.session.sampler.looked += check_rows(call, data, sorted(new), deadline)
            self._calls |= {(number, size) for size in new}

    def _on_claim(self) -> Estimate:
        """Return the loss on the claim's pairs."""
        assert self.loss is not None
        known = self.known.pairs
        pairs = [known[number] for number in range(self._pairs.claimed) if number in known]
        drawn = min(state.drawn for state in self._pairs.states[: self._pairs.claimed])
        unseen = -math.expm1(math.log(SHOWN_ALPHA) / drawn) if drawn and self.runs else 0.0
        return estimate_of(pairs, *self.loss, self.runs, unseen)

    def estimate(
        self, states: Sequence[PairState], *, violated: bool
    ) -> tuple[Estimate | None, str]:
        """Return the loss on the claim's pairs, and else why it is not shown.

        Where the claim was not refuted, no larger loss is shown: what is so rare that no run has it
        is not checked by any. Where it was, nothing is without the pair that broke it.
        """
        if self.runs and not violated:
            return self._on_claim(), ""
        pairs = self.known.pairs
        if not pairs:
            return None, self.refusal
        enough = [
            state
            for state in states
            if state.number in pairs
            and state.number < len(self.session.pairs)
            and state.outputs.kept >= KEPT_RUNS
        ]
        broken = max(states, key=lambda state: state.earned) if violated else None
        if broken is not None and broken not in enough:
            if broken.number not in pairs:
                return None, "the pair that broke the claim is not known"
            enough.append(broken)
        try:
            values = [self._check_pair(state) for state in enough]
        except (CannotInstrument, Exception) as reason:  # the verdict stands without it
            return None, str(reason)
        if not values:
            return None, TOO_FEW
        value, error = max(value for value, _ in values), max(error for _, error in values)
        claimed = self.session.guarantee.claimed
        if value > claimed and self.known.by_rounding and not self.session.settings.floating_point:
            return None, "outputs that differ by rounding alone count as different there"
        if value > claimed * (1 + ROUNDING) and not violated:
            return None, "a loss above the claim that the bets do not confirm"
        return estimate_of([pairs[state.number] for state in enough], value, error), ""

    def _check_pair(self, state: PairState) -> tuple[float, float]:
        """Return the claim's parameter on a pair, and its error, if real outputs agree with it."""
        known = self.known.pairs[state.number]
        if self.session.call.size is not None and isinstance(known, Alignment):
            raise CannotInstrument("rows of its calls were not compared with calls of one row")
        hold_against(known, state.outputs.sides())
        return parameter_of(known, self.session.guarantee)

    def suspects(self) -> Sequence[PairState]:
        if not self._exceeds or self._is_doubted():
            return []
        if self.known.by_rounding and not self.session.settings.floating_point:
            return []
        self._hold(state for state in self._states if state.drawn and self.is_known(state))
        if self.against:
            return []
        inside = (state for state in self._states if not self.session.is_report_only(state.pair))
        losses = {state.number: self._loss_on(state.number) or (0.0, 0.0) for state in inside}
        largest = max(losses.values())[0]
        return [s for s in self._states if losses.get(s.number, (0.0, 0.0))[0] >= largest]

    def suspicion(self) -> tuple[Estimate, str]:
        known, guarantee = self._on_claim(), self.session.guarantee
        numbers = [state.number for state in self.suspects()]
        return known, (
            f"suspect: {self.known.pairs[numbers[0]].mode} {guarantee.equal(f'{known.value:.3g}')}"
            f", above the claim of {guarantee.claimed:g}, and too few runs to show it: raise "
            "max_samples or max_seconds"
        )


def find_losses(session: Session) -> FoundLosses:
    """Return what is known of the claim's first pairs: the optional part `oracle`."""
    return FoundLosses(session, derive_losses(session))
