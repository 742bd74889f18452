"""Closed forms in an audit: pairs of inputs to bet on, and the loss where it follows from them.

As with enumeration, they only propose: the bets decide, and a loss is told only where outputs of
real runs look as they were traced.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_dp.analytic.agreement import evidence_against
from pytest_dp.analytic.comparing import Case, compared, largest_of
from pytest_dp.analytic.outcomes import Outcome, outcomes_of
from pytest_dp.analytic.profiles import Profile, eps_at, gaussian, profile
from pytest_dp.arrays import Outputs
from pytest_dp.auditors.arms import Arm
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.pool import Pool
from pytest_dp.auditors.proposals import (
    ABOVE,
    MIN_REAL,
    REFUTED,
    Proposal,
    best_within,
    known_pairs,
    proposal,
)
from pytest_dp.privacy import Guarantee
from pytest_dp.randomness.stand_ins import CannotInstrument
from pytest_dp.results.estimate import Estimate
from pytest_dp.sampling.deadline import Deadline
from pytest_dp.sampling.keys import Purpose
from pytest_dp.sampling.sampler import Draw

TIME_SHARE, MAX_WAYS = 0.025, 64
"""Share of max_seconds, and ways on each input, that are traced at most: what they take is lost to
the bets where nothing comes of it. Chosen by hand."""
MIN_EXCESS = 1e-6
"""By what the worst event exceeds the claim where it is worth a bet: less may be the error of an
integral, and would take far more outputs than an audit draws."""
MAX_REAL, MAX_NUMBERS = 4_000, 100_000
"""Real outputs that are compared with what was traced at most, and numbers in them: more would
take seconds, fewer would bear out what is not quite so. Chosen by hand."""


@dataclass(frozen=True, slots=True)
class Analysed:
    """A pair of inputs whose outputs are known in closed form.

    Attributes
    ----------
    outcomes : (list of Outcome, list of Outcome)
        On D and on D'.
    cases : list of Case
    value : float
        The largest loss in nats.
    error : float
    """

    outcomes: tuple[list[Outcome], list[Outcome]]
    cases: list[Case]
    value: float
    error: float

    def profiles(self) -> tuple[Profile, Profile]:
        """In both directions."""
        return profile(self.cases, forward=True), profile(self.cases, forward=False)


@dataclass(frozen=True, slots=True)
class ClosedForms:
    """What is known in closed form of the claim's first pairs of inputs.

    Attributes
    ----------
    known : dict
        By the number of the pair.
    """

    known: Mapping[int, Analysed] = field(default_factory=dict)

    def proposal(
        self, number: int, guarantee: Guarantee, alpha: float, max_pairs: float
    ) -> Proposal | None:
        """What breaks the claim on a pair of inputs, if so many pairs of outputs show it."""
        if number not in self.known:
            return None
        return best_within(max_pairs, _proposals(self.known[number], guarantee, alpha))

    def estimate(
        self, context: Context, pool: Pool, arms: Sequence[Arm], violated: bool
    ) -> Estimate | None:
        """The loss on the claim's pairs in closed form; None if it is not known, or is not sure.

        Parameters
        ----------
        context : Context
        pool : Pool
        arms : sequence of Arm
            With the outputs of real runs.
        violated : bool
            Whether the claim was refuted. Where it was not, no larger loss is told.
        """
        known = self.known
        to_check = [arm for arm in arms if arm.number in known and arm.outputs.pairs >= MIN_REAL]
        values = []
        try:
            if violated:  # nothing is told without the pair that broke the claim
                broken = max(arms, key=lambda arm: arm.earned)
                if broken.number not in known:
                    return None
                to_check += [] if broken in to_check else [broken]
            for arm in to_check:
                analysed = known[arm.number]
                if _contradicted(analysed, _real_outputs(context, pool, arm)):
                    return None
                values.append(_parameter(context.guarantee, analysed))
        except (CannotInstrument, Exception):  # the verdict stands without it
            return None
        if not values:
            return None
        value, error = max(value for value, _ in values), max(error for _, error in values)
        if math.isinf(error):  # a search may have missed a larger loss
            return None
        if value > context.guarantee.claimed * ABOVE + error and not violated:
            return None
        return Estimate(value, error, "analytic", pairs=len(values))


def _proposals(analysed: Analysed, guarantee: Guarantee, alpha: float) -> Iterator[Proposal]:
    for stick in guarantee.hockey_sticks:
        if analysed.value <= stick.eps * ABOVE:
            continue
        for direction in analysed.profiles():
            excess = direction.delta(stick.eps)[0] - stick.delta
            if excess > MIN_EXCESS * (1 + stick.delta):
                yield proposal(direction.masses(stick.eps), excess, stick.eps, alpha, None)


def trace_pairs(context: Context) -> ClosedForms:
    """Trace the claim's first pairs of inputs, until something is refused, or time is up."""
    deadline = Deadline(TIME_SHARE * context.settings.max_seconds)
    if (context.sampler.seconds_a_run or 0.0) > deadline.remaining() / 2:
        return ClosedForms()

    def traced(data: Any) -> list[Outcome]:
        outcomes = outcomes_of(context.call, data, deadline, MAX_WAYS)
        if _max_checked(outcomes) < MIN_REAL:
            raise CannotInstrument("outputs are too long to be checked")
        return outcomes

    def analysed(on_d: list[Outcome], on_d2: list[Outcome]) -> Analysed:
        cases = compared(on_d, on_d2)
        largest = largest_of(cases, deadline)
        value = max(largest.forward, largest.backward)
        return Analysed((on_d, on_d2), cases, value, largest.error)

    return ClosedForms(known_pairs(context.pairs, traced, analysed)[0])


