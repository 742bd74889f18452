"""Numbers of an output that go together: where they share their noise, it can be taken off again.

If ``a = s + z`` and ``b = c + 2 z``, then ``2 a - b`` has no noise left; of ``a = s * z`` and
``b = c * z``, ``a / b`` has none. Such relations are looked for in outputs on one input at a time,
since only the noise moves those.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.outputs.table import Table

NEARLY_ALL = 0.9
"""Share of the outputs that are the same, or for which a relation holds. Larger: relations with
exceptions are missed; smaller: chance makes one."""
MAX_ROWS = 256
"""Outputs that a relation is fitted on. More take longer; fewer see relations of fewer numbers."""
EXACT_RESIDUAL = 1e-5
"""Share of its noise that an exact relation leaves. Larger: near relations count as exact;
smaller: rounding hides exact ones."""
MAX_WIDTH = 12
"""Numbers of a relation. More take longer, and need more outputs; fewer miss long relations."""
MIN_SPARE = 4
"""Outputs beyond the numbers of a relation, at least. Fewer: chance makes one; more: long
relations are missed."""
MAX_MARKS = 8
"""Rows of a shape by which numbers are matched. More take longer; fewer match by chance."""
MIN_ROWS = 8
"""Outputs that a relation is looked for in, at least. Fewer: chance makes one."""
MAX_RELATIONS = 128
"""Relations that are features. More learn noise by heart; fewer miss what tells inputs apart."""


@dataclass(frozen=True, slots=True)
class NoiseRelation:
    """A weighted sum of a few numbers of an output, or a product of their powers."""

    places: tuple[str, ...]
    weights: tuple[float, ...]
    """Coefficients of a sum, exponents of a product."""
    is_product: bool = False
    digits: int | None = None
    """To which it is rounded, where it is exact but for errors of floating-point numbers."""

    def values(self, table: Table) -> Floats:
        """Return its value for every output, shape (n,); NaN where some place has no number."""
        return self.of([table.leaf(place)[0] for place in self.places])

    def of(self, numbers: list[Floats]) -> Floats:
        """Return its values for numbers at its places."""
        with np.errstate(all="ignore"):
            weighted = list(zip(numbers, self.weights, strict=True))
            total = np.full(len(numbers[0]), float(self.is_product))
            for number, weight in weighted:
                total = total * number**weight if self.is_product else total + weight * number
            return total if self.digits is None else np.round(total, self.digits)

    def __str__(self) -> str:
        text = ""
        for place, weight in zip(self.places, self.weights, strict=True):
            size = "" if abs(weight) == 1 else f"{abs(weight):.12g}"
            if self.is_product:
                text += ("*" if weight > 0 else "/") + place + (f"**{size}" if size else "")
            else:
                text += (" + " if weight > 0 else " - ") + (f"{size}*" if size else "") + place
        text = text[1 if self.is_product else 3 :]
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
        for side, is_product in product((numbers1, numbers2), (False, True)):
            columns, usable = _usable(_logarithms(side) if is_product else side)
            for weights in _exact_relations(usable):
                at = np.flatnonzero(weights)
                named = tuple(places[columns[k]] for k in at)
                relation = NoiseRelation(named, tuple(weights[at].tolist()), is_product)
                involved = [numbers[:, columns[at]] for numbers in (side, numbers1, numbers2)]
                rounded = _round_relation(relation, *involved)
                if rounded is not None:
                    by_key.setdefault((rounded.places, rounded.weights, is_product), rounded)
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


def _logarithms(side: Floats) -> Floats:
    """Return the logarithms of sizes, of which a product is a sum; NaN of 0."""
    return np.log(np.abs(np.where(side == 0, np.nan, side)))


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
    if width > MAX_WIDTH:
        return _equal_shapes(numbers)
    x, scales = _scaled_alike(numbers)
    sizes = np.linalg.svd(x, compute_uv=False)
    if n > width and sizes[-1] > EXACT_RESIDUAL * sizes[0]:
        return []
    free: list[int] = []
    relations = []
    for j in range(width):
        weights = next(
            (w for i in free if (w := _explain_column(x, scales, [i], j)) is not None), None
        )
        if weights is None and 1 < len(free) <= n - 1 - MIN_SPARE:
            weights = _explain_column(x, scales, free, j)
        if weights is None:
            free.append(j)
        else:
            relations.append(weights)
    return relations


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
            weights[i] = -math.copysign(nice(abs(weight), (1e-4) * abs(weight)), weight)
    weights[j] = 1.0
    return _with_integer_weights(weights)


def _with_integer_weights(weights: Floats) -> Floats:
    """Scale weights to integers where that is possible, else to a first coefficient of 1."""
    at = np.flatnonzero(weights)
    scaled: Floats = weights / weights[at[0]]
    for times in range(1, 13):
        integers: Floats = np.round(scaled * times)
        if np.all(np.abs(integers - scaled * times) <= (1e-4) * times):
            return integers
    return scaled


def _equal_shapes(numbers: Floats) -> list[Floats]:
    """Find relations of very many columns: those that are equal but for a shift and a scale."""
    shape = (numbers - numbers[0]) / (numbers[1] - numbers[0])
    marks = np.round(shape[2:MAX_MARKS], 5).T
    order = np.lexsort(marks.T)
    equal = (np.abs(np.diff(marks[order], axis=0)) <= 2e-5).all(axis=1)
    x, scales = _scaled_alike(numbers)
    relations = []
    lead = -1
    for k, same in enumerate(equal.tolist()):
        lead = (order[k] if lead < 0 else lead) if same else -1
        if same:
            earlier, later = sorted((int(lead), int(order[k + 1])))
            weights = _explain_column(x, scales, [earlier], later)
            if weights is not None:
                relations.append(weights)
        if len(relations) == MAX_RELATIONS:
            break
    return relations


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
    """Return a number within `error` that is easier to write: with few digits, or 1 / k."""
    shorter = [float(f"{number:.{digits}g}") for digits in range(1, 13)]
    inverse = inverse_of(number)
    if inverse:
        shorter.insert(3, 1 / inverse)
    return next((short for short in shorter if abs(short - number) <= error), number)


def inverse_of(number: float) -> int:
    """Return the integer next to 1 / number; 0 where there is none, or none that floats hold."""
    inverse = 1 / number if 0 < number < 1 else 0.0
    return round(inverse) if math.isfinite(inverse) else 0
