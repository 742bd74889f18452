"""The logistic function and its inverse, as in scipy.special, without what that loads.

Every worker process scores outputs; loading scipy would take it longer than most of its work.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pytest_dp.arrays import Floats


def expit(log_odds: Any) -> Floats:
    """Probabilities of log odds, to full relative precision."""
    odds = np.asarray(log_odds, np.float64)
    small = np.exp(-np.abs(odds))
    probabilities: Floats = np.where(odds >= 0, 1.0, small) / (1.0 + small)
    return probabilities


def logit(probability: Any) -> Floats:
    """Log odds of probabilities; infinite at 0 and 1."""
    p = np.asarray(probability, np.float64)
    with np.errstate(divide="ignore"):
        odds: Floats = np.log(p) - np.log1p(-p)
    return odds
