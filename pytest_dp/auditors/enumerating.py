"""What enumeration adds to an audit: events to bet on, and a loss that is exact.

Exact results only propose. A mechanism that draws where no stand-in sees it looks as if it had no
noise at all; the bets decide. What is exact is said only of mechanisms whose real runs, some
thousand, look as enumerated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from pytest_dp.arrays import Ints
from pytest_dp.attacks.binning import ByOutcomes
from pytest_dp.auditors.analysing import Traced, trace_pairs
from pytest_dp.auditors.arms import Arm
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.proposals import (
    ABOVE,
    MAX_PAIRS,
    MIN_REAL,
    REFUTED,
    Proposal,
    once_each,
    proposal,
)
from pytest_dp.exact.agreement import unlike
from pytest_dp.exact.distribution import Distribution, NotExact
from pytest_dp.exact.enumerating import enumerated
from pytest_dp.exact.losses import both, delta_of, eps_at
from pytest_dp.outputs.hashing import hashes
from pytest_dp.outputs.outcome import Raised
from pytest_dp.privacy import Guarantee
from pytest_dp.results.estimate import Estimate
from pytest_dp.sampling.deadline import Deadline

TIME_SHARE = 0.05
"""Share of max_seconds that enumeration may take."""
MIN_EXCESS = 1e-9
"""By what the worst event exceeds the claim where it is worth a bet: less is rounding."""
MAX_BESIDE, MAX_ERROR = 1e-9, 1e-7
"""Probability that may be missing, and error, where a loss is called exact."""
OTHER_OUTPUTS = "real runs give other outputs than enumerated ones"
TOO_FEW = "too few real runs to check it"


@dataclass(frozen=True, slots=True)
class Enumerated:
    """The distributions on the claim's first pairs of inputs.

    Attributes
    ----------
    known : dict
        Those on D and on D', by the number of the pair.
    refusal : str
        Why there are no more; empty if there could be.
    traced : Traced
        What is known otherwise, where nothing was enumerated.
    """

    known: Mapping[int, tuple[Distribution, Distribution]] = field(default_factory=dict)
    refusal: str = ""
    traced: Traced = field(default_factory=Traced)

    def proposal(
        self, number: int, guarantee: Guarantee, alpha: float, most: float
    ) -> Proposal | None:
        """What breaks the claim on a pair of inputs, if that shows in `most` pairs of outputs."""
        if number not in self.known:
            return self.traced.proposal(number, guarantee, alpha, most)
        if not all(distribution.whole for distribution in self.known[number]):
            return None  # 0.3 and 0.1 + 0.2 are no leak, unless their bits are asked for
        pair = both(*self.known[number])
        best: Proposal | None = None
        for stick in guarantee.hockey_sticks:
            for way in (pair, pair.turned):
                excess, _, worst = delta_of(stick, way)
                excess -= stick.delta
                if excess <= MIN_EXCESS * (1 + stick.delta):
                    continue
                masses = float(way.p[worst].sum()), float(way.q[worst].sum())
                binning = ByOutcomes(tuple(np.sort(way.marks[worst]).tolist()))
                offered = proposal(masses, excess, stick.eps, alpha, binning)
                if offered.needed <= most and (best is None or offered.edge > best.edge):
                    best = offered
        return best


NOTHING = Enumerated()


def enumerate_pairs(context: Context) -> Enumerated:
    """Enumerate the claim's first pairs of inputs, until something cannot be, or time is up."""
    deadline = Deadline(TIME_SHARE * context.settings.max_seconds)
    if (context.sampler.seconds_a_run or 0.0) > deadline.remaining() / 2:
        return Enumerated(refusal="runs take too long")
    of = once_each(lambda data: enumerated(context.call, data, deadline))
    known: dict[int, tuple[Distribution, Distribution]] = {}
    for number, pair in enumerate(context.pairs[:MAX_PAIRS]):
        try:
            known[number] = of(pair.d1), of(pair.d2)
        except NotExact as reason:
            traced = Traced() if known else trace_pairs(context)
            return Enumerated(known, str(reason), traced)
        except Exception as error:  # the mechanism's, on the way: what proposes breaks no audit
            return Enumerated(known, f"{type(error).__name__}: {error}")
    return Enumerated(known)


def estimate(
    context: Context, found: Enumerated, arms: Iterable[Arm], violated: bool
) -> tuple[Estimate | None, str]:
    """The exact loss on the claim's pairs, and else why there is none.

    Parameters
    ----------
    context : Context
    found : Enumerated
    arms : iterable of Arm
        With the outputs of real runs.
    violated : bool
        Whether the claim was refuted. Where it was not, no larger loss is called exact: what is so
        rare that no run shows it is not checked by any.
    """
    guarantee = context.guarantee
    if not found.known:
        return None, found.refusal
    if guarantee.parameter != "eps":
        return None, f"a claim of {guarantee.parameter}"
    losses, outcomes = [], 0
    for arm in arms:
        if arm.number not in found.known:
            continue
        known = found.known[arm.number]
        reason = _unlike(arm, known)
        if reason == TOO_FEW:
            continue
        if reason:
            return None, reason
        pair = both(*known)
        losses += [eps_at(guarantee.delta, way) for way in (pair, pair.turned)]
        outcomes = max(outcomes, len(pair.marks))
    if not losses:
        return None, TOO_FEW
    value = max(loss.upper for loss in losses)
    beside, error = max(loss.beside for loss in losses), max(loss.error for loss in losses)
    if beside > MAX_BESIDE or error > MAX_ERROR:
        return None, f"{beside:.2g} of the probability was not enumerated"
    if value > guarantee.claimed * ABOVE and not violated:
        return None, "a loss above the claim that the bets do not confirm"
    told = f"{outcomes:,} outcome{'' if outcomes == 1 else 's'}{_left_out(found)}"
    number = len(losses) // 2
    return Estimate(float(value), error + beside, "exact", pairs=number, basis=told), ""


def _left_out(found: Enumerated) -> str:
    """What is missing of the outcomes, if anything is."""
    most = max(max(one.residual, other.residual) for one, other in found.known.values())
    return f", all but a probability of {most:.0e}" if most else ""


def _unlike(arm: Arm, known: tuple[Distribution, Distribution]) -> str:
    """Why real outputs do not bear out distributions; empty if they do."""
    if arm.kept.pairs < MIN_REAL:
        return TOO_FEW
    table, on_d = arm.kept.table()
    marks = hashes(table)
    for side, distribution in zip((on_d, ~on_d), known, strict=True):
        raised = _raised_alone(marks, distribution)
        if raised or unlike(marks[side], distribution) >= REFUTED:
            return raised or OTHER_OUTPUTS
    return ""


def _raised_alone(marks: Ints, distribution: Distribution) -> str:
    """What only enumerated runs raise, however seldom: it may be for want of a real generator."""
    for outcome, mark in zip(distribution.outcomes, distribution.marks, strict=True):
        if isinstance(outcome, Raised) and mark not in marks:
            return f"enumerated, it {outcome!r}, which no real run does"
    return ""