def _real_outputs(context: Context, pool: Pool, arm: Arm) -> tuple[Outputs, Outputs]:
    """Outputs of real runs on both inputs: those that are kept, or new ones if they are too few.

    Raises
    ------
    CannotInstrument
        If there is no effort left for enough.
    """
    if arm.outputs.pairs >= MIN_REAL:
        return arm.outputs.sides()
    seconds = TIME_SHARE * context.settings.max_seconds
    if min(context.to_test, context.runs_within(seconds, 2 * MIN_REAL)) < 2 * MIN_REAL:
        raise CannotInstrument("too few real runs")
    draws = [
        Draw(pool.inputs[i], MIN_REAL, (Purpose.ANALYSED, arm.number, side))
        for side, i in enumerate((arm.input1, arm.input2))
    ]
    on_d, on_d2 = context.sampler.draw(draws, context.deadline)
    return on_d, on_d2


def _max_checked(outcomes: list[Outcome]) -> int:
    """How many real outputs can be compared with those that were traced."""
    leaves = max(len(outcome.leaves) for outcome in outcomes)
    return min(MAX_REAL, MAX_NUMBERS // max(leaves, 1))


def _contradicted(analysed: Analysed, real: tuple[Outputs, Outputs]) -> bool:
    """Whether real outputs contradict the distributions that were traced."""
    number = _max_checked(analysed.outcomes[0])
    return any(
        evidence_against(outcomes, list(outputs[:number])) >= REFUTED
        for outcomes, outputs in zip(analysed.outcomes, real, strict=True)
    )


def _parameter(guarantee: Guarantee, analysed: Analysed) -> tuple[float, float]:
    """The claim's parameter on a pair of inputs, and its error.

    Raises
    ------
    CannotInstrument
        If it does not follow.
    """
    if guarantee.parameter == "eps" and not guarantee.delta:
        return analysed.value, analysed.error
    mu = gaussian(analysed.cases)
    if guarantee.parameter == "eps":
        lower, upper = eps_at(guarantee.delta, analysed.profiles())
        if lower < math.inf == upper:
            raise CannotInstrument("what is too rare to integrate may lose anything")
        if lower == upper:
            return lower, 0.0 if math.isinf(lower) else analysed.error
        return (lower + upper) / 2, max((upper - lower) / 2, analysed.error)
    if mu is None or guarantee.parameter not in {"mu", "rho"}:
        raise CannotInstrument(f"no closed form of {guarantee.parameter}")
    value = mu if guarantee.parameter == "mu" else mu**2 / 2
    return value, 1e-11 * value
