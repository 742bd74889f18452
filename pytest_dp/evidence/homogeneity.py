"""Whether the runs of one input are alike, or come in clumps.

Every test here rests on independent runs. A mechanism that shares noise between draws, or keeps
state from run to run, breaks that, and its counts would prove nothing. This check can only withhold
a verdict, so it takes nothing from its validity.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

GROUPS = 16
ENOUGH = 4
"""Runs inside, and outside, the event that each group is expected to hold."""


def p_value(hits: NDArray[np.int64], sizes: NDArray[np.int64]) -> tuple[float, list[float]]:
    """Pearson's chi-squared test that an event is equally likely in all pieces of work.

    Parameters
    ----------
    hits : ndarray of int, shape (pieces,)
        How many outputs of each piece of work are in the event, in the order of the runs.
    sizes : ndarray of int, shape (pieces,)
        How many runs each piece of work had.

    Returns
    -------
    p : float
        Approximate; 1.0 if there are too few hits to tell.
    shares : list of float
        The event's frequency in each group of neighbouring pieces.
    """
    inside, total = int(hits.sum()), int(sizes.sum())
    groups = min(GROUPS, len(sizes), min(inside, total - inside) // ENOUGH)
    if groups < 2:
        return 1.0, []
    ends = np.cumsum(sizes)
    # Groups of about equal size, made of whole pieces.
    chosen = np.unique(np.searchsorted(ends, np.arange(1, groups + 1) / groups * ends[-1] - 0.5))
    last = np.minimum(chosen, len(ends) - 1)
    runs = np.diff(ends[last], prepend=0)
    counts = np.diff(np.cumsum(hits)[last], prepend=0)
    expected = runs * inside / total
    missing = runs - expected
    statistic = float(np.sum((counts - expected) ** 2 * (1 / expected + 1 / missing)))
    return float(chdtrc(len(runs) - 1, statistic)), (counts / runs).tolist()
