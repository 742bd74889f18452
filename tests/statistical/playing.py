"""Audits by betting in few words, of mechanisms right at their claim.

Only of the pairs that follow from the claim: those that are searched for are in
`test_search_type_one`.
"""

from __future__ import annotations

import boundary
import numpy as np
from boundary import QUIET

from pytest_dp import audit, queries


def histogram(counts, eps, rng, size):
    return np.asarray(counts) + rng.laplace(scale=1 / eps, size=(size, len(counts)))


# Mechanisms whose true loss is `eps`, exactly.
AT_THEIR_CLAIM = {
    **boundary.AT_THEIR_CLAIM,
    "histogram": (
        histogram,
        lambda eps: {"eps": eps},
        {"inputs": queries(2), "neighbors": "one_query"},
    ),
}


def run(name, claimed, true, seed, **more):
    mechanism, params, inputs = AT_THEIR_CLAIM[name]
    keywords = {"vectorized": "size", "n_jobs": 1, "seed": seed, "search": (), **QUIET, **inputs}
    keywords |= {"method": "sequential", **more}
    return audit(mechanism, eps=claimed, params=params(true), **keywords)
