"""Pairs of inputs whose outputs are enumerated: all outcomes, with their probabilities."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from pytest_dp.arrays import Outputs
from pytest_dp.attacks.binning import ByOutcomes
from pytest_dp.exact.agreement import evidence_against_distribution
from pytest_dp.exact.distribution import Distribution
from pytest_dp.exact.losses import PairProbabilities, delta_of, eps_at, pair_probabilities
from pytest_dp.known import Excess, larger
from pytest_dp.limits import EQUAL
from pytest_dp.outputs.hashing import hashes
from pytest_dp.outputs.outcome import Raised
from pytest_dp.outputs.table import tabulate
from pytest_dp.privacy import Guarantee, HockeyStick
from pytest_dp.randomness.stand_ins import CannotInstrument
from pytest_dp.results.estimate import Mode


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
        return f"{count:,} outcome{'' if count == 1 else 's'}{missing}"

    def eps_at(self, delta: float) -> tuple[float, float]:
        losses = [eps_at(delta, way) for way in self.ways]
        beside, error = max(loss.extra_delta for loss in losses), max(loss.error for loss in losses)
        if beside > EQUAL or error > 100 * EQUAL:
            raise CannotInstrument(f"{beside:.2g} of the probability was not enumerated")
        return max(loss.upper for loss in losses), error + beside

    def delta_at(self, eps: float) -> tuple[float, float]:
        bounds = [delta_of(HockeyStick(eps, 0.0), way)[:2] for way in self.ways]
        lower, upper = larger(bounds)
        return max(lower, 0.0), min(max(upper, 0.0), 1.0)

    def excesses(self, guarantee: Guarantee) -> Iterator[Excess]:
        if not all(distribution.only_integers for distribution in self.distributions):
            return  # 0.3 and 0.1 + 0.2 are no leak, unless their bits are asked for
        for stick, way in itertools.product(guarantee.hockey_sticks, self.ways):
            delta, _, worst = delta_of(stick, way)
            excess = delta - stick.delta
            if excess > EQUAL * (1 + stick.delta):
                masses = float(way.p[worst].sum()), float(way.q[worst].sum())
                binning = ByOutcomes(tuple(np.sort(way.marks[worst]).tolist()))
                yield stick.eps, masses, excess, binning

    def evidence_against(self, side: int, outputs: Outputs) -> float:
        """Raises for an exception of enumerated runs alone: they may need a real generator."""
        distribution, marks = self.distributions[side], hashes(tabulate(list(outputs)))
        for outcome, mark in zip(distribution.outcomes, distribution.marks, strict=True):
            if isinstance(outcome, Raised) and mark not in marks:
                raise CannotInstrument(f"enumerated, it {outcome!r}, which no real run does")
        return evidence_against_distribution(marks, distribution)
