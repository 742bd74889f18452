"""Pairs of inputs whose outputs are known in closed form, by the laws of the draws in them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pytest_dp.arrays import Outputs
from pytest_dp.known import Excess, differ_by_rounding, larger
from pytest_dp.known.agreement import evidence_against
from pytest_dp.known.comparing import Case, compared, largest_of
from pytest_dp.known.experiments import Largest, Table
from pytest_dp.known.finite import Finite
from pytest_dp.known.outcomes import Outcome, outcomes_of
from pytest_dp.known.profiles import Profile, eps_at, gaussian, profile
from pytest_dp.limits import EQUAL, NEARLY_EQUAL, STEPS, THOUSAND
from pytest_dp.privacy import Guarantee
from pytest_dp.randomness.stand_ins import CannotInstrument
from pytest_dp.results.outcome import Mode
from pytest_dp.sampling.deadline import Deadline

__all__ = ["PairInClosedForm", "checked", "compare", "outcomes_of"]


@dataclass(frozen=True)
class PairInClosedForm:
    """By the outcomes of traced runs on D and on D', compared case by case."""

    outcomes: tuple[list[Outcome], list[Outcome]]
    cases: list[Case]
    largest: Largest

    @property
    def mode(self) -> Mode:
        return "numerical" if math.isinf(self.largest.error) else "analytic"

    @property
    def basis(self) -> str:
        tables = [e for case in self.cases for e in case.experiments if isinstance(e, Table)]
        return "all but a probability of 1e-15" if any(t.left_out for t in tables) else ""

    @property
    def value(self) -> float:
        """The largest loss in nats."""
        return max(self.largest.forward, self.largest.backward)

    @cached_property
    def mu(self) -> float | None:
        return gaussian(self.cases)

    @cached_property
    def by_rounding(self) -> bool:
        values: dict[tuple[Hashable, int], list[float]] = {}
        for outcome in (*self.outcomes[0], *self.outcomes[1]):
            for at, leaf in enumerate(outcome.leaves):
                found = leaf.values if isinstance(leaf, Finite) else [leaf]
                numbers = [
                    float(value) for value in found if isinstance(value, float | np.floating)
                ]
                values.setdefault((outcome.structure, at), []).extend(numbers)
        return any(differ_by_rounding(np.array(numbers)) for numbers in values.values())

    @property
    def checked(self) -> int:
        return checked(self.outcomes[0])

    @cached_property
    def profiles(self) -> tuple[Profile, Profile]:
        """In both directions."""
        return profile(self.cases, forward=True), profile(self.cases, forward=False)

    def eps_at(self, delta: float) -> tuple[float, float]:
        error = self.largest.error
        if not delta:
            return self.value, error
        lower, upper = eps_at(delta, self.profiles)
        if lower < math.inf == upper:
            raise CannotInstrument("what is too rare to integrate may lose anything")
        if lower == upper:
            return lower, 0.0 if math.isinf(lower) else error
        return (lower + upper) / 2, max((upper - lower) / 2, error)

    def delta_at(self, eps: float) -> tuple[float, float]:
        lower, upper = larger([direction.delta(eps) for direction in self.profiles])
        return lower, 1.0 if self.mode == "numerical" else upper

    def excesses(self, guarantee: Guarantee) -> Iterator[Excess]:
        for stick in guarantee.hockey_sticks:
            if self.value <= stick.eps * (1 + EQUAL):
                continue
            for direction in self.profiles:
                excess = direction.delta(stick.eps)[0] - stick.delta
                if excess > NEARLY_EQUAL * (1 + stick.delta):
                    yield stick.eps, direction.masses(stick.eps), excess, None

    def evidence_against(self, side: int, outputs: Outputs) -> float:
        return evidence_against(self.outcomes[side], list(outputs))

    def has_few_outputs(self) -> bool:
        """Whether there are few outputs, all of which have a probability."""
        for case in self.cases:
            tables = [table for table in case.experiments if isinstance(table, Table)]
            if len(tables) < len(case.experiments):
                return False
            if math.prod(len(table.p) for table in tables) > THOUSAND:
                return False
        return True


def compare(
    on_d: list[Outcome], on_d2: list[Outcome], deadline: Deadline | None = None
) -> PairInClosedForm:
    """What follows from the outcomes on D and on D'."""
    cases = compared(on_d, on_d2)
    return PairInClosedForm((on_d, on_d2), cases, largest_of(cases, deadline))


def checked(outcomes: Sequence[Outcome]) -> int:
    """How many real outputs can be compared with those that were traced."""
    leaves = max(len(outcome.leaves) for outcome in outcomes)
    return min(4 * THOUSAND, (5 * STEPS) // max(leaves, 1))
