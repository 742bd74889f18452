"""Whether a game may end, as it would have caught what its margin asks for."""

from __future__ import annotations

from pytest_dp.auditors.bandit import Bandit
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.pair_state import PairState
from pytest_dp.auditors.stopping import (
    MIN_AT_MARGIN,
    Caught,
    in_doubt,
    should_tell,
    tells_apart,
    would_catch,
)
from pytest_dp.evidence.betting import Ledger
from pytest_dp.evidence.resolution import LITTLE
from pytest_dp.limits import CHECK_GROWTH, HUNG_SECONDS, RESERVE


class Margin:
    """The margin of a game that may spend a share of alpha; `doubtful` keeps it from ending."""

    def __init__(self, context: Context, bandit: Bandit, share: float) -> None:
        self._context, self._bandit, self._share = context, bandit, share
        self.doubtful: PairState | None = None
        self._next_check = self._next_shown = 0.0  # pairs of outputs
        self._at_margin = 0  # the same, where noise would have been caught that is too small

    def is_reached(self, ledger: Ledger) -> bool:
        """Whether the claim's margin is reached and nothing is in doubt; looked at now and then."""
        context, bandit = self._context, self._bandit
        if bandit.drawn < self._next_check or ledger.refuted:
            return False
        shows_progress = context.sampler.progress is not None
        searched = bandit.source.exhausted or not bandit.may_search
        may_end = searched and bandit.all_seen and bandit.drawn >= MIN_AT_MARGIN
        learned = all(state.binnings for state in bandit.seen[: bandit.claimed])
        if not learned or not (may_end or (shows_progress and bandit.drawn >= self._next_shown)):
            return False
        doubts = None
        self._next_shown = CHECK_GROWTH * bandit.drawn
        level = context.guarantee, self._share * context.alpha
        caught = would_catch(bandit.seen[: bandit.claimed], bandit.claimed, *level)
        context.sampler.caught = caught.at
        margin = context.settings.margin
        if may_end and self._is_at(margin, caught) and self._sees():
            left = max((1 - RESERVE) * context.max_samples - context.sampler.runs, 0) / 2
            doubts = in_doubt(bandit.accepted, caught.if_kept, left, *level, margin, bandit.claimed)
        self.doubtful = doubts[0] if doubts else None
        self._next_check = 0.0 if doubts or not may_end else CHECK_GROWTH * bandit.drawn
        return doubts == []

    def _is_at(self, margin: float, caught: Caught) -> bool:
        """Whether the margin is reached; under a delta, or all that may be spent on the rest."""
        context, guarantee = self._context, self._context.guarantee
        if guarantee.noise_below(caught.at) <= margin and caught.sees(guarantee):
            return True
        if not guarantee.delta or guarantee.noise_below(caught.if_kept) > margin:
            return False
        drawn = self._bandit.drawn
        self._at_margin = self._at_margin or drawn
        beyond = context.runs_within(HUNG_SECONDS, context.max_samples)
        return 2 * (drawn - self._at_margin) >= beyond

    def _sees(self) -> bool:
        """Whether inputs are told apart, or would be if the mechanism used some of its claim."""
        seen = self._bandit.seen
        return (
            tells_apart(seen)
            or should_tell(seen, self._context.guarantee, LITTLE)
            or all(state.outputs.alike() for state in seen)
        )
