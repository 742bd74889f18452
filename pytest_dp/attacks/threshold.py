"""From a posterior to an attack: the outputs that point to one input strongly enough.

By the Neyman-Pearson lemma no event of the same probability tells two inputs apart better than a
threshold on the exact posterior. Algorithm 1 of the paper fixes that probability, on the input that
makes the event rarer, at c = 0.01. Here the threshold is by default the one that promises the
largest lower bound for the samples that are left, so that wide events are used where they prove
most, and rare ones where their ratio is worth it.

Source: Bichsel, Steffen, Bogunovic, Vechev, "DP-Sniper", IEEE S&P 2021, Algorithm 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtri

from pytest_dp.attacks import Posterior
from pytest_dp.evidence import paired, ratio
from pytest_dp.outputs.table import Bools, Floats, Ints, Table, tabulate

MOST_CUTS = 512
CALIBRATION = 0.1
"""How far a model's loss, calibrated on the whole, may be off for one event, as a share."""
NEARLY = 0.97
"""Share of a promise that is worth giving up for something that is easier to read."""
MOST_LIKELY = 0.9
"""Probability above which an event's complement, in the other direction, tells more."""

CAUTION = 1.5
"""Standard errors by which a loss is taken to be smaller than it looks."""
LEARNED = 0.25
"""Variance of a model's loss for an event, as a share of that of the counts it was learned from."""
SMALLEST_SHARE = 0.05
"""Of the samples of the test, what each input gets at least."""


def scores(model: Posterior, table: Table) -> Floats:
    """Log odds, rounded so that equal outputs score the same in batches of any size."""
    rounded: Floats = np.round(model.log_odds(table), 9) + 0.0
    return rounded


@dataclass(frozen=True, slots=True)
class Attack:
    """A randomised event: outputs that score above a threshold, and a share of those right at it.

    ``attack(output)`` is the probability that the attack includes an output. The score is the
    learned log odds of the input that it points to against the other.

    Attributes
    ----------
    model : Posterior
    sign : int
        1 if it includes outputs that point to D, -1 if those that point to D'.
    threshold : float
        In nats: ``sign`` times the log odds.
    tie : float
        Probability with which outputs at the threshold are included.
    """

    model: Posterior = field(repr=False)
    sign: int
    threshold: float
    tie: float = 0.0

    def hits(self, table: Table) -> tuple[Bools, Bools]:
        """Which outputs score above the threshold, and which right at it."""
        found = self.sign * scores(self.model, table)
        return found > self.threshold, found == self.threshold

    def score(self, output: Any) -> float:
        """The score of one output, in nats."""
        return float(self.sign * scores(self.model, tabulate([output]))[0])

    def __call__(self, output: Any) -> float:
        above, at = self.hits(tabulate([output]))
        return float(above[0]) or self.tie * float(at[0])

    def __str__(self) -> str:
        share = f", and a random {self.tie:.0%} of those at it" if self.tie else ""
        return f"score(output) > {self.threshold:.4g}{share}"


@dataclass(frozen=True, slots=True)
class Choice:
    """A threshold, or an event, and what it promises.

    Attributes
    ----------
    sign : int
        1 if the event is likelier on D, -1 if on D'.
    threshold : float
        As in `Attack`; NaN for an event.
    p1, p2 : float
        Cautious estimates of its probability on the likelier input and on the other one.
    promise : float
        The lower bound to expect, in nats.
    coupled : bool
        Whether it is to be expected of outputs with the same random numbers on both inputs.
    """

    sign: int
    threshold: float
    p1: float
    p2: float
    promise: float
    coupled: bool = False


@dataclass(frozen=True, slots=True)
class Cuts:
    """Thresholds worth a look.

    Attributes
    ----------
    learned : int
        Outputs on either input from which the model was learned.
    at : ndarray of float, shape (k,)
        In increasing order; no score lies on any of them.
    levels : ndarray of float, shape (k + 1,)
        A typical score between each of them and the next.
    """

    learned: int
    at: Floats
    levels: Floats


