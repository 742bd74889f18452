"""Whether an audit has enough, as the loss on all pairs is known and real runs bear it out.

What is derived may be wrong: of code that treats numbers differently that are traced, that looks at
the clock, or that keeps something from run to run. So a mechanism is looked over for these, run
with given numbers in place of draws, and its real outputs are held against their laws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from pytest_dp.auditors.context import Context
from pytest_dp.auditors.known import Known
from pytest_dp.auditors.pair_state import PairState
from pytest_dp.known import KnownPair, parameter_of
from pytest_dp.known.doubts import content_of, doubt_about
from pytest_dp.known.in_closed_form import PairInClosedForm, outcomes_of
from pytest_dp.known.outcomes import Outcome
from pytest_dp.known.replay import replayed
from pytest_dp.limits import (
    DOZENS,
    EQUAL,
    MANY,
    MOMENT,
    NEARLY_EQUAL,
    REFUTED,
    RESERVE,
    RUNS,
    SEARCH_TIME,
    SHOWN_ALPHA,
    STEPS,
    THOUSAND,
)
from pytest_dp.randomness.stand_ins import CannotInstrument
from pytest_dp.results.estimate import Estimate
from pytest_dp.sampling.chunks import Input
from pytest_dp.sampling.deadline import Deadline, OutOfTime

LEAST_RUNS = 40
"""Given: fewer say next to nothing of what a mechanism does now and then."""
OTHER_OUTPUTS = "real runs give other outputs than those that are derived"


class BearingOut:
    """The loss on all pairs that the claim gives, and what speaks against relying on it.

    `runs` is how many real runs bore it out; 0 as long as there were not enough.
    """

    def __init__(self, context: Context, known: Known) -> None:
        self.context, self.known = context, known
        self.runs = 0
        self._refuted = ""
        self._replayed: list[int] = []
        self._before = context.call.pristine.content if context.call.pristine else b""

    @cached_property
    def loss(self) -> tuple[float, float] | None:
        """The largest parameter on any pair, and its error; None if it is not known on all."""
        pairs, guarantee = self.known.pairs, self.context.guarantee
        if len(pairs) < len(self.context.pairs):
            return None
        try:
            losses = [parameter_of(pair, guarantee) for pair in pairs.values()]
        except (CannotInstrument, Exception):  # such as of numbers beyond floats
            return None
        value, error = max(loss for loss, _ in losses), max(error for _, error in losses)
        is_known = {pair.mode for pair in pairs.values()} <= {"exact", "analytic"}
        return (value, error) if is_known and error <= NEARLY_EQUAL * max(value, 1.0) else None

    @property
    def is_within(self) -> bool:
        """Whether the loss is known on all pairs, and is no larger than the claim."""
        claimed = self.context.guarantee.claimed
        return self.loss is not None and self.loss[0] <= claimed * (1 + EQUAL) + self.loss[1]

    @cached_property
    def doubt(self) -> str:
        """Why traced runs may be misleading; empty if nothing speaks for it."""
        context = self.context
        deadline = Deadline(SEARCH_TIME * context.settings.max_seconds)
        try:
            slow = context.sampler.quickest_run > MOMENT
            for data in self._inputs[:1] if slow else self._inputs:
                if doubt := doubt_about(context.call, data, deadline):
                    return doubt
            self._replay(deadline)
        except OutOfTime:
            return "its runs take too long to be looked at"
        except (CannotInstrument, Exception) as error:  # the mechanism's own, or of its copies
            return str(error) or type(error).__name__
        return ""

    @property
    def _inputs(self) -> list[Any]:
        inputs = [data for pair in self.context.pairs for data in pair.inputs]
        by_content = {Input(data).frozen or id(data): data for data in inputs}
        return list(by_content.values())

    def _replay(self, deadline: Deadline) -> None:
        """Run it with given numbers in place of draws, on each input.

        Raises CannotInstrument where that gives something else than the trace.
        """
        runs = self._runs // (2 * len(self._inputs))
        runs = min(max(runs, DOZENS // 2), RUNS)
        for data in self._inputs:
            outcomes = self._outcomes(data, deadline)
            done = 0
            if outcomes is not None:
                done = replayed(self.context.call, data, outcomes, runs, deadline)
                self.context.sampler.looked += done
            # a few of many ways say nothing of the others
            self._replayed.append(done if done >= DOZENS // 2 else 0)

    @property
    def _runs(self) -> int:
        """Real runs in all: as many as a moment affords, by the quickest so far.

        By steps: small differences in speed should not change what is done.
        """
        cost = self.context.sampler.quickest_run
        affordable = (1 - 2 * RESERVE) * self.context.max_samples
        runs = STEPS
        while runs > LEAST_RUNS and (cost * runs > MOMENT or runs > affordable):
            runs //= 4
        return max(runs, LEAST_RUNS)

    def _outcomes(self, data: Any, deadline: Deadline) -> Sequence[Outcome] | None:
        """Those of its traced runs; None where draws cannot be traced, only enumerated."""
        for number, pair in enumerate(self.context.pairs):
            known = self.known.pairs[number]
            for side, of_pair in enumerate(pair.inputs):
                if of_pair is data and isinstance(known, PairInClosedForm):
                    return known.outcomes[side]
        try:
            return outcomes_of(self.context.call, data, deadline, MANY)
        except CannotInstrument:
            return None

    @property
    def wanted(self) -> int:
        """Pairs of outputs that are enough on each pair of inputs; 0 if no number is."""
        # rows of one call may depend on each other, and on how many there are
        if self.context.call.size is not None or not self.is_within or self.doubt:
            return 0
        runs = self._runs
        if not min(self._replayed) and runs < THOUSAND:
            return 0
        return max((runs - sum(self._replayed)) // (2 * len(self.context.pairs)), DOZENS // 2)

    @property
    def is_slow(self) -> bool:
        """Whether a few slow runs are enough, so that none should be made for other purposes."""
        return self.context.sampler.quickest_run > MOMENT and bool(self.wanted)

    def missing(self, state: PairState) -> int:
        """Pairs of outputs that are still missing on a pair of inputs."""
        return 0 if self.runs or self._refuted else max(self.wanted - state.drawn, 0)

    def is_enough(self, states: Sequence[PairState]) -> bool:
        """Whether there were enough real runs on all pairs, and all look as derived."""
        if self._refuted or not self.wanted or any(map(self.missing, states)):
            return False
        try:
            self._refuted = self._against(states)
        except (CannotInstrument, Exception) as reason:  # outputs that cannot be compared
            self._refuted = str(reason) or type(reason).__name__
        if not self._refuted:
            self.runs = 2 * sum(state.drawn for state in states) + sum(self._replayed)
        return bool(self.runs)

    def _against(self, states: Sequence[PairState]) -> str:
        """What real runs say against what is known."""
        call = self.context.call
        if content_of(call) != self._before:
            return "it keeps something from run to run"
        for state in states:
            known: KnownPair = self.known.pairs[state.number]
            sides = state.outputs.sides()
            if min(map(len, sides)) < min(state.drawn, known.checked):
                return "not all of its outputs are kept"
            for side, outputs in enumerate(sides):
                if known.evidence_against(side, outputs[: known.checked]) >= REFUTED:
                    return OTHER_OUTPUTS
        return ""

    @property
    def estimate(self) -> Estimate:
        """The loss on all pairs, as real runs bear it out."""
        assert self.loss is not None
        value, error = self.loss
        pairs = self.known.pairs.values()
        modes = {pair.mode for pair in pairs}
        basis = max((pair.basis for pair in pairs), key=lambda text: (len(text), text))
        return Estimate(
            float(value),
            error,
            "analytic" if "analytic" in modes else "exact",
            pairs=len(pairs),
            basis=basis,
            runs=self.runs,
            unseen=self._unseen,
        )

    @property
    def _unseen(self) -> float:
        """Of runs on an input, the share that may do something else and go unseen, at 95 %."""
        runs = min(self._replayed, default=0) or self.runs / (2 * len(self.context.pairs))
        return -math.expm1(math.log(SHOWN_ALPHA) / runs) if runs and self.runs else 0.0

    def is_suspect(self, states: Sequence[PairState]) -> bool:
        """Whether the loss is larger than the claim, by all that is known and that runs show."""
        if self.loss is None or self.is_within or self.doubt:
            return False
        if self.known.by_rounding and not self.context.settings.floating_point:
            return False
        seen = [state for state in states if state.number in self.known.pairs]
        try:
            return not self._against(seen)
        except (CannotInstrument, Exception):  # outputs that cannot be compared
            return False

    @property
    def suspicion(self) -> str:
        """That the loss is larger than the claim, and what to do about it."""
        known, guarantee = self.estimate, self.context.guarantee
        return (
            f"suspect: {known.mode} {guarantee.equal(f'{known.value:.3g}')}, above the claim of "
            f"{guarantee.claimed:g}, and too few runs to show it: raise max_samples or max_seconds"
        )
