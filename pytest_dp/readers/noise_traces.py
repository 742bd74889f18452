"""Traces that noise leaves behind, where it cancels out: shared noise, and noise that was rounded.

If ``a = s + z`` and ``b = c + 2 z``, then ``2 a - b`` has no noise left; and if the noise is a
factor of both, the difference of their logarithms has none. Outputs to which noise was
added in multiples of a step leave the same remainder modulo the step every time. Such traces are
looked for in outputs on one input at a time, since only the noise moves those.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.outputs.feature import KINDS, Feature, FeatureKind, column_of_argument, numeric
from pytest_dp.outputs.features import Sample
from pytest_dp.outputs.table import Table

NEARLY_ALL = 0.9
"""Share of the outputs that are the same, or for which a trace holds. Larger: traces with
exceptions are missed; smaller: chance makes one."""
MAX_ROWS = 256
"""Outputs that a relation is fitted on. More take longer; fewer see relations of fewer numbers."""
EXACT_RESIDUAL = 1e-5
"""Share of its noise that an exact relation leaves. Larger: near relations count as exact;
smaller: rounding hides exact ones."""
NEARLY_PARALLEL = 1e-8
"""How far the correlation of two numbers may be from 1 for a relation to be tried. Larger: more is
tried in vain; smaller: rounding hides exact ones."""
MAX_WIDTH = 12
"""Numbers of an output among which relations of more than two are looked for. More take longer, and
need more outputs; fewer miss them."""
MIN_SPARE = 4
"""Outputs beyond the numbers of a relation, at least. Fewer: chance makes one; more: long
relations are missed."""
MIN_ROWS = 8
"""Outputs that a relation is looked for in, at least. Fewer: chance makes one."""
MAX_RELATIONS = 128
"""Relations that are features. More learn noise by heart; fewer miss what tells inputs apart."""
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
"""Differences whose common divisors are looked for. More take longer, and let errors grow; fewer:
multiples of the step are found."""
MIN_NUMBERS = 6
"""Numbers that show a grid, at least. Fewer: chance makes grids; more: grids of few outputs are
missed."""


@dataclass(frozen=True, slots=True)
class NoiseRelation:
    """A weighted sum of a few numbers of an output, or of the logarithms of their sizes."""

    places: tuple[str, ...]
    weights: tuple[float, ...]
    digits: int | None = None
    """To which it is rounded, where it is exact but for errors of floating-point numbers."""
    of_logs: bool = False

    def values(self, table: Table) -> Floats:
        """Return its value for every output, shape (n,); NaN where some place has no number."""
        return self.of([table.leaf(place)[0] for place in self.places])

    def of(self, numbers: list[Floats]) -> Floats:
        """Return its values for numbers at its places."""
        with np.errstate(all="ignore"):
            total = np.zeros(len(numbers[0]))
            for number, weight in zip(numbers, self.weights, strict=True):
                total = total + weight * (np.log(np.abs(number)) if self.of_logs else number)
            return total if self.digits is None else np.round(total, self.digits)

    def __str__(self) -> str:
        text = ""
        for place, weight in zip(self.places, self.weights, strict=True):
            size = "" if abs(weight) == 1 else f"{abs(weight):.12g}"
            text += (" + " if weight > 0 else " - ") + (f"{size}*" if size else "")
            text += f"log(abs({place}))" if self.of_logs else place
        text = text.removeprefix(" + ")
        return text if self.digits is None else f"round({text}, {self.digits})"


@dataclass(frozen=True, slots=True)
class SharedNumbers:
    """Numbers of an output that use the same random numbers, and what is left without these."""

    relation: NoiseRelation
    on_d: float
    on_d2: float

    def __str__(self) -> str:
        who = "both" if len(self.relation.places) == 2 else "all of its numbers"
        return f"{self.relation} has no noise: {who} use the same random numbers"


def relations(places: list[str], numbers1: Floats, numbers2: Floats) -> list[NoiseRelation]:
    """Return relations among numbers that hold on one input and distinguish it from the other.

    The numbers are those at the places, shape (n, places); NaN where there is none.
    """
    if len(places) < 2:
        return []
    by_key: dict[tuple[object, ...], NoiseRelation] = {}
    with np.errstate(all="ignore"):
        for side, of_logs in itertools.product((numbers1, numbers2), (False, True)):
            columns, usable = _usable(np.log(np.abs(side)) if of_logs else side)
            for weights in _exact_relations(usable):
                at = np.flatnonzero(weights)
                named = tuple(places[columns[k]] for k in at)
                relation = NoiseRelation(named, tuple(weights[at].tolist()), of_logs=of_logs)
                involved = [numbers[:, columns[at]] for numbers in (side, numbers1, numbers2)]
                rounded = _round_relation(relation, *involved)
                if rounded is not None:
                    by_key.setdefault((rounded.places, rounded.weights, of_logs), rounded)
    return list(by_key.values())


def without_noise(places: list[str], numbers1: Floats, numbers2: Floats) -> SharedNumbers | None:
    """Return the shortest relation that has no noise on either input, if there is any.

    Parameters are those of `relations`.
    """
    found = []
    with np.errstate(all="ignore"):
        for relation in relations(places, numbers1, numbers2):
            columns = [places.index(place) for place in relation.places]
            sides = [relation.of(list(side[:, columns].T)) for side in (numbers1, numbers2)]
            sides = [values[np.isfinite(values)] for values in sides]
            if all(len(values) and (values == values[0]).mean() > NEARLY_ALL for values in sides):
                here, there = (float(np.median(values)) for values in sides)
                found.append(SharedNumbers(replace(relation, digits=None), here, there))
    return min(found, key=lambda shared: len(shared.relation.places), default=None)


def _usable(side: Floats) -> tuple[Ints, Floats]:
    """Return the columns that vary, and their numbers in outputs that have all of them."""
    finite = np.isfinite(side)
    columns = np.flatnonzero(finite.mean(axis=0) > 0.75)
    rows = finite[:, columns].all(axis=1)
    usable = side[np.ix_(rows, columns)][:MAX_ROWS]
    if len(usable) < MIN_ROWS:
        return columns[:0], usable[:, :0]
    spread = np.median(np.abs(usable - np.median(usable, axis=0)), axis=0)
    varies = spread > EXACT_RESIDUAL * 1e-6 * np.abs(np.median(usable, axis=0))
    return columns[varies], usable[:, varies]


def _exact_relations(numbers: Floats) -> list[Floats]:
    """Find exact relations, as weights of columns: each column is explained by earlier ones."""
    n, width = numbers.shape
    if width < 2:
        return []
    x, scales = _scaled_alike(numbers)
    parallel = np.abs(x.T @ x) > 1 - NEARLY_PARALLEL
    most = min(n - 1 - MIN_SPARE, MAX_WIDTH) if width <= MAX_WIDTH else 0
    free: list[int] = []
    relations: list[Floats] = []
    for j in range(width):
        weights = None
        if parallel[:j, j].any():
            weights = _explain_column(x, scales, [int(np.argmax(parallel[:j, j]))], j)
        if weights is None and 1 < len(free) <= most:
            weights = _explain_column(x, scales, free, j)
        if weights is None:
            free.append(j)
        else:
            relations.append(weights)
    return relations[:MAX_RELATIONS]


def _scaled_alike(numbers: Floats) -> tuple[Floats, Floats]:
    """Return columns around their means with squares that sum to 1, and their divisors."""
    largest = np.abs(numbers).max(axis=0)
    x = numbers / largest
    x = x - x.mean(axis=0)
    sizes = np.sqrt((x**2).sum(axis=0))
    return x / sizes, largest * sizes


def _explain_column(x: Floats, scales: Floats, by: list[int], j: int) -> Floats | None:
    """Return the weights of a column less its regression on others, if the residual is tiny."""
    slopes = np.linalg.lstsq(x[:, by], x[:, j], rcond=1e-9)[0]
    usual = EXACT_RESIDUAL * np.median(np.abs(x[:, j]))
    if not np.median(np.abs(x[:, j] - x[:, by] @ slopes)) <= usual:
        return None
    weights = np.zeros(x.shape[1])
    for i, slope in zip(by, slopes.tolist(), strict=True):
        if abs(slope) * np.median(np.abs(x[:, i])) > 10 * usual:
            weight = slope * float(scales[j] / scales[i])
            weights[i] = -math.copysign(nice(abs(weight), 1e-4 * abs(weight)), weight)
    weights[j] = 1.0
    return _with_integer_weights(weights)


def _with_integer_weights(weights: Floats) -> Floats:
    """Scale weights to integers where that is possible, else to a first coefficient of 1."""
    at = np.flatnonzero(weights)
    scaled: Floats = weights / weights[at[0]]
    for times in range(1, 13):
        integers: Floats = np.round(scaled * times)
        if np.all(np.abs(integers - scaled * times) <= 1e-4 * times):
            return integers
    return scaled


def _round_relation(
    relation: NoiseRelation, side: Floats, numbers1: Floats, numbers2: Floats
) -> NoiseRelation | None:
    """Round a relation to its exact digits; None if it does not distinguish D from D'."""
    values = relation.of(list(side.T))
    middle = float(np.median(values[np.isfinite(values)]))
    error = 20 * float(np.nanquantile(np.abs(values - middle), 0.95))
    error = max(error, 1e-15 * abs(middle), 1e-300)
    away = [np.abs(relation.of(list(numbers.T)) - middle) for numbers in (numbers1, numbers2)]
    away = [gaps[np.isfinite(gaps)] for gaps in away]
    if not all(map(len, away)) or min(np.mean(gaps <= error) for gaps in away) > NEARLY_ALL:
        return None
    error = max(error, 1e-4 * float(max(map(np.median, away))))
    return replace(relation, digits=math.floor(-math.log10(error)))


