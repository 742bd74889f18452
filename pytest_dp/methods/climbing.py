"""The point at which one probability is as many times another as can be, by their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.optimize import minimize

from pytest_dp.basics.arrays import Floats

EXACTNESS = 0.01
"""Nats by which a probability may be too small, and within which a climb ends. Larger: climbs end
early; smaller: they take longer."""

Logs = Callable[[Floats], tuple[Floats, Floats]]
"""From points, one in each row, to the logarithms of two probabilities at each."""
STEP = 1e-6
"""Of finite differences. Derived: floats resolve 1e-16 of a probability, so that slopes are known
to 1e-10."""
OPTIMISED = 50
"""Steps of an optimisation. Given by the paper on DP-Finder."""


class _SpentError(Exception):
    """As often as allowed, the probabilities were computed."""


def climb_ratio(logs: Logs, start: Floats, low: Floats, high: Floats, least: float) -> Floats:
    """Return a local optimum within bounds where the first probability is about `least` or more.

    By sequential quadratic programming (SLSQP), with finite differences that are computed side by
    side. The start is returned where nothing better was found.
    """
    last: dict[bytes, tuple[float, Floats, float, Floats]] = {}
    best, evaluations = (-math.inf, start), 0

    def at(x: Floats) -> tuple[float, Floats, float, Floats]:
        """Return both logarithms, each with its gradient; remember the best point so far."""
        nonlocal best, evaluations
        if x.tobytes() not in last:
            evaluations += 1
            if evaluations > 2 * OPTIMISED:
                raise _SpentError
            inside = np.clip(x, low, high)
            steps = np.where(inside + STEP <= high, STEP, -STEP)
            p, q = logs(np.vstack([inside, inside + np.diag(steps)]))
            if evaluations == 1 or (p[0] >= math.log(least) - EXACTNESS and p[0] - q[0] > best[0]):
                best = p[0] - q[0], inside
            last.clear()
            last[x.tobytes()] = p[0], (p[1:] - p[0]) / steps, q[0], (q[1:] - q[0]) / steps
        return last[x.tobytes()]

    _, slope_p, _, slope_q = at(start)
    steepest = float(np.abs(slope_p - slope_q).max()) or 1.0  # so that first steps are of size 1
    options: Any = {"maxiter": OPTIMISED, "ftol": EXACTNESS}
    likely: Any = {
        "type": "ineq",
        "fun": lambda x: at(x)[0] - math.log(least),
        "jac": lambda x: at(x)[1],
    }
    optimise: Any = minimize  # whose types do not take gradients of arrays
    bounds = list(zip(low, high, strict=True))
    with suppress(_SpentError):
        optimise(
            lambda x: float(at(x)[2] - at(x)[0]) / steepest,
            start,
            jac=lambda x: (at(x)[3] - at(x)[1]) / steepest,
            method="SLSQP",
            bounds=bounds,
            constraints=[likely],
            options=options,
        )
    return best[1]
