"""The lower bound on an event's loss that is to be expected of a test, before it is made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.special import ndtri

from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.privacy import Guarantee
from pytest_dp.statistics.event_test import EventTest

BEST_OF_MANY = 2.0
"""Standard errors that either probability of a cut loses, as the best of many looks better than it
is. More: wider events than the best are taken; fewer: rare ones that were lucky."""
NEARLY_SURE = 0.9
"""Probability from which the complement of an event tells more. Larger and smaller: hardly any
difference."""
LEAST_SHARE = 0.05
"""Share of the samples on either input, at least. Larger: samples are wasted; smaller: bounds on
one side are chance."""

MANY_RUNS = 1e6
"""Runs for which errors on both inputs are compared. Derived: so many that one run more or less
makes no difference."""

T = TypeVar("T")


def likelier_first(sign: int, on_first: T, on_second: T) -> tuple[T, T]:
    """What belongs to D and to D', in the direction of `sign`: 1 if D is the likelier, -1 if D'."""
    return (on_first, on_second) if sign > 0 else (on_second, on_first)


@dataclass(frozen=True, slots=True)
class PlannedTest:
    """A test that is to be made."""

    guarantee: Guarantee
    runs: float
    """Samples that are left for it, on both inputs together."""
    alpha: float
    """Level of its bound."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A threshold, or an event, and the bound to expect of it."""

    sign: int
    """1 if the event is likelier on D, -1 if on D'."""
    threshold: float
    """As in `Attack`; NaN for an event."""
    p1: float
    """A cautious estimate of its probability on the likelier input."""
    p2: float
    """The same on the other one."""
    expected: float
    """The lower bound to expect, in the claim's parameter."""


def choice_of(c1: int, n1: int, c2: int, n2: int, plan: PlannedTest) -> Choice:
    """The bound to expect of an event, in the better of both directions, by its counts on D and D'.

    Where none is to be expected yet, that is the likelier one.
    """
    counts1, counts2 = np.array([c1]), np.array([c2])
    up = expected_bounds(counts1, n1, counts2, n2, plan)
    down = expected_bounds(counts2, n2, counts1, n1, plan)
    return _best_of(up, down, np.array([math.nan]))


def best_cut(profile1: Ints, profile2: Ints, at: Floats, plan: PlannedTest) -> Choice | None:
    """The cut of a score, and the direction, with the largest bound to expect; None without a cut.

    By the Neyman-Pearson lemma no event of the same probability tells two inputs apart better than
    a cut of the exact posterior. Wide events are taken where they prove most, and rare ones where
    their ratio is worth it. The profiles, of shape (k + 1,), say how many outputs on D, and on D',
    score between the k cuts.
    """
    if not len(at):
        return None
    total1, total2 = int(profile1.sum()), int(profile2.sum())
    above1, above2 = (part[::-1].cumsum()[::-1][1:] for part in (profile1, profile2))
    up = expected_bounds(above1, total1, above2, total2, plan, BEST_OF_MANY)
    down = expected_bounds(total2 - above2, total2, total1 - above1, total1, plan, BEST_OF_MANY)
    return _best_of(up, down, at)


@dataclass(frozen=True, slots=True)
class ExpectedBounds:
    """Bounds to expect of many events, and the probabilities behind them."""

    expected: Floats
    p1: Floats
    p2: Floats


def _best_of(up: ExpectedBounds, down: ExpectedBounds, at: Floats) -> Choice:
    """The best of many events, or of their counterparts that point to D', with thresholds `at`.

    Where no bound is to be expected yet, it is the likelier one.
    """
    found = []
    for sign, side in ((1, up), (-1, down)):
        k = int(np.argmax(side.expected))
        found.append((float(side.expected[k]), float(side.p1[k]), sign, k, side))
    expected, p1, sign, k, side = max(found, key=lambda one: one[:3])
    threshold, p2 = sign * float(at[k]), float(side.p2[k])
    return Choice(sign, threshold, p1, p2, expected)


