"""Grids that outputs lie on: noise that was rounded before it was added to the answer shows them.

Outputs on one input are then that answer plus multiples of a step, and what remains of them modulo
the step is the same every time, and different on another input: one output tells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from pytest_dp.outputs.table import NUMBER, Floats, Ints, Table

ROUNDING = 5e-9, 2e-4
"""Below which a number counts as 0, relative to how far outputs spread, in common divisors: errors
of doubles grow to so much on the way, and those of single precision."""
ON = 1e-3
"""How close to the grid an output on it lies, relative to the step."""
SINGLE = 2.0**-20
"""Relative size below which powers of 2 are the digits of single-precision numbers."""
SHARE = 0.9
"""Of the outputs on one input, what has to lie on the grid: others were clipped, or are special."""
FEWEST, LOOKED_AT = 6, 48
"""Different outputs by which a grid is recognised, at least and at most."""
_SETS, _MANY = 6, 64
_NEAR_THE_END = 0.05


@dataclass(frozen=True, slots=True)
class Grid:
    """Where the outputs on an input lie: on `offset` plus multiples of `step`, but for `error`."""

    step: float
    offset: float
    error: float

    def holds(self, numbers: Floats) -> bool:
        """Whether nearly all of some numbers lie on it."""
        finite = numbers[np.isfinite(numbers)]
        room = max(ON * self.step, self.error) + 1e-13 * np.abs(finite)
        return bool(np.mean(np.abs(_around(finite - self.offset, self.step)) <= room) >= SHARE)


def grids(numbers: Floats) -> list[Grid | None]:
    """The coarsest grid that each column's numbers lie on, if there is one.

    Parameters
    ----------
    numbers : ndarray, shape (n, columns)
        Outputs on one input; NaN where there is none.
    """
    with np.errstate(all="ignore"):
        steps = np.concatenate([_steps(numbers[:LOOKED_AT], error) for error in ROUNDING])
        found: list[Grid | None] = [None] * numbers.shape[1]
        for column in _promising(steps).tolist():
            values = np.unique(numbers[:, column][np.isfinite(numbers[:, column])])
            if len(values) < FEWEST:
                continue
            exact = np.unique(steps[:, column][steps[:, column] > 0])[::-1].tolist()
            # Over many steps the error of one adds up, and people choose steps with few digits.
            candidates = dict.fromkeys([*(nice(step, ON * step) for step in exact), *exact])
            fits = (_fitted(values, step) for step in candidates)
            found[column] = next((grid for grid in fits if grid is not None), None)
        return found


def _steps(numbers: Floats, error: float) -> Floats:
    """Candidates for each column: common divisors of differences within small sets of outputs."""
    n = len(numbers)
    size = 4 if n >= 4 * _SETS else 3
    sets = min(_SETS, n // size)
    if sets < 2:
        return np.zeros((0, numbers.shape[1]))
    parts = numbers[: sets * size].reshape(sets, size, -1)
    # Sets of each column that hold an infinity, or no number, give NaN, which is no candidate.
    gaps = np.abs(parts[:, 1:] - parts[:, :1])
    spread = np.nanmax(gaps, axis=(0, 1), initial=0.0, where=np.isfinite(gaps))
    smallest, steps = error * spread, gaps[:, 0]
    for k in range(1, size - 1):
        steps = _divisor(steps, gaps[:, k], smallest)
    usable = np.isfinite(steps) & (steps > 4 * smallest)
    return np.where(usable, steps, 0.0)


def _promising(steps: Floats) -> Ints:
    """The columns with candidates; of very many, those of which two sets give the same."""
    if steps.shape[1] <= _MANY:
        return np.flatnonzero((steps > 0).any(axis=0))
    ordered = np.sort(steps, axis=0)
    same = np.diff(ordered, axis=0) <= ON * ordered[1:]
    return np.flatnonzero((same & (ordered[:-1] > 0)).any(axis=0))


def _divisor(one: Floats, other: Floats, smallest: Floats) -> Floats:
    """The greatest common divisor of real numbers, by Euclid's algorithm; up to `smallest`."""
    large, small = np.maximum(one, other), np.minimum(one, other)
    for _ in range(64):
        going = small > smallest
        if not going.any():
            break
        rest = np.abs(_around(large, np.where(going, small, 1.0)))
        large, small = np.where(going, small, large), np.where(going, rest, small)
    return large


def _around(numbers: Floats | float, step: Floats | float) -> Floats:
    """What is left of numbers beyond the nearest multiple of a step."""
    found: Floats = np.subtract(numbers, step * np.round(np.divide(numbers, step)))
    return found


