"""A check of known losses: real runs agree with them, so that an audit has enough.

What is known may be wrong: of code that treats deferred numbers differently than plain ones, or
that keeps something from run to run. So a mechanism is looked over for what it keeps, and its real
outputs are held against what is known. Rows of vectorised calls are held against single rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from pytest_dp.auditors.loss_oracle import LossCheck
from pytest_dp.auditors.pair_state import PairState
from pytest_dp.auditors.pairs_in_play import ClaimPairs
from pytest_dp.auditors.session import Session
from pytest_dp.claiming.checks import is_strategy
from pytest_dp.known_losses.known import Known, estimate_of, hold_against
from pytest_dp.oracles.aligned_pair import AlignedPair
from pytest_dp.oracles.known_pairs import KnownPair, content_of, doubt_about, parameter_of
from pytest_dp.oracles.rows import check_rows
from pytest_dp.results.outcome import Estimate
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.stand_ins import CannotInstrument
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

RELIABLE = ("exact", "aligned")
"""Ways to know a loss that a pass may rest on."""


class AnalyticCheck(LossCheck):
    """The loss on the pairs of a game, and what speaks against relying on it.

    A pass may rest on it if it is known on all pairs that the claim gives, and above the claim on
    none. Of those that a search has proposed so far, where it is not known there are bets.
    """

    def __init__(self, session: Session, known: Known, pairs: ClaimPairs) -> None:
        self.session, self.known, self._pairs = session, known, pairs
        super().__init__()
        self._of_largest: PairState | None = None
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
                if error <= LOSS_ERROR * max(value, 1.0) and known.mode in RELIABLE:
                    loss = value, error
            self._losses[number] = loss
        return self._losses[number]

    @property
    def is_within(self) -> bool:
        """Return whether the loss is known on all pairs of the claim, and nowhere exceeds it."""
        given = self._pairs.states[: self._pairs.claimed]
        return bool(given) and all(map(self.is_known, given)) and not self.exceeds

    @property
    def exceeds(self) -> bool:
        """Return whether a known loss exceeds the claim: then a violation may still be found."""
        value, error = self.loss or (0.0, 0.0)
        return value > self.session.guarantee.claimed * (1 + ROUNDING) + error

    def _is_screened(self) -> bool:
        """Return whether enough pairs were screened, and the one that moves most may be known.

        Where the claim lists its pairs, or gives patterns of queries, all pairs are looked at.
        """
        promise, screened = self.session.claim.promise, self.session.screened
        if not (is_strategy(promise.inputs) or isinstance(promise.inputs, list | tuple)):
            return True
        if not screened.is_enough:
            return False
        if not screened.largest or not screened.movements[0].loss:
            return True
        if self._of_largest is None:
            content = screened.pairs[0].content
            same = (s for s in self._pairs.states if s.pair.content == content)
            self._of_largest = next(same, None)
        if self._of_largest is None:
            return not self._pairs.source.exhausted
        return self._of_largest.refused or self.is_known(self._of_largest)

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
            for at, data in _inputs(state)
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
    def _runs(self) -> int:
        """Real runs in all; 0 if there are too few samples for them."""
        vectorised = self.session.call.size is not None
        given = self._pairs.states[: self._pairs.claimed]
        if all(isinstance(self.known.pairs.get(state.number), AlignedPair) for state in given):
            return ROWS_OF_ALIGNED if vectorised else 2 * FEWEST_RUNS * len(given)
        share = CHECKED_SHARE
        if vectorised:  # each row is held against two others
            share = (share - SHARE_OF_CHECKED_ROWS) / 3
        return REAL_RUNS if share * self.session.budget.max_samples >= REAL_RUNS else 0

    def required_runs(self) -> int:
        """Pairs of outputs that are enough on each pair that the claim gives; 0 if no number is."""
        if not self.is_within or not self._is_screened() or self._is_doubted():
            return 0
        return max(self._runs // (2 * self._pairs.claimed), FEWEST_RUNS) if self._runs else 0

    def decides(self, state: PairState) -> bool:
        """Return whether a few runs on a pair are enough, so that none should be made for bets."""
        return self.is_known(state) and bool(self.required_runs())

    def missing(self, state: PairState) -> int:
        """Pairs of outputs that are still missing on a pair of inputs whose loss is known."""
        if not self.is_known(state) or not (wanted := self.required_runs()):
            return 0
        if self._pairs.is_proposed(state):
            wanted = FEWEST_RUNS
        return max(wanted - state.drawn, 0)

    def is_enough(self) -> bool:
        """Return whether there were enough real runs on all pairs, and all look as derived."""
        states = self._states
        if not self.required_runs() or any(map(self.missing, states)):
            return False
        self._hold(filter(self.is_known, states))
        return not self.against

    def accept_pass(self) -> None:
        """Let the audit's pass rest on what is known."""
        self.runs = 2 * sum(state.drawn for state in self._states if self.is_known(state))

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

    @property
    def estimate(self) -> Estimate:
        """The loss on the claim's pairs, as real runs bear it out."""
        loss = self.loss
        assert loss is not None
        known = self.known.pairs
        pairs = [known[number] for number in range(self._pairs.claimed) if number in known]
        return estimate_of(pairs, *loss, self.runs, self._unseen)

    @property
    def _unseen(self) -> float:
        """The share, of runs on an input, that may do something else and go unseen, at 95 %."""
        drawn = min(state.drawn for state in self._pairs.states[: self._pairs.claimed])
        return -math.expm1(math.log(SHOWN_ALPHA) / drawn) if drawn and self.runs else 0.0

    def is_suspect(self) -> bool:
        """Return whether the loss exceeds the claim, by all that is known and that runs show."""
        if not self.exceeds or self._is_doubted():
            return False
        if self.known.by_rounding and not self.session.settings.floating_point:
            return False
        self._hold(state for state in self._states if state.drawn and self.is_known(state))
        return not self.against

    def suspects(self) -> list[PairState]:
        """Return the pairs inside the claim whose known loss is the largest, if that breaks it."""
        if not self.is_suspect():
            return []
        inside = (state for state in self._states if not self.session.is_report_only(state.pair))
        losses = {state.number: self._loss_on(state.number) or (0.0, 0.0) for state in inside}
        largest = max(losses.values())[0]
        return [s for s in self._states if losses.get(s.number, (0.0, 0.0))[0] >= largest]

    @property
    def suspicion(self) -> str:
        """A sentence: the loss is larger than the claim, and what to do about it."""
        known, session = self.estimate, self.session
        guarantee = session.guarantee
        numbers = [state.number for state in self.suspects()]
        mode = self.known.pairs[numbers[0]].mode if numbers else known.mode
        ways = [
            self.known.proposal(at, guarantee, session.budget.alpha, math.inf) for at in numbers
        ]
        runs = min((2 * way.needed for way in ways if way), default=0)
        enough = f" (about {float(f'{runs:.2g}'):,.0f} runs on one pair would do)" if runs else ""
        return (
            f"suspect: {mode} {guarantee.equal(f'{known.value:.3g}')}, above the claim of "
            f"{guarantee.claimed:g}, and too few runs to show it: raise max_samples or "
            f"max_seconds{enough}"
        )


def _inputs(state: PairState) -> Iterable[tuple[int, Any]]:
    """The inputs of a pair, by their positions in the pool."""
    return zip((state.input1, state.input2), state.pair.inputs, strict=True)
