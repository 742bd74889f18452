"""Logistic regression, as in scipy and scikit-learn, without what those load.

Every worker process scores outputs; loading scipy would take it longer than most of its work.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints

MAX_STEPS = 100
"""Steps of Newton's method, at most. Only the time depends on it, but where one number tells all.
"""
LAST_STEP = 1e-8
"""Step in every weight below which a fit has converged. Larger: weights are less exact; smaller: a
step more."""


def expit(log_odds: Any) -> Floats:
    """Return probabilities of log odds, to full relative precision."""
    odds = np.asarray(log_odds, np.float64)
    small = np.exp(-np.abs(odds))
    probabilities: Floats = np.where(odds >= 0, 1.0, small) / (1.0 + small)
    return probabilities


def logit(probability: Any) -> Floats:
    """Return the log odds of probabilities; infinite at 0 and 1."""
    p = np.asarray(probability, np.float64)
    with np.errstate(divide="ignore"):
        odds: Floats = np.log(p) - np.log1p(-p)
    return odds


def logistic(basis: Floats, hits: Floats | Ints, runs: Floats | Ints, precision: Floats) -> Floats:
    """Return weights of a ridge logistic regression on grouped outcomes, by Newton's method.

    The log odds are a weighted sum of the rows of `basis`, shape (k, groups). The prior of the k
    weights has mean 0 and this `precision`. Each step is at most 1 in every weight, so that none
    overshoots far.
    """
    weights = np.zeros(len(basis))
    for _ in range(MAX_STEPS):
        p = expit(weights @ basis)
        curvature = (basis * (runs * p * (1 - p))) @ basis.T + np.diag(precision)
        slope = basis @ (hits - runs * p) - precision * weights
        step = np.linalg.solve(curvature, slope)
        weights = weights + np.clip(step, -1, 1)
        if np.abs(step).max() < LAST_STEP:
            break
    return weights
