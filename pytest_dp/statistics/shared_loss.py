"""A loss that several places of an output share: by how many, and from where on it is caught.

Ten places that lose a tenth each are told apart far worse than one that loses it all: what they say
adds up like independent errors, with the root of their number. What they lose adds up as it is. So
a loss is as hard to find as if ``k = (sum of l) ** 2 / (sum of l ** 2)`` places shared it evenly,
where place j by itself loses l_j. The ratio is the same for the mechanism with less noise, so it
can be read off one that has far too much.

All of this is approximate, and for information only, as in `resolution`.

Source: Kairouz, Oh, Viswanath, "The Composition Theorem for Differential Privacy", ICML 2015
(losses that add up, and the events that show them: counts of places that point to one input).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from scipy.special import bdtrc

from pytest_dp.arrays import Floats, Ints
from pytest_dp.bisection import smallest_loss
from pytest_dp.limits import DOZENS, RARELY, STANDS_OUT
from pytest_dp.statistics.replay import PlannedBets, couple_bins

MIN_JOINT_ERRORS = 2.0
"""Standard errors from which the places that do not stand out lose anything together. Larger: small
losses of many places are left out; smaller: noise counts as loss. By hand."""
LEARNED_SHARE = 0.25
"""Share of the samples from which, on average, an attack was learned that others are bet on with:
attacks are learned anew when the samples have grown eightfold. It follows from that factor, about.
"""
PARAMETERS_PER_PLACE = 2
"""Numbers that have to be learned for each place: about where it changes, and by how much. It
matters from a hundred places on. By hand."""


def count_equal_losses(places: Iterable[tuple[Ints, Ints]], paired: bool) -> float:
    """Return the number of places with equal losses that are as hard to find as the given ones.

    At most the number of places, which it is where none is known to lose more than others: the
    worst case. Each place has labels from 0 of the outputs on D, and on D'; where they are
    `paired`, outputs i on D and on D' share their random numbers.
    """
    squares, errors = np.array([_distance(*labels, paired) for labels in places]).T
    count = len(squares)
    outliers = np.zeros(count, dtype=bool)
    while (left := np.count_nonzero(~outliers)) > 1:
        mean = np.maximum(squares[~outliers].sum() - squares, 0) / (left - 1)  # of all the others
        far = (np.sqrt(mean) + STANDS_OUT * np.sqrt(errors)) ** 2
        more = ~outliers & (squares > far)
        if not more.any():
            break
        outliers |= more
    if not outliers.any():
        return float(count)
    others, noise = (
        float(squares[~outliers].sum()),
        math.sqrt(2 * float((errors[~outliers] ** 2).sum())),
    )
    others *= others > MIN_JOINT_ERRORS * noise
    total = np.sqrt(squares[outliers]).sum() + math.sqrt((~outliers).sum() * others)
    return float(np.clip(total**2 / (squares[outliers].sum() + others), 1, count))


def _distance(labels1: Ints, labels2: Ints, paired: bool) -> tuple[float, float]:
    """The squared loss of a place as labels show it, less what chance adds to it, and the latter.

    It is the chi-square distance, which for small losses is their square, in nats.
    """
    n = len(labels1)
    width = int(max(labels1.max(), labels2.max())) + 1
    c1, c2 = np.bincount(labels1, minlength=width), np.bincount(labels2, minlength=width)
    chance: Floats
    if paired:  # pairs with the same label say nothing
        chance = c1 + c2 - 2.0 * np.bincount(labels1[labels1 == labels2], minlength=width)
    else:
        chance = c1 * (1 - c1 / n) + c2 * (1 - c2 / n)
    often = (c1 + c2) / (2 * n) >= RARELY
    c1, c2, chance = c1[often], c2[often], chance[often]
    size = n * (c1 + c2) / 2
    by_chance = float((chance / size).sum())
    return float(((c1 - c2) ** 2 / size).sum()) - by_chance, by_chance + 2 / n**2


def smallest_shared_loss(places: float, bets: PlannedBets, shared: float = 0.0) -> float:
    """The smallest loss, shared evenly by some places, that bets would have found (approximate).

    With 95 % power, in nats; infinite if none would have been. `shared` is as in
    `replay.couple_bins`.
    """
    low = math.floor(places)
    least = _smallest(low, bets, shared)
    if low == places or math.isinf(least):
        return least
    return least + (places - low) * (_smallest(low + 1, bets, shared) - least)


def _smallest(places: int, bets: PlannedBets, shared: float) -> float:
    fewest: Ints = np.arange(1, places + 1, places // (2 * DOZENS) + 1)
    unknown = PARAMETERS_PER_PLACE * places * (places - 1) / (LEARNED_SHARE * bets.runs)

    def points(p: float) -> Floats:
        """Probability that at least so many places point to D."""
        return np.asarray(bdtrc(fewest - 1.0, places, p), dtype=np.float64)

    def is_caught(loss: float) -> bool:
        # Errors of what is learned add noise: the loss counts for less, the more is to be learned.
        loss /= math.sqrt(1 + 2 * unknown / loss**2)
        return bets.catch(couple_bins(points(0.5), points(0.5 * math.exp(-loss / places)), shared))

    return smallest_loss(is_caught, bets.guarantee.eps or 0.0)
