"""The number of places of an output that share a loss.

Ten places that lose a tenth each are told apart far worse than one that loses it all: what they say
adds up like independent errors, with the root of their number. What they lose adds up as it is. So
a loss is as hard to find as if ``k = (sum of l) ** 2 / (sum of l ** 2)`` places shared it evenly,
where place j by itself loses l_j. The ratio is the same for the mechanism with less noise, so it
can be read off one that has far too much.

All of this is approximate, and for information only, as in `power`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints

CLEAR_ERRORS = 4.0
"""Standard errors from which a place is known to lose something, of thousands. More: places that
lose most are missed; fewer: chance is taken for one."""
MIN_OFTEN = 0.01
"""Share of the outputs that an event has, at least. Larger: rare events are left out; smaller:
chance is taken for them."""

MIN_JOINT_ERRORS = 2.0
"""Standard errors from which all the other places lose anything together. Larger: small
losses of many places are left out; smaller: noise counts as loss. By hand."""


def count_equal_losses(places: Iterable[tuple[Ints, Ints]], paired: bool) -> float:
    """Return the number of places with equal losses that are as hard to find as the given ones.

    At most the number of places, which it is where none is known to lose anything: the worst case.
    Each place has labels from 0 of the outputs on D, and on D'; where they are `paired`, outputs i
    on D and on D' share their random numbers.
    """
    squares, errors = np.array([_distance(*labels, paired) for labels in places]).T
    count = len(squares)
    clear = squares > CLEAR_ERRORS**2 * errors
    if not clear.any():
        return float(count)
    others = float(squares[~clear].sum())
    noise = math.sqrt(2 * float((errors[~clear] ** 2).sum()))
    others *= others > MIN_JOINT_ERRORS * noise
    total = np.sqrt(squares[clear]).sum() + math.sqrt((~clear).sum() * others)
    return float(np.clip(total**2 / (squares[clear].sum() + others), 1, count))


def _distance(labels1: Ints, labels2: Ints, paired: bool) -> tuple[float, float]:
    """Return the squared loss of a place less the share of chance, and the share of chance.

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
    often = (c1 + c2) / (2 * n) >= MIN_OFTEN
    c1, c2, chance = c1[often], c2[often], chance[often]
    size = n * (c1 + c2) / 2
    by_chance = float((chance / size).sum())
    return float(((c1 - c2) ** 2 / size).sum()) - by_chance, by_chance + 2 / n**2
