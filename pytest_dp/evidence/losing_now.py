"""What a mechanism may lose now, in the terms of its claim: an upper estimate from a record.

Under a delta, the loss is that of the whole profile: of the event for which ``ln((p - delta) / q)``
is largest, which is often rarer than any event that tells inputs apart for sure. Outputs are
ordered by their learned score, and the log odds of D are taken to be a smooth function of how far
out an output is: a line with bends, in units in which Gaussian noise makes it straight. Room for
chance is left around it. Where an event is far likelier on one input than that line explains, it
counts by itself.

All of this is approximate, and for information only, as in `resolution`. What is too rare to be
seen at all is not in it: that is a figure of its own.

Source: Balle, Wang, "Improving the Gaussian Mechanism for Differential Privacy", ICML 2018 (the
profile as the probabilities of one event, which the loss cuts out).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, ndtri

from pytest_dp.arrays import Floats
from pytest_dp.evidence.betting import Record
from pytest_dp.evidence.divergence_bets import NEWTON_STEPS
from pytest_dp.evidence.event_bets import all_contingencies
from pytest_dp.evidence.expected_gains import largest_shown
from pytest_dp.evidence.regression import expit, logistic
from pytest_dp.limits import EQUAL, NEARLY_EQUAL, SEVERAL, SHOWN_ALPHA
from pytest_dp.privacy import Guarantee

ERRORS = 2.0
"""Standard errors by which a mechanism may lose more than it looks. Derived: one of 40 loses more.
"""
BENDS = {0.5: 1.0, 1.0: 1.0, 2.0: 1.0, 3.0: 0.3}
"""Where the line bends, in standard deviations from the middle, on either side, and how much: it
is 0, give or take this. More follow other shapes of noise; fewer are better known, most of all
where few outputs are. By hand."""
FAR_OUT = np.linspace(-8.5, 8.5, 1_701)
"""Where the line is asked, in standard deviations. Derived: from there on, 1e-17 is left."""


@dataclass(frozen=True, slots=True)
class Losses:
    """Log odds of D along how far out an output is, on one side: towards D, or towards D'."""

    odds: Floats
    """In nats, at `FAR_OUT`."""
    room: Floats
    """By how much they may be larger by chance."""

    def half_lines(self, times: float, errors: float) -> tuple[Floats, Floats]:
        """Probabilities of being at least so far out, on the likelier input and on the other.

        With so many standard errors of room for chance. With noise so many times smaller, both are
        tilted from what lies halfway between them: that is exact for Gaussian noise and for two
        outcomes.
        """
        density, odds = np.exp(-(FAR_OUT**2) / 2), self.odds + errors * self.room
        likelier, rarer = density * expit(odds), density * expit(-odds)
        if times != 1.0:
            middle, tilt = np.sqrt(likelier * rarer), times * odds / 2
            likelier, rarer = middle * np.exp(tilt), middle * np.exp(-tilt)
        beyond = (side[::-1].cumsum()[::-1] / side.sum() for side in (likelier, rarer))
        p, q = beyond
        return p, q


def may_lose(record: Record, guarantee: Guarantee) -> float:
    """The largest parameter that a mechanism may have now (approximate).

    With room for chance. 0.0 if nothing was learned yet; infinite where a claim with a delta may be
    broken beside any eps.
    """
    largest = largest_shown(record, guarantee)
    if not _needs_shape(record, guarantee):
        return largest
    sides = _losses(record.joint[0])
    seen = (_shown(*side.half_lines(1.0, ERRORS), guarantee) for side in sides)
    return max(largest, *seen, _by_themselves(record, guarantee, sides))


def would_lose(record: Record, guarantee: Guarantee, times: float) -> float:
    """The parameter with noise so many times smaller (approximate), as far as events show it."""
    largest = largest_shown(record, guarantee) * times**guarantee.power
    if not guarantee.claimed:
        largest = max(largest, guarantee.with_noise_over(times))
    if not _needs_shape(record, guarantee):
        return largest
    sides = _losses(record.joint[0])
    return max(largest, *(_shown(*side.half_lines(times, 0.0), guarantee) for side in sides))


def _needs_shape(record: Record, guarantee: Guarantee) -> bool:
    """Whether the claim's parameter is shown by events that are rarer than those that tell most."""
    return guarantee.delta > 0 and bool(record.joint) and len(record.joint[0]) > SEVERAL


def _shown(p: Floats, q: Floats, guarantee: Guarantee) -> float:
    some = (p > guarantee.delta) & (FAR_OUT >= -1)  # the other tail is that of the other side
    return float(np.max(guarantee.shown_by(p[some], q[some]), initial=0.0))


def _losses(joint: Floats) -> list[Losses]:
    """The fitted line, in both directions, each with room for chance."""
    counts1, counts2 = joint.sum(1), joint.sum(0)
    runs = counts1 + counts2
    far = ndtri((np.cumsum(runs) - runs / 2) / runs.sum())[runs > 0]
    precision = np.array([1e-3, 1e-3, *np.repeat([size**-2 for size in BENDS.values()], 2)])
    prior = np.zeros(len(precision)), precision
    basis = _basis(far)
    weights = logistic(basis, counts1[runs > 0], runs[runs > 0], prior, NEWTON_STEPS, NEARLY_EQUAL)
    chances = expit(weights @ basis)
    known = (basis * (runs[runs > 0] * chances * (1 - chances))) @ basis.T + np.diag(prior[1])
    asked = _basis(FAR_OUT)
    line = weights @ asked
    room = np.sqrt(np.einsum("kn,kn->n", asked, np.linalg.solve(known, asked)))
    return [Losses(line, room), Losses(-line[::-1], room[::-1])]


def _basis(far: Floats) -> Floats:
    """A line and its bends, shape (k, n)."""
    bends = [np.maximum(side * far - bend, 0.0) for bend in BENDS for side in (1, -1)]
    return np.stack([np.ones(len(far)), far, *bends])


def _by_themselves(record: Record, guarantee: Guarantee, sides: list[Losses]) -> float:
    """What is shown by events that are likelier on one input than half-lines as rare as they are.

    With room for chance, if chance does not explain them; 0.0 if there are none.
    """
    both, only1, only2, neither = all_contingencies(record.joint).T
    runs = both + only1 + only2 + neither
    c1, c2 = both + only1, both + only2
    c1, c2 = np.maximum(c1, c2), np.minimum(c1, c2)
    expected = np.zeros(len(c1))
    for side in sides:
        p, q = side.half_lines(1.0, 0.0)
        rarity = np.interp((c1 + c2) / (2 * runs), ((p + q) / 2)[::-1], (p / (p + q))[::-1])
        expected = np.maximum(expected, rarity)
    luck = betainc(np.maximum(c1, 0.5), c2 + 1, np.minimum(expected, 1 - EQUAL))
    odd = (c1 > 0) & (luck < SHOWN_ALPHA)
    likely = np.minimum((c1 + ERRORS * np.sqrt(c1)) / runs, 1.0)
    rare = np.maximum(c2 - ERRORS * np.sqrt(c2), 0.0) / runs
    shown = guarantee.shown_by(likely[odd], rare[odd])
    return float(np.max(shown, initial=0.0))
