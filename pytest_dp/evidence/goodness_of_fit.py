"""Whether outputs look as if they came from a distribution that is known."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from pytest_dp.arrays import Floats, Ints


def log_e_value(counts: Ints, probabilities: Floats, outside: int, residual: float) -> float:
    """Evidence, as a logarithm, that outputs are not independent draws from a known distribution.

    The likelihood of the counts under a mixture of all distributions (Dirichlet's), over the
    largest that they have under the known one. Its mean is at most 1 if that is true, so it reaches
    1 / a with probability at most a, at any time (Ville's inequality). It is infinite if something
    came that cannot.

    The probabilities are lower bounds and add up to 1 - `residual`, which any outcome may have in
    addition. `outside` counts outputs that are none of the outcomes.
    """
    seen = np.append(counts, outside).astype(float)
    allowed = np.minimum(np.append(probabilities, 0.0) + residual, 1.0)
    if (seen[allowed == 0] > 0).any():
        return math.inf
    seen, allowed = seen[allowed > 0], allowed[allowed > 0]
    # Half around the known distribution, half uniform: rare outcomes that come count at once.
    prior = (len(allowed) * allowed / allowed.sum() + 1) / 4
    mixed = gammaln(prior.sum()) - gammaln(prior.sum() + seen.sum())
    mixed += float(np.sum(gammaln(prior + seen) - gammaln(prior)))
    return float(mixed - seen @ np.log(allowed))
