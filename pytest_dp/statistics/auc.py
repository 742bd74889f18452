"""Bets on the area under the ROC curve: how often one score is above another, ties counting half.

A pair of scores, one with the record and one without, pays ``1{in > out} + 1/2 1{tie} - a``, whose
mean is at most 0 for any score that was chosen before, if no attack has an area above a. So what is
staked on it, times ``1 + f / a * pay``, stays small however one bets, at any time. All ways to pair
up the scores of a batch by turning one side against the other are as good; their average pays.

Wealth is spread over fractions f, as in `pytest_dp.statistics.ledger`; where another score is bet
on, half of it is spread anew. Bets against each of many areas, from both sides, make a confidence
sequence. Nothing here is approximate but `resolution`, and the error of `area`.

Source: Waudby-Smith, Ramdas, "Estimating means of bounded random variables by betting", JRSS B
2024.
"""

from __future__ import annotations

import math

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints

FRACTIONS = np.array([0.9999, *(0.98 * 0.5 ** np.arange(6)), 0.0])
"""What can be staked, as shares of the largest stake. All of it wins most where one side is always
above; nothing keeps what an attack that has yet to learn would lose. By hand, as those of events.
"""
PRIOR = 1 / np.arange(1.0, len(FRACTIONS) + 1)
"""Falling from the largest, as of attacks in `betting`."""
AREAS = np.arange(1, 200) / 200
"""Areas that are bet against beside the claim: the bounds are some of these. By hand."""
CROSSED = 8
"""Ways to pair up a batch that are averaged over, at most. More take time in proportion."""


class AreaBets:
    """Wealth in bets against areas at most, and at least, each of a grid with `claimed` in it."""

    def __init__(self, claimed: float = 0.5) -> None:
        self.areas = np.union1d(AREAS, [claimed])
        self.claim = int(np.searchsorted(self.areas, claimed))
        steps = FRACTIONS / self.areas[:, None]
        pays = np.array([1.0, 0.5, 0.0]) - self.areas[:, None]
        self._growth = np.log1p(steps[..., None] * pays[:, None])
        self._stakes = np.tile(np.log(PRIOR / PRIOR.sum()), (2, len(self.areas), 1))
        self.highest = np.zeros((2, len(self.areas)))
        """Log wealth against areas of at most each, and at least each (from the other end)."""
        self.log_wealth = np.zeros((2, len(self.areas)))
        self.counts = np.zeros(3, np.int64)
        """Pairs that were won, tied and lost, in the order in which they came."""
        self.scores: tuple[list[Floats], list[Floats]] = ([], [])

    @property
    def pairs(self) -> int:
        """How many pairs were bet on."""
        return int(self.counts.sum())

    def settle(self, inside: Floats, outside: Floats) -> None:
        """Pay out by the scores of a batch, with the record and without, shape (n,) each."""
        turned = cross_pairs(inside, outside)
        self.counts += turned[0]
        for side, counts in enumerate((turned, turned[:, ::-1])):
            grown = np.tensordot(counts, self._growth, axes=(1, 2))
            self._stakes[side] += np.logaddexp.reduce(grown, axis=0) - math.log(len(grown))
            self.log_wealth[side] = np.logaddexp.reduce(self._stakes[side], axis=-1)
        self.highest = np.maximum(self.highest, self.log_wealth)
        for known, new in zip(self.scores, (inside, outside), strict=True):
            known.append(new)

    def begin_anew(self) -> None:
        """Spread half of all wealth over the fractions as at first: the next score is another."""
        fresh = self.log_wealth[..., None] + np.log(PRIOR / PRIOR.sum())
        self._stakes = np.logaddexp(self._stakes, fresh) - math.log(2)

    def lower(self, alpha: float) -> float:
        """Return an area that some attack reaches, with confidence ``1 - alpha`` at any time."""
        return self._bound(0, alpha)

    def upper(self, alpha: float) -> float:
        """Return an upper confidence bound on the area, for a score that stays the same."""
        return 1 - self._bound(1, alpha)

    def _bound(self, side: int, alpha: float) -> float:
        refuted = np.cumprod(self.highest[side] >= -math.log(alpha)).astype(bool)
        return float(self.areas[refuted].max(initial=0.0))

    def soonest(self, alpha: float) -> int:
        """Return how many more pairs refute the claim at the least, if all are won."""
        left = -math.log(alpha) - self.log_e_value
        return max(math.ceil(left / -math.log(self.areas[self.claim])), 1)

    @property
    def log_e_value(self) -> float:
        """Log wealth against the claim, now."""
        return float(self.log_wealth[0, self.claim])

    @property
    def p_value(self) -> float:
        """Anytime-valid p-value of the claim."""
        return math.exp(-float(self.highest[0, self.claim]))


def cross_pairs(inside: Floats, outside: Floats) -> Ints:
    """Count pairs won, tied and lost, for each of several ways to pair up a batch in its order."""
    n = len(inside)
    shifts = np.unique(np.linspace(0, n - 1, min(n, CROSSED)).astype(int))
    other = outside[(np.arange(n) + shifts[:, None]) % n]
    won, lost = (inside > other).sum(axis=1), (inside < other).sum(axis=1)
    return np.stack([won, n - won - lost, lost], axis=1)


def area(inside: Floats, outside: Floats) -> tuple[float, float]:
    """Return the area under the ROC curve of some scores, and its standard error.

    DeLong, DeLong, Clarke-Pearson, "Comparing the Areas under Two or More Correlated Receiver
    Operating Characteristic Curves", Biometrics 1988. Where all or no pairs are won, of which it
    knows no error, that of one more pair of either kind.
    """
    above = np.sign(inside[:, None] - outside) / 2 + 0.5
    mean, n, m = float(above.mean()), len(inside), len(outside)
    if n < 2 or m < 2:
        return mean, 0.5
    variance = above.mean(axis=1).var(ddof=1) / n + above.mean(axis=0).var(ddof=1) / m
    shrunk = (min(n, m) * mean + 1) / (min(n, m) + 2)
    least = shrunk * (1 - shrunk) / (min(n, m) + 3) if variance == 0 and mean != 0.5 else 0.0
    return mean, math.sqrt(max(float(variance), least))


def resolution(claimed: float, pairs: int, alpha: float) -> float:
    """Return the smallest area at which `pairs` refute the claim with 95 % power (approximate).

    By wins and losses, with the cost of not knowing the fraction; infinite if there is none.
    """
    enough = -math.log(alpha) + math.log(PRIOR.sum() * 2)
    areas = np.linspace(claimed, 1.0, 1_001)[1:]
    cautious = areas - 1.645 * np.sqrt(areas * (1 - areas) / max(pairs, 1))
    cautious = np.clip(cautious, claimed, 1 - 1e-12)
    gain = cautious * np.log(cautious / claimed)
    gain += (1 - cautious) * np.log((1 - cautious) / (1 - claimed))
    caught = np.flatnonzero(pairs * gain >= enough)
    return float(areas[caught[0]]) if len(caught) else math.inf