def _fitted(values: Floats, step: float) -> Grid | None:
    """The grid with about this step; None if too few of the values lie on it."""
    start = values[len(values) // 2]
    for _ in range(2):  # the first fit shows which values belong to it
        multiples = np.round((values - start) / step)
        rest = values - start - step * multiples
        middle = _median_around(rest, step)
        rest = _around(rest - middle, step)
        on = np.abs(rest) <= ON * step + 1e-13 * np.abs(values)
        if on.mean() < SHARE or on.sum() < FEWEST:
            return None
        start += middle
        multiples = np.round((values[on] - start) / step)
        if len(np.unique(multiples)) < FEWEST:
            return None
        step = float(((values[on] - start) * multiples).sum() / (multiples**2).sum())
    error = float(np.max(np.abs(_around(values[on] - start, step))))
    error += 4e-16 * float(np.max(np.abs(values[on])))
    step = nice(step, error / float(np.max(np.abs(multiples))))
    if math.frexp(step)[0] == 0.5 and step < SINGLE * float(np.max(np.abs(values))):
        return None
    return Grid(step, float(start % step), 4 * error)


def _median_around(rest: Floats, step: float) -> float:
    """The value around which remainders lie, modulo a step: the median seen from each of three."""
    best = (-1, 0.0)
    for seen in (rest[0], rest[len(rest) // 2], rest[-1]):
        near = _around(rest - seen, step)
        close = np.abs(near) <= ON * step
        if close.sum() > best[0]:
            best = int(close.sum()), float(seen + np.median(near[close]))
    return best[1]


def nice(number: float, error: float) -> float:
    """A number that is easier to write, at most so far away: with few digits, or 1 / k."""
    shorter = [float(f"{number:.{digits}g}") for digits in range(1, 13)]
    inverse = round(1 / number) if 0 < number < 1 else 0
    if inverse:
        shorter.insert(3, 1 / inverse)
    return next((short for short in shorter if abs(short - number) <= error), number)


@dataclass(frozen=True, slots=True)
class Remainder:
    """``round((x + shift) % step, digits)``: what a step leaves of a number or its log."""

    step: float
    shift: float
    digits: int
    log: bool = False
    place: str = "x"

    def values(self, table: Table) -> Floats:
        """Its value for every output, shape (n,); NaN where there is no number."""
        numbers, codes = table.leaf(self.place)
        return self.of(np.where(codes == NUMBER, numbers, np.nan))

    def of(self, numbers: Floats) -> Floats:
        """For all numbers; NaN where there is none, or none that is finite."""
        with np.errstate(all="ignore"):
            whole = np.log(np.abs(numbers)) if self.log else numbers
            shifted = whole + self.shift if self.shift else whole
            rest: Floats = np.round(np.mod(shifted, self.step), self.digits).astype(np.float64)
        return rest

    def __str__(self) -> str:
        of = f"log(abs({self.place}))" if self.log else self.place
        inverse = round(1 / self.step)
        step = repr(self.step)
        if len(step) > 8 and inverse and 1 / inverse == self.step:
            step = f"(1 / {inverse})"
        inner = f"({of} + {self.shift!r})" if self.shift else of
        return f"round({inner} % {step}, {self.digits})"


def remainders(places: list[str], one: Floats, two: Floats) -> list[Remainder]:
    """What to look at where the grids of outputs on D and on D' tell them apart.

    Parameters
    ----------
    places : list of str
    one, two : ndarray, shape (n, places)
        Numbers at these places in outputs on D and on D'; NaN where there is none.
    """
    found = [replace(what, place=places[column]) for column, what in _by_column(one, two)]
    with np.errstate(all="ignore"):
        logs = [np.log(np.abs(side)) for side in (one, two)]
    seen = {what.place for what in found}
    more = [
        replace(what, place=places[column], log=True)
        for column, what in _by_column(*logs)
        if places[column] not in seen
    ]
    return found + more


def _by_column(one: Floats, two: Floats) -> list[tuple[int, Remainder]]:
    both = enumerate(zip(grids(one), grids(two), strict=True))
    return [
        (column, what)
        for column, (first, second) in both
        for what in _telling(first, second, one[:, column], two[:, column])
    ]


def _telling(first: Grid | None, second: Grid | None, one: Floats, two: Floats) -> list[Remainder]:
    known = [
        grid
        for grid, others in ((first, two), (second, one))
        if grid is not None and not grid.holds(others)
    ]
    if len(known) == 2 and abs(known[0].step - known[1].step) <= ON * known[0].step:
        return [_remainder(known)]
    return [_remainder([grid]) for grid in known]


def _remainder(known: list[Grid]) -> Remainder:
    """With so many digits that grids differ, but errors do not, and cut where there are none."""
    step = known[0].step
    offsets = [grid.offset for grid in known]
    gap = min([step / 10, *(abs(float(_around(a - offsets[0], step))) for a in offsets[1:])])
    shift = 0.0
    for part in (0.0, 0.5, 0.25, 0.75):
        shift = nice(part * step, 0.01 * step) if part else 0.0
        ends = [((offset + shift) % step) / step for offset in offsets]
        if all(_NEAR_THE_END < end < 1 - _NEAR_THE_END for end in ends):
            break
    finest = 20 * max(grid.error for grid in known)
    digits = math.ceil(-math.log10(max(gap / 100, finest)))
    return Remainder(step, shift, digits)
