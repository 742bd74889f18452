"""What bets on a record would have gained on average, and what they would with less noise.

All of this is approximate, and for information only, as in `resolution`: it decides where to look,
and when to stop looking.
"""

from __future__ import annotations

import math

import numpy as np

from pytest_dp.arrays import Floats
from pytest_dp.bisection import smallest
from pytest_dp.evidence.betting import Record
from pytest_dp.evidence.divergence_bets import CUT_OFF, allowed, log_ratios, paid
from pytest_dp.evidence.event_bets import all_contingencies, payoffs
from pytest_dp.evidence.resolution import (
    CURVE_CAUTION,
    MAX_SCALE,
    PlannedBets,
    shown_by_events,
    wealth_for,
)
from pytest_dp.privacy import Guarantee

LEARNING_FACTOR = 1.5
"""How much more has to be won by bets on divergences than by bets on events: the ratio of
probabilities in every bin has to be learned meanwhile. Larger: the reported resolution says less
than the audit can do; smaller: it is missed more often. By simulation of audits at the loss that is
reported."""
TINY = 1e-300
"""In place of 0 where something is divided by it."""
LARGEST_LOG = 300.0
"""Logarithm of a moment that is counted at most: floats hold no more than twice that."""


def edges(record: Record, guarantee: Guarantee) -> tuple[Floats, Floats, Floats]:
    """Mean and standard deviation of what each bet pays, and the pairs of outputs behind it.

    Bets on events, in one direction, and on divergences, in both.
    """
    moments: list[tuple[Floats, Floats, Floats]] = []
    counts = all_contingencies(record.joint)
    if len(counts):
        runs = counts.sum(axis=1)
        for stick in guarantee.hockey_sticks:
            pays = payoffs(*stick)
            mean = counts @ pays / runs
            moments.append((mean, counts @ pays**2 / runs - mean**2, runs))
        if guarantee.divergences:
            estimated = EstimatedDivergences(record)
            paid_so_far = [estimated.pays(*divergence) for divergence in guarantee.divergences]
            runs = np.full(len(paid_so_far), record.joint[0].sum())
            moments.append((*np.array(paid_so_far).T, runs))
    if not moments:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    means, variances, behind = (np.concatenate(part) for part in zip(*moments, strict=True))
    return means, np.sqrt(np.maximum(variances, 0) + 1 / behind), behind


