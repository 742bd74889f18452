"""Enumeration in an audit: events to bet on, and a loss that is exact.

Exact results only propose. A mechanism that draws where no stand-in sees it looks as if it had no
noise at all; the bets decide. A loss is called exact only of mechanisms whose real runs, some
thousand, look as enumerated.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pytest_dp.arrays import Ints
from pytest_dp.attacks.binning import ByOutcomes
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
from pytest_dp.exact.agreement import evidence_against_distribution
from pytest_dp.exact.distribution import Distribution, NotExact
from pytest_dp.exact.enumerating import TOO_SLOW, enumerated
from pytest_dp.exact.losses import delta_of, eps_at, pair_probabilities
from pytest_dp.outputs.hashing import hashes
from pytest_dp.outputs.outcome import Raised
from pytest_dp.privacy import Guarantee
from pytest_dp.results.estimate import Estimate
from pytest_dp.sampling.deadline import Deadline

if TYPE_CHECKING:
    from pytest_dp.auditors.closed_forms import ClosedForms

TIME_SHARE = 0.05
"""Share of max_seconds that enumeration may take: what it takes is lost to the bets where it finds
nothing. Chosen by hand."""
MIN_EXCESS = 1e-9
"""By what the worst event exceeds the claim where it is worth a bet: less is rounding."""
MAX_BESIDE, MAX_ERROR = 1e-9, 1e-7
"""Probability that may be missing, and error, where a loss is called exact: both are far below the
six decimals that are shown."""
OTHER_OUTPUTS = "real runs give other outputs than enumerated ones"
TOO_FEW = "too few real runs to check it"


@dataclass(frozen=True, slots=True)
class Enumeration:
    """The distributions on the claim's first pairs of inputs.

    Attributes
    ----------
    known : dict
        Those on D and on D', by the number of the pair.
    refusal : str
        Why there are no more; empty if there could be.
    closed_forms : ClosedForms or None
        What is known otherwise, where nothing was enumerated.
    """

    known: Mapping[int, tuple[Distribution, Distribution]] = field(default_factory=dict)
    refusal: str = ""
    closed_forms: ClosedForms | None = None

    def proposal(
        self, number: int, guarantee: Guarantee, alpha: float, max_pairs: float
    ) -> Proposal | None:
        """What breaks the claim on a pair of inputs, if so many pairs of outputs show it."""
        if number in self.known:
            return best_within(max_pairs, self._proposals(number, guarantee, alpha))
        if self.closed_forms is not None:
            return self.closed_forms.proposal(number, guarantee, alpha, max_pairs)
        return None

    def analytic_estimate(
        self, context: Context, pool: Pool, arms: Sequence[Arm], violated: bool
    ) -> Estimate | None:
        """The loss on the claim's pairs in closed form; None if it is not known."""
        if self.closed_forms is None:
            return None
        return self.closed_forms.estimate(context, pool, arms, violated)

    def _proposals(self, number: int, guarantee: Guarantee, alpha: float) -> Iterator[Proposal]:
        if not all(distribution.only_integers for distribution in self.known[number]):
            return  # 0.3 and 0.1 + 0.2 are no leak, unless their bits are asked for
        pair = pair_probabilities(*self.known[number])
        for stick, way in itertools.product(guarantee.hockey_sticks, (pair, pair.swapped)):
            delta, _, worst = delta_of(stick, way)
            excess = delta - stick.delta
            if excess > MIN_EXCESS * (1 + stick.delta):
                masses = float(way.p[worst].sum()), float(way.q[worst].sum())
                binning = ByOutcomes(tuple(np.sort(way.marks[worst]).tolist()))
                yield proposal(masses, excess, stick.eps, alpha, binning)


def enumerate_pairs(context: Context) -> Enumeration:
    """Enumerate the claim's first pairs of inputs, until something cannot be, or time is up."""
    deadline = Deadline(TIME_SHARE * context.settings.max_seconds)
    if (context.sampler.seconds_a_run or 0.0) > deadline.remaining() / 2:
        return Enumeration(refusal=TOO_SLOW)
    known, reason = known_pairs(
        context.pairs,
        lambda data: enumerated(context.call, data, deadline),
        lambda on_d, on_d2: (on_d, on_d2),
    )
    if reason is None:
        return Enumeration(known)
    if not isinstance(reason, NotExact):  # the mechanism's own error
        return Enumeration(known, f"{type(reason).__name__}: {reason}")
    if known:
        return Enumeration(known, str(reason))
    from pytest_dp.auditors.closed_forms import trace_pairs  # loaded where it is of use

    return Enumeration(known, str(reason), trace_pairs(context))


def estimate(
    context: Context, enumeration: Enumeration, arms: Iterable[Arm], violated: bool
) -> tuple[Estimate | None, str]:
    """The exact loss on the claim's pairs, and else why there is none.

    Parameters
    ----------
    context : Context
    enumeration : Enumeration
    arms : iterable of Arm
        With the outputs of real runs.
    violated : bool
        Whether the claim was refuted. Where it was not, no larger loss is called exact: what is so
        rare that no run shows it is not checked by any.
    """
    guarantee = context.guarantee
    if not enumeration.known:
        return None, enumeration.refusal
    if guarantee.parameter != "eps":
        return None, f"a claim of {guarantee.parameter}"
    losses, outcomes = [], 0
    for arm in arms:
        if arm.number not in enumeration.known:
            continue
        distributions = enumeration.known[arm.number]
        reason = _disagreement(arm, distributions)
        if reason == TOO_FEW:
            continue
        if reason:
            return None, reason
        pair = pair_probabilities(*distributions)
        losses += [eps_at(guarantee.delta, way) for way in (pair, pair.swapped)]
        outcomes = max(outcomes, len(pair.marks))
    if not losses:
        return None, TOO_FEW
    value = max(loss.upper for loss in losses)
    beside, error = max(loss.extra_delta for loss in losses), max(loss.error for loss in losses)
    if beside > MAX_BESIDE or error > MAX_ERROR:
        return None, f"{beside:.2g} of the probability was not enumerated"
    if value > guarantee.claimed * ABOVE and not violated:
        return None, "a loss above the claim that the bets do not confirm"
    basis = f"{outcomes:,} outcome{'' if outcomes == 1 else 's'}{_missing_outcomes(enumeration)}"
    pairs = len(losses) // 2
    return Estimate(float(value), error + beside, "exact", pairs=pairs, basis=basis), ""


def _missing_outcomes(enumeration: Enumeration) -> str:
    """What is missing of the outcomes, if anything is."""
    residual = max(law.residual for laws in enumeration.known.values() for law in laws)
    return f", all but a probability of {residual:.0e}" if residual else ""


def _disagreement(arm: Arm, distributions: tuple[Distribution, Distribution]) -> str:
    """Why real outputs do not bear out distributions; empty if they do."""
    if arm.outputs.pairs < MIN_REAL:
        return TOO_FEW
    table, on_d = arm.outputs.table()
    marks = hashes(table)
    for side, distribution in zip((on_d, ~on_d), distributions, strict=True):
        raised = _raised_only_enumerated(marks, distribution)
        if raised or evidence_against_distribution(marks[side], distribution) >= REFUTED:
            return raised or OTHER_OUTPUTS
    return ""


def _raised_only_enumerated(marks: Ints, distribution: Distribution) -> str:
    """An exception of enumerated runs alone, however rare: they may need a real generator."""
    for outcome, mark in zip(distribution.outcomes, distribution.marks, strict=True):
        if isinstance(outcome, Raised) and mark not in marks:
            return f"enumerated, it {outcome!r}, which no real run does"
    return ""
