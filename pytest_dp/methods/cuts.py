"""The cut of a learned score from which the largest lower bound is to be expected of a test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_dp.auditors.witness import cautious
from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.privacy import Guarantee
from pytest_dp.statistics.event_test import EventTest

BEST_OF_MANY = 2.0
"""Standard errors that either probability of a cut loses, as the best of many looks better than it
is. More: wider events than the best are taken; fewer: rare ones that were lucky."""
NEARLY_SURE = 0.9
"""Probability from which the complement of an event tells more. Larger and smaller: hardly any
difference."""
MIN_IN_EVENT = 3
"""Outputs that an event has to exceed. More: rare events are left out; fewer: chance is taken for
them."""


@dataclass(frozen=True, slots=True)
class PlannedTest:
    """A test that is to be made."""

    guarantee: Guarantee
    runs: float
    """Samples that are left for it, on both inputs together."""
    alpha: float
    """Level of its bound."""

    def expect(self, p1: Floats, p2: Floats) -> Floats:
        """Return the bounds to expect of events with these probabilities."""
        p1, p2 = np.clip(p1, 1e-12, 1 - 1e-12), np.clip(p2, 1e-12, 1 - 1e-12)
        n = self.runs / 2
        found = EventTest(self.guarantee).predict(p1, n, p2, n, self.alpha)
        return np.where(np.isnan(found), -np.inf, found)


@dataclass(frozen=True, slots=True)
class Cut:
    """A threshold of a score, and the bound to expect of the outputs beyond it."""

    sign: int
    """1 if the event is likelier on D, -1 if on D'."""
    threshold: float
    """As in `Attack`."""
    p1: float
    """A cautious estimate of its probability on the likelier input."""
    p2: float
    """The same on the other one."""
    expected: float
    """The lower bound to expect, in the claim's parameter."""


def best_cut(profile1: Ints, profile2: Ints, at: Floats, plan: PlannedTest) -> Cut | None:
    """Return the cut of a score, and the direction, with the largest bound to expect.

    None if all outputs beyond the cuts are too rare.
    By the Neyman-Pearson lemma no event of the same probability tells two inputs apart better than
    a cut of the exact posterior. Wide events are taken where they prove most, and rare ones where
    their ratio is worth it. The profiles, of shape (k + 1,), say how many outputs on D, and on D',
    score between the k cuts. Where no bound is to be expected, as beside a large delta, the cut is
    taken whose probabilities differ most.
    """
    n1, n2 = int(profile1.sum()), int(profile2.sum())
    above1, above2 = (part[::-1].cumsum()[::-1][1:] for part in (profile1, profile2))
    found = []
    for sign, c1, m1, c2, m2 in (
        (1, above1, n1, above2, n2),
        (-1, n2 - above2, n2, n1 - above1, n1),
    ):
        p1, p2 = cautious(c1, m1, c2, m2, BEST_OF_MANY)
        # Of events in nearly all outputs, the complement tells more in the other direction.
        usable = (c1 > MIN_IN_EVENT) & (p1 > 0) & ~((p1 > NEARLY_SURE) & (p2 > 1 - NEARLY_SURE))
        if usable.any():
            expected = plan.expect(p1[usable], p2[usable])
            k = int(np.lexsort((p1[usable] - p2[usable], expected))[-1])
            one, two, cut = (float(part[usable][k]) for part in (p1, p2, at))
            found.append(Cut(sign, sign * cut, one, two, float(expected[k])))
    return max(found, key=lambda cut: (cut.expected, cut.p1 - cut.p2), default=None)
