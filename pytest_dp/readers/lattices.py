"""Grids that outputs lie on: noise that was rounded before it was added to the answer shows them.

Outputs on one input are then that answer plus multiples of a step, and what remains of them modulo
the step is the same every time, and different on another input: one output tells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.outputs.feature import KINDS, Feature, FeatureKind, column_of_argument, numeric
from pytest_dp.outputs.features import Sample
from pytest_dp.outputs.noise_relations import inverse_of, nice
from pytest_dp.outputs.table import Table

DIVISOR_ERRORS = (5e-9, 2e-4)
"""Relative errors of common divisors, of doubles and in single precision. Larger: what is no
multiple counts as one; smaller: rounding hides the grid."""
ON_GRID = 1e-3
"""Share of a step that a number may be off a grid. Larger: other numbers count as on it; smaller:
rounding takes them off."""
SINGLE_ERRORS = 2.0**-20
"""Relative error of single precision, or of a long sum. Larger: fine grids are missed; smaller:
rounding is taken for a grid."""
MAX_DIFFERENCES = 12
"""Differences whose common divisors are looked for. More take longer; fewer: grids are missed by
chance."""
MIN_SHARE_ON_GRID = 0.9
"""Share of the numbers that are on a grid. Larger: grids with exceptions are missed; smaller:
chance makes grids."""
MIN_NUMBERS = 6
"""Numbers that show a grid, at least. Fewer: chance makes grids; more: grids of few outputs are
missed."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Where the outputs on an input lie: on `offset` plus multiples of `step`, but for `error`."""

    step: float
    offset: float
    error: float

    def holds(self, numbers: Floats) -> bool:
        """Return whether nearly all numbers lie on the grid."""
        finite = numbers[np.isfinite(numbers)]
        if not len(finite):
            return True  # nothing that says otherwise
        room = max(ON_GRID * self.step, self.error) + 1e-13 * np.abs(finite)
        return bool(
            np.mean(np.abs(_residue(finite - self.offset, self.step)) <= room) >= MIN_SHARE_ON_GRID
        )


def grids(numbers: Floats) -> list[Grid | None]:
    """Return the coarsest grid that each column's numbers lie on, if there is one.

    The numbers are outputs on one input, shape (n, columns); NaN where there is none.
    """
    coarsest: list[Grid | None] = [None] * numbers.shape[1]
    with np.errstate(all="ignore"):
        for column, steps in _candidates(numbers).items():
            values = np.unique(numbers[:, column][np.isfinite(numbers[:, column])])
            # An error of the step adds up over many steps; people choose steps with few digits.
            short = [nice(step, ON_GRID * step) for step in steps]
            fits = (_fit_grid(values, step) for step in dict.fromkeys([*short, *steps]))
            coarsest[column] = next((grid for grid in fits if grid is not None), None)
    return coarsest


def _candidates(numbers: Floats) -> dict[int, list[float]]:
    """Return the possible steps of each column, largest first: common divisors of differences.

    Those are the step, or a multiple, and count if two of them agree. Of three differences they
    would be the step more often, but errors grow too far.
    """
    sets = min(MAX_DIFFERENCES, len(numbers) - 3)
    if sets < MIN_NUMBERS:
        return {}
    # An infinity, or no number at all, gives NaN, which is no candidate.
    differences, others = (np.abs(numbers[:sets] - numbers[k : sets + k]) for k in (1, 3))
    spread = np.max(differences, axis=0, initial=0.0, where=np.isfinite(differences))
    width = numbers.shape[1]
    smallest = np.concatenate([error * spread for error in DIVISOR_ERRORS])
    steps = _divisor(
        np.tile(differences, len(DIVISOR_ERRORS)), np.tile(others, len(DIVISOR_ERRORS)), smallest
    )
    steps = np.sort(np.where(steps > 4 * smallest, steps, 0.0), axis=0)
    same = (np.diff(steps, axis=0) <= ON_GRID * steps[1:]) & (steps[:-1] > 0)
    by_column: dict[int, list[float]] = {}
    for column in np.flatnonzero(same.any(axis=0)).tolist():
        by_column.setdefault(column % width, []).extend(steps[1:, column][same[:, column]].tolist())
    return {column: sorted(set(known), reverse=True) for column, known in by_column.items()}


def _divisor(numbers: Floats, others: Floats, smallest: Floats) -> Floats:
    """Return the greatest common divisors of real numbers, by Euclid down to `smallest`."""
    large, small = np.maximum(numbers, others), np.minimum(numbers, others)
    for _ in range(64):
        going = small > smallest
        if not going.any():
            break
        rest = np.abs(_residue(large, np.where(going, small, 1.0)))
        large, small = np.where(going, small, large), np.where(going, rest, small)
    return large


def _residue(numbers: Floats | float, step: Floats | float) -> Floats:
    """Return numbers less the nearest multiple of a step."""
    rest: Floats = np.subtract(numbers, step * np.round(np.divide(numbers, step)))
    return rest


