"""Distributions of the privacy loss ln(P/Q) under P, which add up under composition.

Of each guarantee, the worst pair that it allows; rounding only makes pairs easier to tell apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.privacy.regions import LARGEST, Region

NEGLIGIBLE_TAIL = 1e-30
"""Probability of losses that are left out of sums. Larger: deltas that small are wrong; smaller:
lattices grow."""
MAX_POINTS = 4_000
"""Points of a lattice of losses. More are more exact, and take longer."""


@dataclass(frozen=True, slots=True)
class Losses:
    """A distribution under P of the privacy loss ln(P/Q), on a lattice, in nats."""

    start: float
    """The lowest loss."""
    step: float
    """From one loss to the next; 0 for a single loss."""
    probabilities: Floats
    """Under P, of each loss."""
    infinite: float = 0.0
    """The probability of outputs that only P has."""

    @classmethod
    def of_nothing(cls) -> Losses:
        """Return the losses of two equal distributions: 0 with certainty."""
        return cls(0.0, 0.0, np.ones(1))

    @classmethod
    def of_coins(cls, eps: float, times: int) -> Losses:
        """Return the losses of `times` runs of randomised response, the worst pair under eps."""
        return cls(-times * eps, 2 * eps, np.exp(logs_of_coins(eps, times)))

    @classmethod
    def of_region(cls, region: Region) -> Losses:
        """Return the losses of the pair of distributions that attains a region, on a lattice.

        Losses of a total probability below `NEGLIGIBLE_TAIL` become infinite.
        """
        corners = -np.diff(region.intercepts) / np.diff(region.slopes)
        widths = -np.diff(np.concatenate([[1.0], corners, [0.0]]))
        losses, p = np.log(region.slopes[1:]), region.slopes[1:] * widths[1:]
        infinite = float(region.intercepts[-1])
        keep = (np.cumsum(p[::-1])[::-1] > NEGLIGIBLE_TAIL) & (p > 0)
        infinite += float(np.sum(p[~keep]))
        if not keep.any():  # floats hold no ratio that is allowed: all may be lost
            return cls(0.0, 0.0, np.zeros(1), 1.0)
        losses, p = losses[keep], p[keep]
        lowest = losses[np.searchsorted(np.cumsum(p), NEGLIGIBLE_TAIL)]
        return cls._on_lattice(
            np.maximum(losses, lowest), p, float(np.ptp(losses)) / MAX_POINTS, infinite
        )

    @classmethod
    def _on_lattice(cls, losses: Floats, p: Floats, step: float, infinite: float) -> Losses:
        """Return losses on a lattice, each split between two points so that P and Q stay the same.

        Doroshenko, Ghazi, Kamath, Kumar, Manurangsi, "Connect the Dots: Tighter Discrete
        Approximations of Privacy Loss Distributions", PETS 2022.
        """
        start, step = float(np.min(losses)), max(step, 1e-12)
        below = np.floor((losses - start) / step)
        upper = np.clip(np.expm1(-(losses - start - below * step)) / np.expm1(-step), 0, 1)
        at = below.astype(int)
        size = int(at.max()) + 2
        sums = np.bincount(at, p * (1 - upper), size) + np.bincount(at + 1, p * upper, size)
        return cls(start, step, sums.astype(float), infinite)

    def with_step(self, step: float) -> Losses:
        """Return the losses on a lattice with this step; themselves if they have it."""
        if step == self.step:
            return self
        losses = self.start + self.step * np.arange(len(self.probabilities), dtype=float)
        return self._on_lattice(losses, self.probabilities, step, self.infinite)

    def plus(self, other: Losses) -> Losses:
        """Return the summed losses of two mechanisms, one after the other."""
        left, right = self, other
        step = max(left.step, right.step)
        if left.step and right.step:
            if left.step != right.step or len(left.probabilities) + len(right.probabilities) > (
                2 * MAX_POINTS
            ):
                step = sum(p.step * len(p.probabilities) for p in (left, right)) / MAX_POINTS
            left, right = left.with_step(step), right.with_step(step)
        combined = Losses.trim if left.step and right.step else Losses
        return combined(
            left.start + right.start,
            step,
            np.convolve(left.probabilities, right.probabilities),
            left.infinite + right.infinite - left.infinite * right.infinite,
        )

    @classmethod
    def trim(cls, start: float, step: float, p: Floats, infinite: float) -> Losses:
        """Return losses without the rarest: high ones become infinite, low ones the lowest kept."""
        low, high = np.searchsorted(np.cumsum(p), NEGLIGIBLE_TAIL), len(p)
        high -= int(np.searchsorted(np.cumsum(p[::-1]), NEGLIGIBLE_TAIL))
        if low >= high:
            return cls(start, step, p, infinite)
        kept = p[low:high].copy()
        kept[0] += np.sum(p[:low])
        return cls(start + step * int(low), step, kept, infinite + float(np.sum(p[high:])))

    def times(self, k: int) -> Losses:
        """Return the summed losses of `k` runs in a row, k at least 1."""
        if k == 1:
            return self
        half = self.times(k // 2)
        double = half.plus(half)
        return double.plus(self) if k % 2 else double

    def region(self) -> Region:
        """Return the region that this pair of distributions allows, in both directions."""
        size = len(self.probabilities)
        losses = self.start + self.step * np.arange(size)
        above = np.cumsum(self.probabilities[::-1])[:-1]
        share = -math.expm1(-self.step)  # from the largest loss down: sums of positive terms alone
        falling = accumulate(share * above, lambda sum_, more: (1 - share) * sum_ + more, initial=0)
        excess = np.array(list(falling))[::-1]
        delta = excess * (1 + 1e-9) + self.infinite * (1 + 1e-15)
        keep = abs(losses) < LARGEST
        return Region.below(np.exp(losses[keep]), np.minimum(delta[keep], 1.0))


def logs_of_coins(eps: float, times: int) -> Floats:
    """Return the log probabilities under P of each number of heads, shape (times + 1,)."""
    from scipy.special import gammaln

    heads = np.arange(times + 1)
    logs = gammaln(times + 1) - gammaln(heads + 1) - gammaln(times - heads + 1)
    return np.asarray(logs + heads * eps - times * np.logaddexp(0.0, eps))