class EstimatedDivergences:
    """How far apart the outputs on D and on D' are, by a record: divergences.

    `certain` is the share of the distance that is left if it is as much smaller as it may be by
    chance.
    """

    def __init__(self, record: Record) -> None:
        joint = record.joint[0]
        self.ratios: Floats = log_ratios(joint, record.increasing_scores)[0][1]
        self.i, self.j = np.nonzero(joint)
        self.weights = joint[self.i, self.j] / joint.sum()
        self.q = joint.sum(0) / joint.sum()
        self.p = joint.sum(1) / joint.sum()
        differences = self.ratios[self.i] - self.ratios[self.j]
        mean = float(self.weights @ differences)
        error = math.sqrt(float(self.weights @ (differences - mean) ** 2) / float(joint.sum()))
        self.certain = max(1 - CURVE_CAUTION * error / mean, 0.0) if mean > 0 else 0.0
        self.mean, self.runs = mean, float(joint.sum())

    def divergence(self, order: float) -> float:
        """The mean of the divergences of an order of D from D' and of D' from D, in nats."""
        if order == 1:
            return self.mean / 2
        k = order - 1
        moments = [
            float(side @ np.exp(np.minimum(k * ratio, LARGEST_LOG)))
            for side, ratio in ((self.p, self.ratios), (self.q, -self.ratios))
        ]
        return math.log(max(sum(moments) / 2, 1.0)) / k

    def pays(self, order: float, bound: float) -> tuple[float, float]:
        """Mean and variance of a bet in both directions."""
        ratios = np.clip(self.ratios, -LARGEST_LOG / order, LARGEST_LOG / order)
        (gain, cost), (back, price) = paid(ratios, order), paid(-ratios, order)
        pays = (gain + price)[self.i] + (cost + back)[self.j]
        mean = float(self.weights @ pays)
        variance = float(self.weights @ (pays - mean) ** 2)
        return mean - 2 * float(allowed(order, bound)), variance

    def scaled(self, times: float) -> tuple[Floats, Floats, Floats]:
        """Probabilities of the bins on D and on D', and their log ratio, with so much less noise.

        Both are tilted from what lies halfway between them; that is exact for Gaussian noise and
        for two outcomes. As far as is certain only.
        """
        here = self.p * np.exp(-self.ratios / 2) + self.q * np.exp(self.ratios / 2)
        middle = np.log(here, out=np.full(len(here), -np.inf), where=here > 0)
        tilt = times * math.sqrt(self.certain) * self.ratios / 2
        on_d, on_d2 = middle + tilt, middle - tilt
        total1, total2 = np.logaddexp.reduce(on_d), np.logaddexp.reduce(on_d2)
        ratios = np.where(here > 0, 2 * tilt - (total1 - total2), 0.0)
        return np.exp(on_d - total1), np.exp(on_d2 - total2), ratios

    def growth(self, order: float, bound: float, times: float) -> float:
        """About what the best bet earns with each pair of outputs, with so much less noise.

        Log ratios are cut off, as they are in bets: what is rare pays most of a large order's
        moment, and caps what can be staked.
        """
        p, q, ratios = self.scaled(times)
        limit = np.minimum(CUT_OFF[:, None] * np.abs(ratios).max(), LARGEST_LOG / 3 / order)
        cut = np.clip(ratios, -limit, limit)
        (gain, cost), (back, price) = paid(cut, order), paid(-cut, order)
        paid1 = np.stack([gain, price, gain + price])
        paid2 = np.stack([cost, back, cost + back])
        r = float(allowed(order, bound)) * np.array([1.0, 1.0, 2.0])[:, None]
        mean = paid1 @ p + paid2 @ q - r
        spread1, spread2 = _deviation(paid1, p), _deviation(paid2, q)
        variance = spread1**2 + spread2**2 + 2 * self._correlation(paid1, paid2) * spread1 * spread2
        variance = np.maximum(variance, 0.0)
        mean = mean - CURVE_CAUTION * np.sqrt(variance / self.runs)
        square = variance + mean**2
        loss = r - paid1.min(axis=-1) - paid2.min(axis=-1)
        stake = np.minimum(mean / np.maximum(square, TINY), 1 / np.maximum(loss, TINY))
        return float(np.max(np.where(mean > 0, stake * (mean - stake * square / 2), 0.0)))

    def _correlation(self, paid1: Floats, paid2: Floats) -> Floats:
        """The correlation of what is paid for the outputs of a pair, as they were drawn."""
        p, q = self.p, self.q
        product = paid1[..., self.i] * paid2[..., self.j] @ self.weights - (paid1 @ p) * (paid2 @ q)
        spread = _deviation(paid1, p) * _deviation(paid2, q)
        shared: Floats = np.clip(product / np.maximum(spread, TINY), -1.0, 1.0)
        return shared


def _deviation(values: Floats, weights: Floats) -> Floats:
    centred = values - (values @ weights)[..., None]
    deviation: Floats = np.sqrt(centred**2 @ weights)
    return deviation


def largest_shown(record: Record, guarantee: Guarantee) -> float:
    """The largest parameter that events, or divergences, may show in fact; with room for luck."""
    largest = shown_by_events(record, guarantee)
    if guarantee.divergences and record.joint:
        estimated = EstimatedDivergences(record)
        for order, _ in guarantee.divergences:
            # Outputs that are too rare to be seen yet may make up most of a moment of large order.
            seen = max(estimated.divergence(order), order * estimated.divergence(1.0))
            distance = seen * (2 - estimated.certain) ** 2
            largest = max(largest, guarantee.shown_by_divergence(order, distance))
    return largest


def smallest_divergence_scale(record: Record, bets: PlannedBets) -> float:
    """By how much noise has to be scaled down for bets on divergences to catch it (approximate).

    Above 1, with 95 % power; infinite if no scale would be caught.
    """
    if not bets.guarantee.divergences or not record.joint:
        return math.inf
    estimated, needed = EstimatedDivergences(record), LEARNING_FACTOR * wealth_for(bets.alpha)
    if not estimated.certain:
        return math.inf

    def caught(times: float) -> bool:
        return any(
            estimated.growth(order, bound, times) * bets.runs >= needed
            for order, bound in bets.guarantee.divergences
        )

    return smallest(caught, 1.0, 2.0, MAX_SCALE)