def expected_bounds(
    c1: Ints, n1: int, c2: Ints, n2: int, plan: PlannedTest, errors: float = 1.0
) -> ExpectedBounds:
    """Bounds to expect of a test, and the probabilities behind them, for each event.

    By counts of events among outputs that were searched; either probability is taken to be off by
    so many standard errors.
    """
    p1, p2 = cautious(c1, n1, c2, n2, errors)
    p1, p2 = np.clip(p1, 0, 1 - 0.5 / n1), np.clip(p2, 1e-12, 1 - 0.5 / n2)
    usable = (c1 > 3) & (p1 > 0)
    expected = np.full(len(c1), -np.inf)
    if usable.any():
        a, b = p1[usable], p2[usable]
        test, runs, alpha = EventTest(plan.guarantee), plan.runs, plan.alpha
        share = first_share(a, b, plan.guarantee)
        found = test.predicted(a, runs * share, b, runs * (1 - share), alpha)
        expected[usable] = np.where(np.isnan(found), -np.inf, found)
    # Of events in nearly all outputs, the complement tells more in the other direction.
    nearly_sure = (p1 > NEARLY_SURE) & (p2 > 1 - NEARLY_SURE)
    return ExpectedBounds(np.where(nearly_sure, -np.inf, expected), p1, p2)


def cautious(
    c1: Ints | Floats, n1: int, c2: Ints | Floats, n2: int, errors: float = 1.0
) -> tuple[Floats, Floats]:
    """Estimates of two probabilities, both so many standard errors towards a smaller ratio."""
    error1 = np.sqrt(c1 * np.maximum(1 - c1 / n1, 0))
    error2 = np.sqrt(c2 * np.maximum(1 - c2 / n2, 0) + 1)
    p1 = (c1 - errors * error1) / n1
    p2 = np.minimum((c2 + errors * (1 + error2)) / n2, 1 - 0.5 / n2)
    return p1, p2


def first_share(p1: Floats, p2: Floats, guarantee: Guarantee) -> Floats:
    """The share of samples for the likelier side by which an event shows most (Neyman)."""
    s1, s2 = EventTest(guarantee).costs(p1, MANY_RUNS, p2, MANY_RUNS)
    share: Floats = np.clip(s1 / (s1 + s2), LEAST_SHARE, 1 - LEAST_SHARE)
    return share


def rough_bounds(c1: Ints, c2: Ints, searched: int, plan: PlannedTest) -> Floats:
    """Roughly `choice_of`, on the scale of `apart`, for events by the thousand."""
    high, low = np.maximum(c1, c2), np.minimum(c1, c2)
    p1, p2 = cautious(high, searched, low, searched)
    z, delta = -ndtri(plan.alpha), plan.guarantee.delta
    with np.errstate(all="ignore"):
        if plan.guarantee.eps is None:
            v1, v2 = (p * (1 - p) * 2 * math.pi * np.exp(ndtri(p) ** 2) for p in (p1, p2))
        else:
            v1, v2 = (1 - p1) / (p1 - delta) * (p1 / (p1 - delta)), (1 - p2) / p2
        slack = z * np.sqrt(2 / plan.runs * (v1 + v2))
        expected = np.where(
            (high > 3) & (p1 > delta), apart(p1, p2, plan.guarantee) - slack, -np.inf
        )
    return np.asarray(expected, dtype=np.float64)


def apart(p1: Floats, p2: Floats, guarantee: Guarantee) -> Floats:
    """How far an event tells two inputs apart: its ε, or else its µ as of Gaussian privacy.

    Quick to find, and other notions have events in about the order of their µ.
    """
    with np.errstate(all="ignore"):
        if guarantee.eps is None:
            return np.asarray(ndtri(p1) - ndtri(p2), dtype=np.float64)
        return np.asarray(np.log((p1 - guarantee.delta) / p2), dtype=np.float64)
