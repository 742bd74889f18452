"""Pairs of inputs whose outputs are enumerated: all outcomes, with their probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints, Outputs
from pytest_dp.basics.reprs import plural
from pytest_dp.oracles.branching import Weight
from pytest_dp.outputs.leaves import opaque_types
from pytest_dp.outputs.raised import Raised
from pytest_dp.outputs.table import hashes, tabulate
from pytest_dp.privacy import HockeyStick
from pytest_dp.privacy.regions import LARGEST
from pytest_dp.results.outcome import Mode
from pytest_dp.running.generator_stand_ins import CannotInstrument
from pytest_dp.statistics.count_tests import log_e_value

ROUNDING = 1e-9
"""Relative error after a few operations. Larger: bounds are less exact; smaller: rounding makes a
difference."""
FLOAT_ERROR = 2.0**-50
"""Relative error of one operation or two. Smaller: rounding may make a bound too small."""

NO_EQUALITY = "output without value equality"

CLEARLY_GROWS = 1.05
"""Derived: between outcomes of these probabilities, the loss of rounded Gaussian noise grows by a
quarter; that of exponential tails is known to a part in ten thousand."""


@dataclass(frozen=True)
class Distribution:
    """Outputs, no two of them equal, and what is known of their probabilities."""

    outcomes: tuple[Any, ...]
    """One of each set of equal outputs."""
    marks: Ints
    """Their hashes (`pytest_dp.outputs.table`), which are those of equal outputs."""
    weights: tuple[Weight, ...]
    """Lower bounds on their probabilities."""
    residual: float
    """The probability of outputs that were not enumerated."""
    rounding: float
    """Relative error of any of the weights; 0 where all are fractions."""

    @cached_property
    def probabilities(self) -> Floats:
        """The weights as floats."""
        return np.array([float(weight) for weight in self.weights])


def group_outputs(
    outputs: Sequence[Any], weights: Sequence[Weight], residual: Weight, rounding: float
) -> Distribution:
    """Return the distribution of the outputs of paths, of which some may be equal.

    Raises CannotInstrument if outputs cannot be compared by value.
    """
    table = tabulate(list(outputs))
    if opaque_types(table.levels):
        raise CannotInstrument(NO_EQUALITY)
    marks = hashes(table)
    total: dict[int, Weight] = {}
    outcomes: dict[int, Any] = {}
    for mark, output, weight in zip(marks.tolist(), outputs, weights, strict=True):
        total[mark] = total.get(mark, 0) + weight
        outcomes.setdefault(mark, output)
    return Distribution(
        tuple(outcomes.values()),
        np.array(list(outcomes), np.int64),
        tuple(total.values()),
        float(residual),
        rounding,
    )


@dataclass(frozen=True, slots=True)
class PairProbabilities:
    """Probabilities of the same outcomes on two inputs."""

    marks: Ints
    """Of each outcome."""
    p: Floats
    """Lower bounds on its probability on D."""
    q: Floats
    """The same on D'."""
    residuals: tuple[float, float]
    """The probability on D and on D' that was not enumerated, which any outcomes may have."""
    rounding: float
    """Relative error of the probabilities."""

    @property
    def swapped(self) -> PairProbabilities:
        """The other direction: D' in the place of D."""
        return PairProbabilities(self.marks, self.q, self.p, self.residuals[::-1], self.rounding)


def pair_probabilities(on_d: Distribution, on_d2: Distribution) -> PairProbabilities:
    """Return the probabilities of all outcomes of two distributions, by their hashes."""
    marks = np.union1d(on_d.marks, on_d2.marks)
    p, q = np.zeros(len(marks)), np.zeros(len(marks))
    p[np.searchsorted(marks, on_d.marks)] = on_d.probabilities
    q[np.searchsorted(marks, on_d2.marks)] = on_d2.probabilities
    rounding = max(on_d.rounding, on_d2.rounding) + FLOAT_ERROR
    return PairProbabilities(marks, p, q, (on_d.residual, on_d2.residual), rounding)


@dataclass(frozen=True, slots=True)
class Loss:
    """Bounds on eps in one direction of a pair."""

    lower: float
    upper: float
    """With a delta that is larger by `extra_delta`."""
    extra_delta: float
    """By outputs that were not enumerated; 0 where all were."""
    error: float
    """Of `upper`, by rounding."""


def delta_of(stick: HockeyStick, pair: PairProbabilities) -> tuple[float, float]:
    """Return bounds on how much P exceeds ``exp(eps) Q`` on the worst set of outcomes."""
    factor = math.exp(stick.eps)
    worst = pair.p > factor * pair.q
    p, q = math.fsum(pair.p[worst]), math.fsum(pair.q[worst])
    on_d, on_d2 = pair.residuals
    slack = pair.rounding * (p + factor * q)
    return p - factor * (q + on_d2) - slack, p - factor * q + on_d + slack


