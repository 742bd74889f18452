"""How much probability lies beyond ``exp(eps)`` times that of the neighbour: δ(ε), with a band.

The upper end takes the largest loss in each cell, and rounds it up; the lower end merges each cell
to one output, and rounds down. So the truth lies between, but for rounding of floats.

Source: Koskela, Jälkö, Honkela, "Computing tight differential privacy guarantees using FFT", 2020.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.signal import fftconvolve

from pytest_dp.analytic.comparing import Case
from pytest_dp.analytic.experiments import Cells, Experiment
from pytest_dp.arrays import Floats

CELLS = 40_000
"""Of one experiment."""
STEPS = 1 << 17
"""Of the grid of losses of several."""
NEGLIGIBLE = 1e-15
"""Probability that may be taken for an infinite loss, or for none."""
FLOATS = 1e-10
"""What rounding of floats may add up to."""


@dataclass(frozen=True, slots=True)
class Losses:
    """A distribution of losses under P; what is missing from 1 is below all of them.

    Attributes
    ----------
    p : ndarray
    loss : ndarray
        Increasing or not; may be infinite.
    """

    p: Floats
    loss: Floats

    def beyond(self, eps: float) -> float:
        """The expectation of ``1 - exp(eps - loss)``, where that is positive."""
        with np.errstate(over="ignore"):
            return float(np.sum(self.p * -np.expm1(np.minimum(eps - self.loss, 0.0))))


def delta(cases: Sequence[Case], eps: float, *, forward: bool) -> tuple[float, float]:
    """The hockey-stick divergence of P from Q; of Q from P if not `forward`.

    Returns
    -------
    lower, upper : float
    """
    lower = upper = 0.0
    for case in cases:
        log_p, log_q = (case.log_p, case.log_q) if forward else (case.log_q, case.log_p)
        if log_p == -math.inf:
            continue
        weight = math.exp(log_p)
        if log_q == -math.inf:
            lower, upper = lower + weight, upper + weight
            continue
        least, most = _within(case.experiments, eps - (log_p - log_q), forward)
        lower, upper = lower + weight * least, upper + weight * most
    return max(lower - FLOATS, 0.0), min(upper + FLOATS, 1.0)


def _within(experiments: list[Experiment], eps: float, forward: bool) -> tuple[float, float]:
    cells: list[Cells] = []
    more = 0.0
    for experiment in experiments:
        cut = experiment.cells(CELLS)
        if cut is not None:
            cells.append(cut if forward else cut.turned())
        else:
            largest = experiment.largest()
            more += largest.forward if forward else largest.backward
    if not cells:
        return max(-math.expm1(eps), 0.0), max(-math.expm1(min(eps - more, 0.0)), 0.0)
    lower = _composed([_merged(each) for each in cells], up=False)
    upper = _composed([Losses(each.p, each.high) for each in cells], up=True)
    return lower.beyond(eps), upper.beyond(eps - more)


def _merged(cells: Cells) -> Losses:
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.log(cells.p) - np.log(cells.q)
    return Losses(cells.p, np.nan_to_num(loss, nan=-np.inf, posinf=np.inf, neginf=-np.inf))


def _composed(parts: list[Losses], *, up: bool) -> Losses:
    """The sum of independent losses, on a grid if there are several."""
    if len(parts) == 1:
        return parts[0]
    bounds = [_bounds(part, NEGLIGIBLE / len(parts)) for part in parts]
    width = sum(high - low for low, high in bounds)
    step = max(width, 1e-9) / STEPS
    total, start, infinite = np.ones(1), 0, 1.0
    for part, bound in zip(parts, bounds, strict=True):
        masses, first, lost = _on_grid(part, bound, step, up=up)
        total = np.maximum(fftconvolve(total, masses), 0.0)
        start, infinite = start + first, infinite * (1 - lost)
    loss = (start + np.arange(len(total))) * step
    return Losses(np.append(total, 1 - infinite), np.append(loss, np.inf))


def _bounds(part: Losses, negligible: float) -> tuple[float, float]:
    """Between which finite losses all but so much lies."""
    finite = np.isfinite(part.loss)
    order = np.argsort(part.loss[finite])
    loss, p = part.loss[finite][order], part.p[finite][order]
    if not len(loss):
        return 0.0, 0.0
    first = int(np.searchsorted(np.cumsum(p), negligible))
    last = len(p) - 1 - int(np.searchsorted(np.cumsum(p[::-1]), negligible))
    return float(loss[min(first, len(p) - 1)]), float(loss[max(last, 0)])


def _on_grid(
    part: Losses, bound: tuple[float, float], step: float, *, up: bool
) -> tuple[Floats, int, float]:
    """Masses by steps, the first step, and the mass of infinite losses.

    Rounding down, losses below the grid are left out, and those above it are at its end; rounding
    up, they are at its beginning, and infinite.
    """
    low, high = bound
    first, last = math.floor(low / step), math.ceil(high / step)
    above, below = part.loss > last * step, part.loss < first * step
    round_ = np.ceil if up else np.floor
    at = round_(np.clip(part.loss, first * step, last * step) / step).astype(np.int64) - first
    infinite = above if up else np.isposinf(part.loss)
    kept = ~infinite if up else ~(infinite | below)
    masses = np.bincount(at[kept], part.p[kept], minlength=last - first + 1)
    return masses.astype(float), first, float(part.p[infinite].sum())