def nice(number: float, error: float) -> float:
    """Return a number within `error` that has few digits, if there is one."""
    shorter = (float(f"{number:.{digits}g}") for digits in range(1, 13))
    return next((short for short in shorter if abs(short - number) <= error), number)


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
        tolerance = max(ON_GRID * self.step, self.error) + 1e-13 * np.abs(finite)
        off = np.abs(_residue(finite - self.offset, self.step))
        return bool(np.mean(off <= tolerance) >= NEARLY_ALL)


def grids(numbers: Floats) -> list[Grid | None]:
    """Return the coarsest grid that each column's numbers lie on, if there is one.

    The numbers are outputs on one input, shape (n, columns); NaN where there is none.
    """
    coarsest: list[Grid | None] = [None] * numbers.shape[1]
    if len(numbers) <= MIN_NUMBERS:
        return coarsest
    with np.errstate(all="ignore"):
        differences = np.abs(np.diff(numbers[: MAX_DIFFERENCES + 1], axis=0))
        differences[~np.isfinite(differences)] = 0.0
        for error in DIVISOR_ERRORS:
            smallest = error * differences.max(axis=0)
            steps = differences[0]
            for others in differences[1:]:
                steps = _common_divisors(steps, others, smallest)
            for column in np.flatnonzero(steps > 4 * smallest).tolist():
                if coarsest[column] is None:
                    coarsest[column] = _fit_grid(numbers[:, column], float(steps[column]))
    return coarsest


