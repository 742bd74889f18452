"""Audits that play the betting loop (`pytest_dp.betting`) on runs of a claim's mechanism.

The loop decides which pair is next and what is bet; a `BettingAudit` runs the mechanism, fits
detectors, and decides when to stop. What is drawn depends on counts and outputs alone.
"""

from __future__ import annotations

import math
from contextlib import suppress
from functools import partial
from typing import cast

from pytest_dp.auditors.budget import OUTSIDE_RESERVE
from pytest_dp.auditors.pair_state import (
    Pool,
    check_user_functions,
    draw_batch,
    make_model_fitter,
    outputs_to_learn,
)
from pytest_dp.auditors.pairs_in_play import (
    CLEAR_ERRORS,
    ClaimPairs,
    KnownLosses,
    judge_first_outputs,
)
from pytest_dp.auditors.session import Session
from pytest_dp.auditors.stopping import (
    MIN_AT_MARGIN,
    DetectionPower,
    find_detection_power,
    may_release,
    outputs_on_worst_pair,
)
from pytest_dp.basics.arrays import Ints
from pytest_dp.betting.betting_loop import FIRST_BATCH, MAX_FITTED_PAIRS, BettingLoop, PairState
from pytest_dp.betting.detector import ByScore, Detector, fit_detector
from pytest_dp.claiming.settings import NO_MARGIN
from pytest_dp.pairs import Pair
from pytest_dp.pairs.sources import PairSource
from pytest_dp.results.outcome import Evidence, e_value
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generators import Purpose
from pytest_dp.statistics.event_bets import rank_for
from pytest_dp.statistics.ledger import BetRecord, Ledger, standard_errors_against
from pytest_dp.statistics.power import PlannedBets

CHECK_GROWTH = 1.15
"""Growth of samples between two checks. Larger: audits end later; smaller: checks take longer."""
MIN_UNDER_DELTA = 16_000
"""Pairs of outputs after which single runs under a delta may end early. Fewer: rare leaks go
unseen."""
FIRST_PAIRS_TIME = 0.05
"""Share of the time to derive a loss on a pair. Larger: bets have less; smaller: fewer are
known."""
MAX_LEFT_OUT = 20
"""Pairs left out in a row until the audit outside of the claim ends. Fewer: it ends too early."""


