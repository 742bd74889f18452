"""What bets on a record would have gained on average, and what they would with less noise.

All of this is approximate, and for information only, as in `resolution`: it decides where to look,
and when to stop looking.
"""

from __future__ import annotations

import math

import numpy as np

from pytest_dp.arrays import Floats
from pytest_dp.evidence._search import smallest
from pytest_dp.evidence.betting import Record
from pytest_dp.evidence.divergence_bets import allowed, log_ratios, paid
from pytest_dp.evidence.event_bets import all_contingencies, payoffs
from pytest_dp.evidence.resolution import (
    CURVE_CAUTION,
    MAX_SCALE,
    PlannedBets,
    largest_shown,
    wealth_for,
)
from pytest_dp.privacy import Guarantee

LEARNING_FACTOR = 1.5
"""How much more has to be won by bets on divergences: the ratio of probabilities in every bin has
to be learned meanwhile. By simulation of audits at the loss that is reported."""
LARGEST_LOG = 300.0
"""Logarithm of a moment that is counted at most: floats hold no more than twice that."""


def edges(record: Record, guarantee: Guarantee) -> tuple[Floats, Floats, Floats]:
    """Mean and standard deviation of what each bet pays, and the pairs of outputs behind it.

    Bets on events, in one direction, and on divergences, in both.
    """
    found: list[tuple[Floats, Floats, Floats]] = []
    counts = all_contingencies(record.joint)
    if len(counts):
        runs = counts.sum(axis=1)
        for stick in guarantee.hockey_sticks:
            pays = payoffs(*stick)
            mean = counts @ pays / runs
            found.append((mean, counts @ pays**2 / runs - mean**2, runs))
        if guarantee.divergences:
            apart = Apart(record)
            paid_so_far = [apart.pays(*divergence)[:2] for divergence in guarantee.divergences]
            runs = np.full(len(paid_so_far), record.joint[0].sum())
            found.append((*np.array(paid_so_far).T, runs))
    if not found:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    means, variances, behind = (np.concatenate(part) for part in zip(*found, strict=True))
    return means, np.sqrt(np.maximum(variances, 0) + 1 / behind), behind


class Apart:
    """How far apart the outputs on D and on D' are, by a record: divergences.

    Attributes
    ----------
    certain : float
        Share of the distance that is left if it is as much smaller as it may be by chance.
    """

    def __init__(self, record: Record) -> None:
        joint = record.joint[0]
        self.ratios: Floats = log_ratios(joint, record.increasing_scores)[0][1]
        self.i, self.j = np.nonzero(joint)
        self.weights = joint[self.i, self.j] / joint.sum()
        self.q = joint.sum(0) / joint.sum()
        self.p = joint.sum(1) / joint.sum()
        told = self.ratios[self.i] - self.ratios[self.j]
        mean = float(self.weights @ told)
        error = math.sqrt(float(self.weights @ (told - mean) ** 2) / float(joint.sum()))
        self.certain = max(1 - CURVE_CAUTION * error / mean, 0.0) if mean > 0 else 0.0
        self.mean = mean

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

    def pays(self, order: float, bound: float, times: float = 1.0) -> tuple[float, float, float]:
        """Mean, variance and largest loss of a bet in both directions, with so much less noise.

        Divergences grow with the square of the distance, as those of Gaussian noise do.
        """
        ratios = np.clip(times * self.ratios, -LARGEST_LOG / order, LARGEST_LOG / order)
        (gain, cost), (back, price) = paid(ratios, order), paid(-ratios, order)
        on_d, on_d2 = gain + price, cost + back
        pays = on_d[self.i] + on_d2[self.j]
        mean = float(self.weights @ pays)
        variance = float(self.weights @ (pays - mean) ** 2)
        if times > 1:
            distance = self.certain * times**2 * self.divergence(order)
            mean = 2 * float(allowed(order, min(distance, LARGEST_LOG / order)))
        r = 2 * float(allowed(order, bound))
        return mean - r, variance, r - float(on_d.min() + on_d2.min())


def most_shown(record: Record, guarantee: Guarantee) -> float:
    """The largest parameter that events, or divergences, may show in fact; with room for luck."""
    most = largest_shown(record, guarantee)
    if guarantee.divergences and record.joint:
        apart = Apart(record)
        for order, _ in guarantee.divergences:
            distance = apart.divergence(order) * (2 - apart.certain) ** 2
            most = max(most, guarantee.shown_by_divergence(order, distance))
    return most


def smallest_divergence_scale(record: Record, bets: PlannedBets) -> float:
    """By how much noise has to be scaled down for bets on divergences to catch it (approximate).

    Returns
    -------
    float
        Above 1, with 95 % power; infinite if no scale would be caught.
    """
    if not bets.guarantee.divergences or not record.joint:
        return math.inf
    apart, needed = Apart(record), LEARNING_FACTOR * wealth_for(bets.alpha)
    if not apart.certain:
        return math.inf

    def caught(times: float) -> bool:
        for order, bound in bets.guarantee.divergences:
            mean, variance, loss = apart.pays(order, bound, times)
            stake = min(mean / (variance + mean**2), 1 / loss)
            if mean > 0 and stake * (mean - stake * (variance + mean**2) / 2) * bets.runs >= needed:
                return True
        return False

    return smallest(caught, 1.0, 2.0, MAX_SCALE)
