"""A goodness-of-fit test of an enumerated distribution, by outputs of real runs."""

from __future__ import annotations

import numpy as np

from pytest_dp.arrays import Ints
from pytest_dp.evidence.goodness_of_fit import log_e_value
from pytest_dp.exact.distribution import Distribution


def evidence_against_distribution(marks: Ints, distribution: Distribution) -> float:
    """Evidence that outputs with these hashes are not of a distribution: the log of an e-value."""
    order = np.argsort(distribution.marks)
    of_outcomes = distribution.marks[order]
    at = np.minimum(np.searchsorted(of_outcomes, marks), len(of_outcomes) - 1)
    inside = of_outcomes[at] == marks
    counts = np.bincount(order[at[inside]], minlength=len(order))
    outside = int((~inside).sum())
    return log_e_value(counts, distribution.probabilities, outside, distribution.residual)
