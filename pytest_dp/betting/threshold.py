"""From a posterior to an attack: the outputs that point to one input strongly enough.

By the Neyman-Pearson lemma no event of the same probability tells two inputs apart better than a
threshold on the exact posterior. The threshold is the one with the largest lower bound to expect of
the samples that are left, so that wide events are used where they prove most, and rare ones where
their ratio is worth it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.betting.expected_bounds import (
    Choice,
    Hints,
    PlannedTest,
    Searched,
    best_of,
    expected_bounds,
)
from pytest_dp.statistics.regression import expit, logistic


@dataclass(frozen=True, slots=True)
class Cuts:
    """Thresholds worth a look."""

    learned: int
    """Outputs on either input from which the model was learned."""
    at: Floats
    """In increasing order, shape (k,); no score lies on any of them."""
    levels: Floats
    """A typical score between each of them and the next, shape (k + 1,)."""


def cuts_at(at: Floats, learned: int) -> Cuts:
    """Thresholds where a score is cut, of which there is one at least; `learned` as in `Cuts`."""
    gaps = np.diff(at, prepend=at[0] - 0.1, append=at[-1] + 0.1)
    levels = np.append(at, at[-1]) + np.append(-gaps[:-1], gaps[-1]) / 2
    return Cuts(learned, at, levels)


def best_cut(profile1: Ints, profile2: Ints, cuts: Cuts, plan: PlannedTest) -> Choice | None:
    """The threshold, and the direction, with the largest expected bound; None if there is no cut.

    The profiles, of shape (k + 1,), say how many held-out outputs on D, and on D', score between
    the cuts.
    """
    if not len(cuts.at):
        return None
    total1, total2 = int(profile1.sum()), int(profile2.sum())
    smooth1 = _smoothed(profile1, profile2, cuts.levels)
    smooth2 = profile1 + profile2 - smooth1
    above = [_above(part) for part in (profile1, profile2, smooth1, smooth2)]
    below = [
        part.sum() - over
        for part, over in zip((profile1, profile2, smooth1, smooth2), above, strict=True)
    ]
    learned = 0.25 * (total1 + total2) / 2 / max(cuts.learned, 1)
    modelled = _log_ratio(above[2], above[3]), _log_ratio(below[3], below[2])
    hints = [Hints(losses, learned) for losses in modelled]
    up = Searched(above[0], total1, above[1], total2)
    down = Searched(below[1], total2, below[0], total1)
    bounds = expected_bounds(up, plan, hints[0]), expected_bounds(down, plan, hints[1])
    return best_of(*bounds, cuts.at)


def _log_ratio(p1: Floats, p2: Floats) -> Floats:
    ratio: Floats = np.log(np.maximum(p1, 1e-9) / np.maximum(p2, 1e-9))
    return ratio


def _above(part: Ints | Floats) -> Floats:
    """Sums over all that lies above each cut."""
    total: Floats = np.cumsum(part[::-1].astype(np.float64))[::-1][1:]
    return total


def _smoothed(profile1: Ints, profile2: Ints, levels: Floats) -> Floats:
    """How many outputs of each interval the model says are on D, calibrated on all intervals.

    Calibration is a logistic regression of the side on the score (Platt), and on its hyperbolic
    tangent, as losses of most mechanisms level off where scores need not.
    """
    both = (profile1 + profile2).astype(np.float64)
    score = np.clip(levels, -30, 30)
    spread = math.sqrt(float(both @ score**2 / both.sum())) + 1e-9
    basis = np.stack([score, spread * np.tanh(score / spread), np.ones_like(score)])
    # A prior of about one output keeps separable scores from running away.
    prior = np.array([1.0, 0.0, 0.0]), np.ones(3)
    weights = logistic(basis, profile1, both, prior, 25, 1e-6)
    share: Floats = np.clip(expit(weights @ basis), 1e-9, 1 - 1e-9)
    return both * share