def _common_divisors(numbers: Floats, others: Floats, smallest: Floats) -> Floats:
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


def _fit_grid(numbers: Floats, step: float) -> Grid | None:
    """Fit a grid of about this step; None if the numbers do not lie on it, or are too few."""
    values = np.unique(numbers[np.isfinite(numbers)])
    if len(values) < MIN_NUMBERS:
        return None
    multiples = np.round((values - values[len(values) // 2]) / step)
    # No remainder of numbers so close to 0 could be rounded: `_remainder` takes three more digits.
    if len(np.unique(multiples)) < MIN_NUMBERS or math.isinf(1e4 / step):
        return None
    step, offset = map(float, np.polyfit(multiples, values, 1))
    largest = float(np.max(np.abs(values)))
    error = float(np.max(np.abs(values - offset - step * multiples))) + 4e-16 * largest
    if not error <= ON_GRID * step + 1e-13 * largest:
        return None
    step = nice(step, error / float(np.max(np.abs(multiples))))
    of_floats = math.isclose(step, 2.0 ** round(math.log2(step)), rel_tol=1e-9)
    if of_floats and step < SINGLE_ERRORS * largest:
        return None
    return Grid(step, offset % step, 4 * error)


@dataclass(frozen=True, slots=True)
class Remainder:
    """``round((x + shift) % step, digits)``: what a step leaves of a number."""

    step: float
    shift: float
    digits: int
    place: str = "x"

    def values(self, table: Table) -> Floats:
        """Return its value for every output, shape (n,); NaN where there is no finite number."""
        with np.errstate(all="ignore"):
            shifted: Floats = table.leaf(self.place)[0] + self.shift
            return np.round(np.mod(shifted, self.step), self.digits).astype(np.float64)

    def __str__(self) -> str:
        inner = f"({self.place} + {self.shift!r})" if self.shift else self.place
        return f"round({inner} % {self.step!r}, {self.digits})"


def remainders(places: list[str], numbers1: Floats, numbers2: Floats) -> list[Remainder]:
    """Return remainders by which the grids of outputs on D and on D' tell them apart.

    The numbers are those at the places, shape (n, places); NaN where there is none.
    """
    found = []
    for at, (place, *pair) in enumerate(zip(places, grids(numbers1), grids(numbers2), strict=True)):
        others = numbers2[:, at], numbers1[:, at]
        known = [
            grid
            for grid, elsewhere in zip(pair, others, strict=True)
            if grid is not None and not grid.holds(elsewhere)
        ]
        if len(known) == 2 and abs(known[0].step - known[1].step) <= ON_GRID * known[0].step:
            found.append(_remainder(place, known))
        else:
            found += [_remainder(place, [grid]) for grid in known]
    return found


def _remainder(place: str, known: list[Grid]) -> Remainder:
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
    return Remainder(step, shift, digits, place)


def _operands(relation: NoiseRelation, table: Table) -> list[Floats] | None:
    """Return the numbers that a relation is as inexact as; None if it is rounded."""
    if relation.digits is not None:
        return None
    return [table.leaf(place)[0] for place in relation.places]


KINDS["relation"] = FeatureKind(numeric(column_of_argument), _operands, discrete=True)
KINDS["remainder"] = FeatureKind(numeric(column_of_argument), lambda *_: None, discrete=True)


def noise_trace_features(sample: Sample) -> list[Feature]:
    """Return relations and remainders in which noise cancels, if these outputs have any."""
    if not sample.many or sample.sides is None:
        return []
    related = [Feature(str(one), "relation", one) for one in relations(*sample.sides)]
    on_grids = [Feature(str(one), "remainder", one) for one in remainders(*sample.sides)]
    return sample.most_distinguishing(related) + sample.most_distinguishing(on_grids)