class BettingAudit:
    """An audit of a claim by bets on pairs of inputs; its betting loop draws and fits through it.

    `key` is the first part of the keys of its random numbers, and `share` the share of alpha that
    it may spend. `coupled` is whether both inputs of a pair may share their random numbers.
    `earlier` is evidence of earlier runs, which its own evidence multiplies.
    """

    def __init__(
        self,
        session: Session,
        key: int,
        share: float,
        known: KnownLosses,
        pairs: ClaimPairs,
        *,
        coupled: bool,
        earlier: Evidence | None = None,
    ) -> None:
        self.session, self.key, self.share = session, key, share
        self.queue, self.known = pairs, known.of_pairs(session, pairs)
        self.earlier = earlier or Evidence()
        self.refuted_before = self.earlier.refutes(session.budget.alpha)
        before = () if self.refuted_before else self.earlier.log_e_values
        self.ledger = Ledger(session.guarantee, share * session.budget.alpha, before)
        self.coupled, self._deadline = coupled, session.budget.deadline
        self._rank = rank_for(session.guarantee, rarest=0.0)
        self.loop = BettingLoop(pairs, self.ledger, self)
        self.late = self.satisfied = False
        self.outside: BettingAudit | None = None
        """The audit of pairs outside of the declared inputs, once it was played."""
        self._next_check = float(MIN_AT_MARGIN)  # pairs of outputs

    @classmethod
    def on_claim(
        cls, session: Session, key: int, share: float, known: KnownLosses, *, coupled: bool
    ) -> BettingAudit:
        """Return an audit, not played yet, of pairs that the claim gives or its search proposes."""
        source = session.source
        pairs = ClaimPairs(
            source,
            session.guarantee,
            source.given,
            is_apart=session.is_report_only,
            urgent=session.screened.urgent,
        )
        return cls(session, key, share, known, pairs, coupled=coupled, earlier=session.earlier)

    def on_pair(self, pair: Pair, *, coupled: bool) -> BettingAudit:
        """Return an audit, not played yet, of one pair alone, with its own ledger and samples."""
        pairs = ClaimPairs(PairSource([pair]), self.session.guarantee, [pair])
        key = Purpose.SMALLER
        return BettingAudit(self.session, key, self.share, KnownLosses(), pairs, coupled=coupled)

    def play(
        self, deadline: Deadline, max_runs: float = math.inf, least_hope: float = -math.inf
    ) -> None:
        """Bet until the claim is refuted, a pass is worth its margin, or the samples are used up.

        Also ends after `max_runs` runs of the whole audit, and once the edge bounds of all pairs
        are below `least_hope`. Sets `satisfied` if a pass needs no more runs. Raises OutOfTime at
        the deadline, and CannotCouple if shared random numbers fail.
        """
        self._deadline = deadline
        kept = OUTSIDE_RESERVE * self._may_go_outside
        most = min(max_runs, self.session.budget.most_bet(kept))
        if self.queue.claimed:
            self._hold_runs_against_known_losses(most)
        if not self.satisfied:
            self.loop.play(
                self.draw_count + self.pairs_left(most),
                partial(self._should_stop, least_hope),
            )

    def _hold_runs_against_known_losses(self, most: float) -> None:
        """Draw the real runs that a pass by known losses needs; set `satisfied` if they agree.

        Bets only on proposed pairs of unknown loss. Returns early if too few samples are left.
        Functions of the user are called as well, so that errors in them show.
        """
        own = self.session.settings.features, self.session.method.classifier
        checks = self.known
        while checks.required_runs() and (state := self._next_to_hold()) is not None:
            missing = checks.missing_runs(state)  # in growing batches: slow ones end in between
            size = state.drawn if missing >= state.drawn + FIRST_BATCH else missing
            size = min(max(size, FIRST_BATCH), self.pairs_left(most))
            if size < FIRST_BATCH:
                return
            self.loop.draw(state, size)
            if own != (None, None):
                self.loop.refit(state)
        while (
            checks.required_runs()
            and (pairs := checks.unknown_pairs)
            and not self.ledger.is_refuted
        ):
            if not (left := self.pairs_left(most)):
                return
            self.loop.play_batch(max(pairs, key=lambda state: state.edge_bound), left)
        self.satisfied = not self.is_refuted and checks.accepts_pass()

    def _next_to_hold(self) -> PairState | None:
        """Pick a new pair, else return that which lacks most real runs; None if none lacks any."""
        if (new := self.queue.pick_new_pair()) is not None:
            return new
        least = max(self.sampled_pairs, key=self.known.missing_runs)
        return least if self.known.missing_runs(least) else None

    def _should_stop(self, least_hope: float) -> bool:
        """Return whether the audit may end before its samples are used up.

        True if all edge bounds are below `least_hope`, or a pass is worth its margin. The margin is
        looked at whenever samples have grown by 15 %, which sets `satisfied`.
        """
        if max(state.edge_bound for state in self.sampled_pairs) < least_hope:
            return True
        margin = self.session.settings.margin
        may_ask = self.queue.claimed and not self.queue.unseen and self.queue.is_searched
        if margin > NO_MARGIN and may_ask and self.draw_count >= self._next_check:
            self._next_check = CHECK_GROWTH * self.draw_count
            caught = self.detection_power
            self.session.sampler.caught = caught.at
            self.satisfied = self._is_enough(caught) and not self._is_in_doubt()
        return self.satisfied

    def _is_enough(self, caught: DetectionPower) -> bool:
        """Return whether noise that is `margin` times too small would have been caught.

        Single runs under a delta must also show leaks near delta; from 16,000 pairs of outputs on,
        it is enough that such noise would be caught if the claim is kept, and that no pair looks
        broken.
        """
        guarantee, margin = self.session.guarantee, self.session.settings.margin
        is_vectorised = self.session.call.size is not None
        if guarantee.noise_below(caught.at) <= margin and (
            is_vectorised or caught.sees_delta(guarantee)
        ):
            return True
        if not guarantee.delta or is_vectorised or self.draw_count < MIN_UNDER_DELTA:
            return False
        would_show = guarantee.noise_below(caught.if_kept(guarantee)) <= margin
        return would_show and not any(map(self._looks_broken, self.queue.accepted_pairs))

    def _looks_broken(self, state: PairState) -> bool:
        """Return whether bets on a pair clearly gain, which for a kept claim is bad luck."""
        return standard_errors_against(state.record, self.session.guarantee) > CLEAR_ERRORS

    def _is_in_doubt(self) -> bool:
        """Return whether some pair may break the claim, so that bets go on.

        By a known loss, a proposed pair on which bets clearly gain, or a leak that may be rare.
        """
        return self.known.may_exceed or any(
            (self.queue.is_proposed(state) and self._looks_broken(state))
            or may_release(state, self.session.guarantee)
            for state in self.queue.accepted_pairs
        )

    @property
    def _may_go_outside(self) -> bool:
        """True if another audit is to look at proposed pairs outside of the declared inputs."""
        apart = self.session.settings.beyond == "tell" and self.key != Purpose.OUTSIDE
        return apart and bool(self.queue.source.proposers)

    def play_outside(self, deadline: Deadline) -> None:
        """Set `outside` to an audit of pairs outside of the declared inputs, and play it.

        It has a ledger of its own and at most a quarter of the samples, and ends in time without an
        error. Pairs whose loss an alignment bounds within the claim are left out. Nothing is done
        if the claim is refuted, or no search may propose such pairs.
        """
        if self.is_refuted or not self._may_go_outside:
            return
        session = self.session

        def needs_no_bets(pair: Pair) -> bool:
            seconds = FIRST_PAIRS_TIME * session.budget.max_seconds
            in_time = session.budget.deadline_in(seconds)
            return not session.is_report_only(pair) or self.known.is_aligned(pair, in_time)

        source, waiting = self.queue.source, self.queue.left_out
        pairs = ClaimPairs(source, session.guarantee, (), needs_no_bets, (), waiting, MAX_LEFT_OUT)
        known, key = self.known.of_pairs(session, pairs, found=False), Purpose.OUTSIDE
        outside = BettingAudit(session, key, self.share, known, pairs, coupled=self.coupled)
        with suppress(OutOfTime):
            outside.play(deadline, session.budget.most_outside)
        self.outside = outside

    # What its betting loop asks for

    def pairs_left(self, most: float) -> int:
        """Return how many pairs of outputs fit into `most` runs of the whole audit; at least 0."""
        return max(int(most - self.session.budget.runs_used) // 2, 0)

    def decide_coupling(self, status: PairState) -> bool:
        """Derive the loss on a new pair; return whether its inputs are to share random numbers.

        False if a known loss makes bets needless, or a few runs show that numbers cannot be shared.
        If they cannot on a pair of the claim, `coupled` is set to False for all later pairs.
        """
        budget = self.session.budget
        in_time = budget.deadline_in(FIRST_PAIRS_TIME * budget.max_seconds)
        self.known.add(status.number, status.pair, in_time)
        if not self.coupled or self.known.needs_no_bets(status):
            return False
        input1, input2 = (self.pool.inputs[at] for at in (status.input1, status.input2))
        coupled = self.session.sampler.can_couple(input1, input2, self._deadline)
        if not self.queue.is_proposed(status):
            self.coupled = coupled
        return coupled

    def draw(self, status: PairState, size: int) -> list[Ints]:
        """Draw `size` pairs of outputs on a pair; return a table of counts for each binning.

        Raises OutOfTime if the deadline has passed, and CannotCouple if shared numbers fail.
        """
        if not self.session.budget.has_time(self._deadline):
            raise OutOfTime
        of_pair = self.session, self.pool, status
        return draw_batch(*of_pair, size, self.key, MAX_FITTED_PAIRS, self._deadline)

    def look_at_first_batch(self, status: PairState) -> None:
        """Set `refused` and the target of a pair by its first outputs (`judge_first_outputs`)."""
        judge_first_outputs(self.session, self.queue, status)

    def fit(self, status: PairState) -> tuple[Detector, BetRecord]:
        """Fit and return a detector on the kept outputs of a pair, and the counts of their bins.

        Raises OutOfTime if the deadline passes meanwhile, and ClaimError as `_fit_and_check`.
        """
        return self.session.budget.compute(partial(self._fit_and_check, status), self._deadline)

    def _fit_and_check(self, status: PairState) -> tuple[Detector, BetRecord]:
        """Fit a detector without a time limit; return it and the counts of its bins.

        Raises ClaimError if the user's classifier or features fail, or look at several outputs.
        """
        settings = self.session.settings
        table, on_d, about = outputs_to_learn(settings, status)
        fitted = fit_detector(table, on_d, about, self._rank, make_model_fitter(settings, about))
        by_score = cast("ByScore", fitted[0].binnings[0])
        check_user_functions(settings, status, by_score.model, about)
        return fitted

    # What is known in the end

    @property
    def detection_power(self) -> DetectionPower:
        """The losses that bets would have caught by now, with 95 % power, on the claim's pairs."""
        return find_detection_power(self.queue.seen_given, self.plan_bets())

    def plan_bets(self, times: float = 1.0) -> PlannedBets:
        """Return the bets to expect if the worst pair of inputs had `times` times its outputs."""
        alpha = self.share * self.session.budget.alpha
        pairs = times * outputs_on_worst_pair(self.queue)
        return PlannedBets(self.session.guarantee, pairs, alpha)

    def refit(self, state: PairState) -> None:
        """Fit the detector of a pair anew, until the audit's deadline; raise OutOfTime then."""
        self._deadline = self.session.budget.deadline
        self.loop.refit(state)

    def draw_more(self, state: PairState, size: int, deadline: Deadline) -> None:
        """Draw `size` more pairs of outputs without bets, and refit; may raise OutOfTime."""
        self._deadline = deadline
        self.loop.draw(state, size)
        self.refit(state)

    @property
    def evidence(self) -> Evidence:
        """The evidence of this run alone, for later runs of the same audit."""
        earned = math.log(self.share) + self.ledger.log_wealth - self.ledger.before
        return Evidence(tuple(map(float, earned)), 1, 2 * self.draw_count)

    def learned_pairs(self) -> list[PairState]:
        """Return the pairs with a detector on which a violation counts for the verdict.

        If earlier runs refuted the claim, so that nothing was bet, fits detectors first.
        """
        seen = [s for s in self.sampled_pairs if not self.session.is_report_only(s.pair)]
        learned = [state for state in seen if state.binnings]
        if learned or not self.is_refuted:
            return learned
        for state in seen:
            self.refit(state)
        return [state for state in seen if state.binnings]

    def rest_on_known_losses(self) -> None:
        """Set `satisfied` if real runs agree with the known losses and no pair looks broken."""
        broken = any(
            self.queue.looks_broken(state)
            for state in self.queue.accepted_pairs
            if state.binnings and not self.session.is_report_only(state.pair)
        )
        if not (self.is_refuted or self.satisfied or broken):
            self.satisfied = self.known.accepts_pass()

    @property
    def pool(self) -> Pool:
        """The inputs, each with its first and last outputs."""
        return self.queue.pool

    @property
    def sampled_pairs(self) -> list[PairState]:
        """The pairs of inputs that outputs were drawn on."""
        return [state for state in self.queue.seen if state.drawn]

    @property
    def draw_count(self) -> int:
        """The number of pairs of outputs drawn so far, on all pairs of inputs."""
        return self.queue.draw_count

    @property
    def e_value(self) -> float:
        """The e-value against the claim: `share` times the factor by which bets have multiplied it.

        At least 1 / alpha if the claim is refuted, in spite of rounding; the e-value of earlier
        runs if they refuted the claim.
        """
        value = self.share * e_value(self.ledger.log_e_value)
        if self.refuted_before:  # perhaps by these very samples: they count once
            value = e_value(self.earlier.log_e_value)
        return max(value, 1 / self.session.budget.alpha) if self.is_refuted else value

    @property
    def p_value(self) -> float:
        """The p-value of the claim, perhaps above 1; of earlier runs if they refuted the claim."""
        if self.refuted_before:
            return math.exp(-self.earlier.log_e_value)
        return self.ledger.p_value / self.share

    @property
    def is_refuted(self) -> bool:
        """True if the claim is refuted, by earlier runs or by all runs together."""
        return self.refuted_before or self.ledger.is_refuted