def cuts_for(found: Floats, learned: int) -> Cuts:
    """Thresholds worth a look, by the scores of some outputs; `learned` as in `Cuts`."""
    values = np.unique(found)
    if len(values) <= MOST_CUTS:
        return Cuts(learned, values[:-1] / 2 + values[1:] / 2, values)
    far = logit(1 - 10 / len(found))
    share = expit(np.linspace(-far, far, MOST_CUTS))
    ordered = np.sort(found)
    at = np.unique(ordered[np.unique((share * (len(found) - 1)).astype(np.int64))]) + 5e-10
    places = np.concatenate([[0], np.searchsorted(ordered, at), [len(ordered)]])
    middle = np.minimum((places[:-1] + places[1:]) // 2, len(ordered) - 1)
    return Cuts(learned, at, ordered[middle])


def best_cut(
    profile1: Ints,
    profile2: Ints,
    cuts: Cuts,
    runs: float,
    alpha: float,
    favoured: int = 0,
    lower: Ints | None = None,
) -> Choice | None:
    """The threshold, and the direction, that promise the largest bound; None if there is no cut.

    Parameters
    ----------
    profile1, profile2 : ndarray of int, shape (k + 1,)
        How many fresh outputs on D, and on D', score between the cuts.
    cuts : Cuts
    runs : float
        Samples that are left for the test, on both inputs together.
    alpha : float
        Level of the bound.
    favoured : int
        A direction (1 or -1) to take if it promises nearly as much as the other one.
    lower : ndarray of int, shape (k + 1,), optional
        If outputs on D and D' were drawn in pairs, with the same random numbers: how many pairs
        have the lower of their two scores between the cuts.
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
    learned = LEARNED * (total1 + total2) / 2 / max(cuts.learned, 1)
    modelled = _log_ratio(above[2], above[3]), _log_ratio(below[3], below[2])
    both = None if lower is None else _above(lower)
    neither = None if both is None else total1 - above[0] - above[1] + both
    found = [
        _promises(above[0], total1, above[1], total2, runs, alpha, modelled[0], learned, both),
        _promises(below[1], total2, below[0], total1, runs, alpha, modelled[1], learned, neither),
    ]
    best = [int(np.argmax(side.expected)) for side in found]
    up, down = (float(side.expected[k]) for side, k in zip(found, best, strict=True))
    leads = {1: up >= NEARLY * down, -1: up * NEARLY > down}
    if leads.get(favoured, up >= down):
        return found[0].choice(best[0], 1, float(cuts.at[best[0]]))
    return found[1].choice(best[1], -1, -float(cuts.at[best[1]]))


def _log_ratio(one: Floats, other: Floats) -> Floats:
    found: Floats = np.log(np.maximum(one, 1e-9) / np.maximum(other, 1e-9))
    return found


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
    prior = np.array([1.0, 0.0, 0.0])
    found = prior.copy()
    for _ in range(25):
        p = expit(found @ basis)
        # A prior of about one output keeps separable scores from running away.
        curvature = (basis * (both * p * (1 - p))) @ basis.T + np.diag([1.0, 1.0, 1.0])
        step = np.linalg.solve(curvature, basis @ (profile1 - both * p) - (found - prior))
        found = found + np.clip(step, -1, 1)
        if np.abs(step).max() < 1e-6:
            break
    share: Floats = np.clip(expit(found @ basis), 1e-9, 1 - 1e-9)
    return both * share


def event_promise(
    c1: int, n1: int, c2: int, n2: int, runs: float, alpha: float, both: int | None = None
) -> Choice:
    """What an event promises, in the better of both directions, from its counts on D and D'.

    `both` counts pairs with both outputs in it, if outputs were drawn in pairs.
    """
    one, two = np.array([c1]), np.array([c2])
    together = None if both is None else np.array([both])
    up = _promises(one, n1, two, n2, runs, alpha, both=together)
    down = _promises(two, n2, one, n1, runs, alpha, both=together)
    if up.expected[0] >= down.expected[0]:
        return up.choice(0, 1, math.nan)
    return down.choice(0, -1, math.nan)


@dataclass(frozen=True, slots=True)
class _Promises:
    """Bounds to expect of many events, what is behind them, and whether of coupled outputs."""

    expected: Floats
    p1: Floats
    p2: Floats
    coupled: Bools

    def choice(self, k: int, sign: int, threshold: float) -> Choice:
        """One of them."""
        return Choice(
            sign,
            threshold,
            float(self.p1[k]),
            float(self.p2[k]),
            float(self.expected[k]),
            bool(self.coupled[k]),
        )


def _promises(
    c1: Ints | Floats,
    n1: int,
    c2: Ints | Floats,
    n2: int,
    runs: float,
    alpha: float,
    modelled: Floats | None = None,
    learned: float = 0.0,
    both: Ints | Floats | None = None,
) -> _Promises:
    """Bounds to expect, and the probabilities behind them, for many events at a time.

    `modelled` are losses that a model expects, to lean on where counts say little: else the best of
    many rare events would be one that was lucky. `learned` is their variance, in that of counts.
    `both` are pairs of outputs in the event, where outputs were drawn in pairs.
    """
    # Of the variance of a loss, what pairs that agree do not cancel.
    left = 1.0 if both is None else np.minimum((c1 + c2 - 2 * both + 1) / (c1 + c2 + 1), 1.0)
    if modelled is None:
        plain, careful = (c1 / n1, c2 / n2), cautious(c1, n1, c2, n2)
        p1, p2 = (p + (q - p) * np.sqrt(left) for p, q in zip(plain, careful, strict=True))
    else:
        rare = (c1 + c2 + 1.0) / (n1 + n2)
        seen = np.log((c1 + 0.5) / n1) - np.log((c2 + 0.5) / n2)
        luck = (1 / (c1 + 0.5) + 1 / (c2 + 0.5)) * left
        trust = 1 / luck, 1 / ((CALIBRATION * modelled) ** 2 + learned * luck)
        loss = (seen * trust[0] + modelled * trust[1]) / sum(trust)
        loss = loss - CAUTION / np.sqrt(sum(trust))
        p2 = 2 * rare / (1 + np.exp(loss))
        p1 = 2 * rare - p2
    p1, p2 = np.clip(p1, 0, 1 - 0.5 / n1), np.clip(p2, 1e-12, 1 - 0.5 / n2)
    usable = (c1 > 3) & (p1 > 0)
    expected, coupled = np.full(len(c1), -np.inf), np.zeros(len(c1), bool)
    if usable.any():
        a, b = p1[usable], p2[usable]
        share = first_share(a, b)
        given = ratio.predicted(a, runs * share, b, runs * (1 - share), alpha)
        if both is not None:
            together = paired.predicted(a, b, both[usable] / n1, runs / 2, alpha)
            coupled[usable] = together > given
            given = np.fmax(given, together)
        expected[usable] = np.where(np.isnan(given), -np.inf, given)
    # Of events in nearly all outputs, the complement tells more in the other direction.
    nearly_sure = (p1 > MOST_LIKELY) & (p2 > 1 - MOST_LIKELY)
    return _Promises(np.where(nearly_sure, -np.inf, expected), p1, p2, coupled)


def cautious(c1: Ints | Floats, n1: int, c2: Ints | Floats, n2: int) -> tuple[Floats, Floats]:
    """Estimates of two probabilities, both a standard error towards a smaller ratio."""
    p1 = (c1 - np.sqrt(c1 * np.maximum(1 - c1 / n1, 0))) / n1
    p2 = np.minimum((c2 + 1 + np.sqrt(c2 * np.maximum(1 - c2 / n2, 0) + 1)) / n2, 1 - 0.5 / n2)
    return p1, p2


def first_share(p1: Floats, p2: Floats) -> Floats:
    """The share of samples for the likelier side that estimates the ratio best (Neyman)."""
    s1, s2 = (np.sqrt((1 - p) / np.maximum(p, 1e-12)) + 1e-12 for p in (p1, p2))
    share: Floats = np.clip(s1 / (s1 + s2), SMALLEST_SHARE, 1 - SMALLEST_SHARE)
    return share


def quick_promise(c1: Ints, c2: Ints, searched: int, runs: float, alpha: float) -> Floats:
    """Roughly `event_promise`, for events by the thousand."""
    high, low = np.maximum(c1, c2), np.minimum(c1, c2)
    p1, p2 = cautious(high, searched, low, searched)
    z = -ndtri(alpha)
    with np.errstate(all="ignore"):
        slack = z * np.sqrt(2 / runs * ((1 - p1) / p1 + (1 - p2) / p2))
        promise = np.where((high > 3) & (p1 > 0), np.log(p1 / p2) - slack, -np.inf)
    return np.asarray(promise, dtype=np.float64)


def fixed(model: Posterior, sign: int, found: Floats, c: float) -> Attack:
    """Algorithm 1 of the paper: the attack with probability `c` on the input that makes it rarer.

    Parameters
    ----------
    model : Posterior
    sign : int
        As in `Attack`.
    found : ndarray of float
        Scores of fresh outputs on that input.
    c : float
    """
    ordered = np.sort(sign * found)[::-1]
    n = len(ordered)
    threshold = float(ordered[min(math.floor(c * n), n - 1)])
    above, at = int(np.sum(ordered > threshold)), int(np.sum(ordered == threshold))
    return Attack(model, sign, threshold, (c * n - above) / at)
