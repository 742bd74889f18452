"""Checks of known losses: if real runs agree with them, an audit needs no bets.

A derived loss may be wrong: of code that treats deferred numbers differently than plain ones, or
keeps something from run to run. So copies of the mechanism are run to see what it keeps, its real
outputs are compared with the derived laws, and rows of vectorised calls with calls of one row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from pytest_dp.auditors.pairs_in_play import ClaimPairs, KnownLosses
from pytest_dp.auditors.session import Session
from pytest_dp.betting.betting_loop import PairState
from pytest_dp.claiming.setting_fields import is_strategy
from pytest_dp.known_losses import (
    KEEPS,
    TOO_FEW,
    DerivedLosses,
    check_keeps_nothing,
    content_of,
    derive_losses,
    estimate_of,
    hold_against,
    parameter_of,
    unseen_share,
)
from pytest_dp.oracles.alignment import Alignment, check_rows
from pytest_dp.pairs import Pair
from pytest_dp.privacy import gaussian_sigma
from pytest_dp.results.outcome import Estimate
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generator_stand_ins import CannotInstrument

FEWEST_RUNS = 12
"""Runs on an input, at least. Fewer: runs that differ from replays in 1 of 4 go unseen more
often."""
CHECKED_SHARE = 0.8
"""Share of all samples for checks. Smaller: small efforts check no losses."""
ROUNDING = 1e-9
"""Relative error of a parameter. Smaller: rounding makes a loss larger than the claim."""
LOSS_ERROR = 1e-6
"""Relative error of a loss that counts as exact. Smaller: losses count as bounds."""
LOOKING_TIME = 0.1
"""Share of the time to check inputs once. Smaller: slow mechanisms are not checked."""

REAL_RUNS = 1_000
"""Real runs that are compared with a derived law. Fewer: a law wrong in 1 of 100 runs goes
unseen."""
ROWS_OF_ALIGNED = 400
"""The same for rows of vectorised calls whose loss is known by alignment of calls of one row."""
INPUTS_RUN_TWICE = 2
"""Inputs on which copies run. Fewer: mechanisms that keep only some inputs show less often."""
MAX_OF_UNKNOWN = 10_000
"""Pairs of outputs on proposed pairs of unknown loss, if all others are known. Fewer see less."""
SHARE_OF_UNKNOWN = 0.25
"""The same, as a share of all that may be drawn. Larger: small efforts cannot count a violation."""

SHARE_OF_CHECKED_ROWS = 0.4
"""Share of all runs for the first check of rows of vectorised calls. Smaller: it checks few
rows."""
KEPT_RUNS = 1_000
"""Outputs of a pair that are compared with its loss, at least. Fewer miss rare differences."""


class AnalyticCheck(KnownLosses):
    """Known losses on the pairs of an audit, and the checks without which no pass rests on them.

    A pass may rest on them if the loss is known on all pairs that the claim gives, and above the
    claim on none. Proposed pairs without a known loss are bet on. `pairs` is None before there is
    an audit.
    """

    def __init__(
        self, session: Session, derived: DerivedLosses, pairs: ClaimPairs | None = None
    ) -> None:
        super().__init__(derived.refusal)
        self.session, self.derived = session, derived
        if pairs is not None:
            self._pairs = pairs
        self._losses: dict[int, tuple[float, float] | None] = {}  # by pair
        self._inputs_checked: set[int] = set()
        self._calls_checked: set[tuple[int, int]] = set()  # inputs, and sizes of vectorised calls
        self._drawn_when_compared: dict[int, int] = {}  # pairs of outputs, by pair
        self._seconds = LOOKING_TIME * session.budget.max_seconds  # to check inputs once
        self._before = session.call.pristine.content if session.call.pristine else b""

    def of_pairs(self, session: Session, pairs: ClaimPairs, *, found: bool = True) -> AnalyticCheck:
        """Return a check for the pairs of an audit, with the losses derived so far if `found`."""
        derived = self.derived if found else replace(self.derived, pairs={}, aligner=None)
        return AnalyticCheck(session, derived, pairs)

    def add(self, number: int, pair: Pair, deadline: Deadline) -> None:
        self.derived.add(number, pair, deadline)

    def is_aligned(self, pair: Pair, deadline: Deadline) -> bool:
        return self.derived.is_aligned(pair, deadline)

    def cheaper_claim(self) -> str:
        """Return advice to claim mu in place of eps and delta for Gaussian noise; else ""."""
        guarantee, derived = self.session.guarantee, self.derived
        is_gaussian = derived.gaussian_is_above or any(pair.mu for pair in derived.pairs.values())
        if not (guarantee.delta and guarantee.eps and is_gaussian):
            return ""
        mu = math.floor(1000 / gaussian_sigma(guarantee.eps, guarantee.delta)) / 1000
        said = f"claim mu={mu:g}: it asks the same of Gaussian noise, and takes fewer runs"
        return said if mu else ""

    # What is known

    @property
    def _given_pairs(self) -> list[PairState]:
        """The pairs that the claim gives."""
        return self._pairs.states[: self._pairs.claimed]

    @property
    def _known_pairs(self) -> list[PairState]:
        """The pairs with a known loss, whatever it is, whose inputs the mechanism accepts."""
        return [s for s in self._pairs.states if not s.refused and self.is_known(s)]

    def is_known(self, state: PairState) -> bool:
        """Return whether the loss on a pair is known, whatever it is."""
        return self._loss_on(state) is not None

    def _loss_on(self, state: PairState) -> tuple[float, float] | None:
        """Return the parameter of the claim on a pair, and its error; None if not known exactly."""
        number, known = state.number, self.derived.pairs.get(state.number)
        if known is None:
            return None
        if number not in self._losses:
            self._losses[number] = None
            with suppress(CannotInstrument, Exception):  # such as of numbers beyond floats
                value, error = parameter_of(known, self.session.guarantee)
                if error <= LOSS_ERROR * max(value, 1.0):
                    self._losses[number] = value, error
        return self._losses[number]

    @property
    def loss(self) -> tuple[float, float]:
        """The largest parameter on a known pair inside of the claim, and its error; or 0 and 0."""
        inside = [s for s in self._known_pairs if not self.session.is_report_only(s.pair)]
        losses = map(self._loss_on, inside)
        known = [loss for loss in losses if loss is not None] or [(0.0, 0.0)]
        return max(value for value, _ in known), max(error for _, error in known)

    @property
    def _exceeds(self) -> bool:
        """True if the largest known loss is above the claim by more than its error."""
        value, error = self.loss
        return value > self.session.guarantee.claimed * (1 + ROUNDING) + error

    @property
    def may_exceed(self) -> bool:
        return self._exceeds or self.derived.gaussian_is_above

    @property
    def is_within(self) -> bool:
        given = self._given_pairs
        return bool(given) and all(map(self.is_known, given)) and not self._exceeds

    @property
    def unknown_pairs(self) -> list[PairState]:
        """Proposed pairs without a known loss on which more outputs are to be drawn.

        Together they get as many as the pairs that the claim gives, or a share of all that may be
        drawn if these are few; afterwards, only pairs that look broken are listed.
        """
        pairs = self._pairs
        unknown = [state for state in pairs.accepted_pairs if not self.is_known(state)]
        drawn, given = (sum(s.drawn for s in each) for each in (unknown, self._given_pairs))
        share = SHARE_OF_UNKNOWN * self.session.budget.max_samples / 2
        if drawn < max(given, min(MAX_OF_UNKNOWN, share)):
            return unknown
        return list(filter(pairs.looks_broken, unknown))

    # How many real runs a pass needs

    def required_runs(self) -> int:
        """Check new inputs; return the pairs of outputs that a pass needs on each pair, or 0."""
        if not self.is_within or not self._is_largest_move_settled() or self._find_doubt():
            return 0
        vectorised, given = self.session.call.size is not None, self._given_pairs
        if all(isinstance(self.derived.pairs.get(state.number), Alignment) for state in given):
            runs = ROWS_OF_ALIGNED if vectorised else 0
        else:  # of vectorised calls, each row is held against two others
            share = (CHECKED_SHARE - SHARE_OF_CHECKED_ROWS) / 3 if vectorised else CHECKED_SHARE
            if share * self.session.budget.max_samples < REAL_RUNS:
                return 0
            runs = REAL_RUNS
        return max(runs // (2 * len(given)), FEWEST_RUNS)

    def _is_largest_move_settled(self) -> bool:
        """Return whether enough pairs were screened, and the loss on that of largest move is known.

        True without screening: if the claim lists its pairs, or gives patterns of queries. True as
        well if that pair is refused, or is still to be proposed.
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
            return not self._pairs.source.is_exhausted
        return largest.refused or self.is_known(largest)

    def needs_no_bets(self, state: PairState) -> bool:
        return self.is_known(state) and bool(self.required_runs())

    def missing_runs(self, state: PairState) -> int:
        """Return how many required pairs of outputs a pair lacks; 0 if its loss is not known."""
        required = self.required_runs() if self.is_known(state) else 0
        if required and self._pairs.is_proposed(state):
            required = FEWEST_RUNS
        return max(required - state.drawn, 0)

    # Checks of the mechanism, and of its real runs

    def _find_doubt(self) -> bool:
        """Check inputs that are new by runs of copies; return whether `against` is set."""
        self._check(lambda: self._check_new_inputs(self._deadline()))
        return bool(self.against)

    def _deadline(self) -> Deadline:
        """Return the deadline of one check, from now."""
        return self.session.budget.deadline_in(self._seconds)

    def _check(self, check: Callable[[], None]) -> None:
        """Call a check unless `against` is set; set it to the reason if the check raises."""
        if self.against:
            return
        try:
            check()
        except OutOfTime:
            self.against = "its runs take too long to be looked at"
        except (CannotInstrument, Exception) as error:  # the mechanism's own, or of its copies
            self.against = str(error) or type(error).__name__

    def _check_new_inputs(self, deadline: Deadline) -> None:
        """Run copies on new inputs; raise CannotInstrument if they keep something, or rows differ.

        Rows of vectorised calls are compared with calls of one row. Raises OutOfTime, and the
        mechanism's errors.
        """
        call, inputs = self.session.call, self._inputs_of(self._known_pairs)
        for number, data in inputs.items():
            if number in self._inputs_checked:
                continue
            if len(self._inputs_checked) < INPUTS_RUN_TWICE:
                check_keeps_nothing(call, data, deadline)
            if call.size is not None:
                most = SHARE_OF_CHECKED_ROWS * self.session.settings.max_samples / (2 * len(inputs))
                rows = min(max(int(most), FEWEST_RUNS), REAL_RUNS)
                self.session.sampler.looked += check_rows(call, data, [rows], deadline)
            self._inputs_checked.add(number)

    @staticmethod
    def _inputs_of(states: Sequence[PairState]) -> dict[int, Any]:
        """Return the inputs of pairs by their positions in the pool."""
        return {
            number: data
            for state in states
            for number, data in zip((state.input1, state.input2), state.pair.inputs, strict=True)
        }

    def accepts_pass(self) -> bool:
        """Compare real runs with losses; return whether a pass may rest on them, and set `runs`."""
        known = self._known_pairs
        if not self.required_runs() or any(map(self.missing_runs, known)):
            return False
        self._compare_with_real_runs(known)
        if not self.against:
            self.runs = 2 * sum(state.drawn for state in known)
        return not self.against

    def _compare_with_real_runs(self, states: Sequence[PairState]) -> None:
        """Compare the real runs on pairs with their known losses; set `against` if they differ."""
        for state in states:
            if self._drawn_when_compared.get(state.number) != state.drawn:
                self._check(partial(self._compare_runs_on, state))
                self._drawn_when_compared[state.number] = state.drawn

    def _compare_runs_on(self, state: PairState) -> None:
        """Raise CannotInstrument if the real runs on a pair disagree with its known loss.

        Also if the mechanism has changed, outputs were not kept, or rows of its calls differ.
        """
        call, known = self.session.call, self.derived.pairs[state.number]
        sides = state.outputs.sides()
        if content_of(call) != self._before:
            raise CannotInstrument(KEEPS)
        if min(map(len, sides)) < min(state.drawn, known.checked):
            raise CannotInstrument("not all of its outputs are kept")
        hold_against(known, sides)
        if call.size is None:
            return
        for number, data in self._inputs_of([state]).items():  # each size may be treated otherwise
            made = self.session.sampler.calls.get(self._pairs.pool.inputs[number], set())
            new = {size for size in made if (number, size) not in self._calls_checked}
            looked = check_rows(call, data, sorted(new), self._deadline())
            self.session.sampler.looked += looked
            self._calls_checked |= {(number, size) for size in new}

    # What is shown

    def _loss_on_claim(self) -> Estimate:
        """Return the loss on the claim's pairs, with the share of runs that real runs may miss."""
        known = self.derived.pairs
        pairs = [known[number] for number in range(self._pairs.claimed) if number in known]
        drawn = min(state.drawn for state in self._given_pairs)
        unseen = unseen_share(drawn if self.runs else 0)
        return estimate_of(pairs, *self.loss, self.runs, unseen)

    def estimate(
        self, states: Sequence[PairState], *, violated: bool
    ) -> tuple[Estimate | None, str]:
        """Return the loss on the claim's pairs and ""; or None, and the reason why it is not known.

        It is not known without 1,000 outputs on a pair that agree, after a violation on a pair
        without a known loss, and if it is above a claim that bets did not refute.
        """
        if self.runs and not violated:
            return self._loss_on_claim(), ""
        pairs = self.derived.pairs
        if not pairs:
            return None, self.refusal
        of_claim = [s for s in states if s.number in pairs and s.number < len(self.session.pairs)]
        shown = [state for state in of_claim if state.outputs.whole_pairs >= KEPT_RUNS]
        if violated:
            broken = max(states, key=lambda state: state.earned)
            if broken.number not in pairs:
                return None, "the pair that broke the claim is not known"
            shown += [broken] if broken not in shown else []
        if not shown:
            return None, TOO_FEW
        try:
            values, errors = zip(*map(self._parameter_on, shown), strict=True)
        except (CannotInstrument, Exception) as reason:  # the verdict stands without it
            return None, str(reason)
        claimed = self.session.guarantee.claimed
        if max(values) > claimed and self._differs_by_rounding_alone:
            return None, "outputs that differ by rounding alone count as different there"
        if max(values) > claimed * (1 + ROUNDING) and not violated:
            return None, "a loss above the claim that the bets do not confirm"
        return estimate_of([pairs[s.number] for s in shown], max(values), max(errors)), ""

    @property
    def _differs_by_rounding_alone(self) -> bool:
        """True if outputs that only rounding tells apart may make a loss, which is no leak."""
        return self.derived.by_rounding and not self.session.settings.floating_point

    def _parameter_on(self, state: PairState) -> tuple[float, float]:
        """Return the claim's parameter on a pair, and its error.

        Raises CannotInstrument if real outputs disagree, or rows of its calls were not compared.
        """
        known = self.derived.pairs[state.number]
        if self.session.call.size is not None and isinstance(known, Alignment):
            raise CannotInstrument("rows of its calls were not compared with calls of one row")
        hold_against(known, state.outputs.sides())
        return parameter_of(known, self.session.guarantee)

    def pairs_above_claim(self) -> Sequence[PairState]:
        """Compare real runs with losses; return the pairs of the largest, [] if it is no leak."""
        if not self._exceeds or self._find_doubt() or self._differs_by_rounding_alone:
            return []
        known = [s for s in self._known_pairs if not self.session.is_report_only(s.pair)]
        self._compare_with_real_runs([state for state in self._known_pairs if state.drawn])
        losses = [self._loss_on(state) or (0.0, 0.0) for state in known]
        largest = max(losses)[0]
        both = zip(known, losses, strict=True)
        return [] if self.against else [state for state, loss in both if loss[0] >= largest]

    def describe_suspicion(self) -> tuple[Estimate, str]:
        """Return the loss on the claim's pairs, and a sentence that too few runs could show it."""
        known, guarantee = self._loss_on_claim(), self.session.guarantee
        mode = self.derived.pairs[self.pairs_above_claim()[0].number].mode
        loss = guarantee.write_comparison("=", f"{known.value:.3g}")
        return known, (
            f"suspect: {mode} {loss}"
            f", above the claim of {guarantee.claimed:g}, and too few runs to show it: raise "
            "max_samples or max_seconds"
        )


def find_losses(session: Session) -> AnalyticCheck:
    """Derive the losses on the claim's first pairs: the optional part `oracle`."""
    return AnalyticCheck(session, derive_losses(session))
