"""How much an audit looks at, and how often it learns: by what may break a claim.

A claim of eps alone is broken by ratios of probabilities, which show most in what is common. Others
may be broken by what is rare, or by what adds up over all outputs: then more is looked at, more
finely, and anew more often.
"""

from __future__ import annotations

from dataclasses import dataclass

from pytest_dp.privacy import Guarantee


@dataclass(frozen=True, slots=True)
class Pace:
    """How a game goes about a claim."""

    relearn: int
    """By what factor the outputs of a pair grow until its binnings are made anew."""
    relearn_last: bool
    """Whether they are made once more when no further outputs will be kept."""
    bins: int
    """Into how many a score is cut, at most."""
    learned_from: int
    """Pairs of outputs from which each half learns, and among which it looks for events, at most.
    """
    max_kept: int
    """Pairs of outputs that are kept of a pair of inputs, at most."""
    least_batch: float
    """Share of a batch to which it is cut where less should do to win."""


OF_RATIOS = Pace(8, False, 24, 20_000, 100_000, 1.0)
"""Learning seldom and from few outputs costs no power here, and saves much of the time."""
OF_RARE_EVENTS = Pace(3, True, 40, 100_000, 200_000, 0.1)
"""Learning as seldom as for ratios takes 12 % more samples (42 % of Gaussian noise under a delta).
"""


def pace_of(guarantee: Guarantee) -> Pace:
    """The pace for a claim."""
    return OF_RARE_EVENTS if guarantee.largest_ratio is None else OF_RATIOS