def _fit_grid(values: Floats, step: float) -> Grid | None:
    """Fit a grid of about this step; None if too few of the values lie on it."""
    # No remainder of numbers so close to 0 could be rounded: `_remainder` takes three more digits.
    if len(values) < MIN_NUMBERS or math.isinf(1e4 / step):
        return None
    start = values[len(values) // 2]
    for _ in range(2):  # the first fit shows which values belong to it
        multiples = np.round((values - start) / step)
        rest = values - start - step * multiples
        middle = _median_around(rest, step)
        rest = _residue(rest - middle, step)
        on = np.abs(rest) <= ON_GRID * step + 1e-13 * np.abs(values)
        if on.mean() < MIN_SHARE_ON_GRID or on.sum() < MIN_NUMBERS:
            return None
        start += middle
        multiples = np.round((values[on] - start) / step)
        if len(np.unique(multiples)) < MIN_NUMBERS:
            return None
        step = float(((values[on] - start) * multiples).sum() / (multiples**2).sum())
    error = float(np.max(np.abs(_residue(values[on] - start, step))))
    error += 4e-16 * float(np.max(np.abs(values[on])))
    step = nice(step, error / float(np.max(np.abs(multiples))))
    if math.frexp(step)[0] == 0.5 and step < SINGLE_ERRORS * float(np.max(np.abs(values))):
        return None
    return Grid(step, float(start % step), 4 * error)


def _median_around(rest: Floats, step: float) -> float:
    """Return the value around which residues modulo a step lie: the best of three medians."""
    best = (0, 0.0)
    for seen in (rest[0], rest[len(rest) // 2], rest[-1]):
        near = _residue(rest - seen, step)
        close = np.abs(near) <= ON_GRID * step
        if close.sum() > best[0]:
            best = int(close.sum()), float(seen + np.median(near[close]))
    return best[1]


@dataclass(frozen=True, slots=True)
class Remainder:
    """``round((x + shift) % step, digits)``: what a step leaves of a number."""

    step: float
    shift: float
    digits: int
    place: str = "x"

    def values(self, table: Table) -> Floats:
        """Return its value for every output, shape (n,); NaN where there is no number."""
        return self.of(table.leaf(self.place)[0])

    def of(self, numbers: Floats) -> Floats:
        """Return the remainders of numbers; NaN where a number is not finite."""
        with np.errstate(all="ignore"):
            shifted = numbers + self.shift if self.shift else numbers
            rest: Floats = np.round(np.mod(shifted, self.step), self.digits).astype(np.float64)
        return rest

    @property
    def written_step(self) -> str:
        """The step, as 1 / k where that is shorter."""
        inverse = inverse_of(self.step)
        step = repr(self.step)
        return f"1 / {inverse}" if len(step) > 8 and inverse and 1 / inverse == self.step else step

    def __str__(self) -> str:
        step = f"({self.written_step})" if "/" in self.written_step else self.written_step
        inner = f"({self.place} + {self.shift!r})" if self.shift else self.place
        return f"round({inner} % {step}, {self.digits})"


def remainders(places: list[str], numbers1: Floats, numbers2: Floats) -> list[Remainder]:
    """Return remainders by which the grids of outputs on D and on D' tell them apart.

    The numbers are those at the places, shape (n, places); NaN where there is none.
    """
    rows = min(len(numbers1), len(numbers2))
    both = grids(np.concatenate([numbers1[:rows], numbers2[:rows]], axis=1))
    pairs = zip(both[: len(places)], both[len(places) :], strict=True)
    return [
        replace(what, place=place)
        for column, (place, pair) in enumerate(zip(places, pairs, strict=True))
        for what in _informative(*pair, numbers1[:, column], numbers2[:, column])
    ]


def _informative(
    grid1: Grid | None, grid2: Grid | None, numbers1: Floats, numbers2: Floats
) -> list[Remainder]:
    known = [
        grid
        for grid, others in ((grid1, numbers2), (grid2, numbers1))
        if grid is not None and not grid.holds(others)
    ]
    if len(known) == 2 and abs(known[0].step - known[1].step) <= ON_GRID * known[0].step:
        return [_remainder(known)]
    return [_remainder([grid]) for grid in known]


def _remainder(known: list[Grid]) -> Remainder:
    """Return a remainder with digits that separate grids but not errors, away from its ends."""
    step = known[0].step
    offsets = [grid.offset for grid in known]
    gap = min([step / 10, *(abs(float(_residue(a - offsets[0], step))) for a in offsets[1:])])
    shift = 0.0
    for part in (0.0, 0.5, 0.25, 0.75):
        shift = nice(part * step, 0.01 * step) if part else 0.0
        ends = [((offset + shift) % step) / step for offset in offsets]
        if all(0.05 < end < 1 - 0.05 for end in ends):
            break
    finest = 20 * max(grid.error for grid in known)
    digits = math.ceil(-math.log10(max(gap / 100, finest)))
    return Remainder(step, shift, digits)


KINDS["remainder"] = FeatureKind(numeric(column_of_argument), lambda *_: None, discrete=True)


def lattice_features(sample: Sample) -> list[Feature]:
    """Return remainders in which rounded noise cancels, if these outputs have any."""
    if not sample.many or sample.sides is None:
        return []
    found = [Feature(str(one), "remainder", one) for one in remainders(*sample.sides)]
    return sample.most_distinguishing(found)