def eps_at(delta: float, pair: PairProbabilities) -> Loss:
    """Return the smallest eps for which P exceeds ``exp(eps) Q`` by at most `delta`, in nats.

    Source: the hockey-stick divergence is piecewise linear in exp(eps), with a corner at each ratio
    of probabilities.
    """
    on_d, on_d2 = pair.residuals
    shrink = 1 - pair.rounding
    lower = _eps(delta, pair.p * shrink, pair.q / shrink, on_d2)
    extra_delta = on_d + math.exp(min(lower, LARGEST)) * on_d2
    upper = _eps(delta + extra_delta, pair.p, pair.q, 0.0)
    return Loss(lower, max(upper, lower), extra_delta, 2 * pair.rounding)


def _eps(delta: float, p: Floats, q: Floats, residual: float) -> float:
    """Return the logarithm of the largest (P(S) - delta) / (Q(S) + residual) of a set S."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(p > 0, p / q, 0.0)
    order = np.argsort(-ratio, kind="stable")
    numerator, denominator = np.cumsum(p[order]) - delta, np.cumsum(q[order]) + residual
    if not len(p) or not (numerator > 0).any():
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.where(numerator > 0, numerator / denominator, 0.0)
    largest = float(quotient.max())
    return max(math.log(largest), 0.0) if largest > 0 else 0.0


def evidence_against_distribution(marks: Ints, distribution: Distribution) -> float:
    """Return the log e-value against the hypothesis that hashes are from a distribution."""
    order = np.argsort(distribution.marks)
    of_outcomes = distribution.marks[order]
    at = np.minimum(np.searchsorted(of_outcomes, marks), len(of_outcomes) - 1)
    inside = of_outcomes[at] == marks
    counts = np.bincount(order[at[inside]], minlength=len(order))
    outside = int((~inside).sum())
    return log_e_value(counts, distribution.probabilities, outside, distribution.residual)


@dataclass(frozen=True)
class EnumeratedPair:
    """By the distributions on D and on D'."""

    distributions: tuple[Distribution, Distribution]
    mode: ClassVar[Mode] = "exact"
    mu: ClassVar[None] = None
    checked: ClassVar[int] = 20_000

    @cached_property
    def ways(self) -> tuple[PairProbabilities, PairProbabilities]:
        """In both directions."""
        pair = pair_probabilities(*self.distributions)
        return pair, pair.swapped

    @property
    def residual(self) -> float:
        """The probability of outcomes that are not known."""
        return max(distribution.residual for distribution in self.distributions)

    @property
    def basis(self) -> str:
        count, residual = len(self.ways[0].marks), self.residual
        missing = f", all but a probability of {residual:.0e}" if residual else ""
        return f"{plural(count, 'outcome')}{missing}"

    @cached_property
    def by_rounding(self) -> bool:
        outcomes = [o for distribution in self.distributions for o in distribution.outcomes]
        return any(map(differ_by_rounding, tabulate(outcomes).numbers.T))

    def eps_at(self, delta: float) -> tuple[float, float]:
        if (
            not delta
            and self.residual
            and any(_grows_in_the_tail(way, self.residual) for way in self.ways)
        ):
            raise CannotInstrument("outcomes in the tails lose more than likelier ones")
        losses = [eps_at(delta, way) for way in self.ways]
        beside, error = max(loss.extra_delta for loss in losses), max(loss.error for loss in losses)
        if beside > ROUNDING or error > 100 * ROUNDING:
            raise CannotInstrument(f"{beside:.2g} of the probability was not enumerated")
        return max(loss.upper for loss in losses), error + beside

    def delta_at(self, eps: float) -> tuple[float, float]:
        bounds = [delta_of(HockeyStick(eps, 0.0), way) for way in self.ways]
        lower, upper = map(max, zip(*bounds, strict=True))
        return max(lower, 0.0), min(max(upper, 0.0), 1.0)

    def evidence_against(self, side: int, outputs: Outputs) -> float:
        """Return the evidence that outputs are not from the distribution of one side.

        Raise CannotInstrument if an enumerated exception never came: the mechanism may need a real
        generator.
        """
        distribution, marks = self.distributions[side], hashes(tabulate(list(outputs)))
        for outcome, mark in zip(distribution.outcomes, distribution.marks, strict=True):
            if isinstance(outcome, Raised) and mark not in marks:
                raise CannotInstrument(f"enumerated, it {outcome!r}, which no real run does")
        return evidence_against_distribution(marks, distribution)


def _grows_in_the_tail(way: PairProbabilities, residual: float) -> bool:
    """Return whether rare outcomes lose more: then what was left out may lose anything.

    Of those that are so rare that the rest would matter, no loss is known.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.abs(np.log(way.p) - np.log(way.q))
    often = np.maximum(way.p, way.q) / residual
    rare, likely = (np.nanmax(loss[often > least], initial=0.0) for least in (1e4, 1e7))
    return bool(rare > CLEARLY_GROWS * likely)


def differ_by_rounding(numbers: Floats) -> bool:
    """Return whether any two of the numbers are equal but for errors of floating point."""
    ordered = np.unique(numbers[np.isfinite(numbers)])
    if not len(ordered) or (ordered % 1 == 0).all():
        return False
    return bool((np.diff(ordered) <= ROUNDING * np.abs(ordered).max()).any())
