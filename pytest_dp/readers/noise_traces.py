"""Features in which noise cancels out: noise that numbers share, and noise that was rounded.

If ``a = s + z`` and ``b = c + 2 z``, then the *relation* ``2 a - b`` has no noise left; if the
noise is a factor of both, a relation of their logarithms has none. If noise was rounded to some
decimals before it was added, most outputs leave the same *remainder* of division by the last of
them. Both are looked for in the outputs on one input at a time, since only the noise moves those.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats, Ints
from pytest_dp.outputs.feature import KINDS, Feature, FeatureKind, column_of_argument, numeric
from pytest_dp.outputs.features import Sample
from pytest_dp.outputs.table import Table

NEARLY_ALL = 0.9
"""Share of the outputs for which a relation holds. Larger misses relations with exceptions;
smaller: chance makes one."""
MAX_ROWS = 256
"""Outputs by which a relation is fitted. More take longer; fewer find relations of fewer
numbers."""
EXACT_RESIDUAL = 1e-5
"""Share of its noise that an exact relation leaves. Larger takes near relations for exact; smaller:
rounding hides exact ones."""
NEARLY_PARALLEL = 1e-8
"""Distance from 1 of the correlation of two numbers that are tried. Larger tries in vain; smaller:
rounding hides exact relations."""
MAX_WIDTH = 12
"""Numbers of an output among which longer relations are searched. More need more time and
outputs."""
MIN_SPARE = 4
"""Outputs more than numbers of a relation. Fewer: chance makes one; more miss long relations."""
MIN_ROWS = 8
"""Outputs in which a relation is searched, at least. Fewer: chance makes one."""
DECIMALS = range(-2, 9)
"""Decimals to which noise may have been rounded; -2 are hundreds. More: errors of floats look
rounded; fewer miss fine rounding."""
MOST = 0.75
"""Share of the outputs that leave one remainder. Larger misses rounded noise with exceptions;
smaller: chance makes it."""
MIN_MULTIPLES = 6
"""Different multiples of a step that show rounded noise. Fewer: chance makes it; more miss small
noise."""
OFF_GRID = 1e-3
"""Share of a step that a number may be off a multiple. Larger takes other numbers for multiples;
smaller: errors of floats decide."""
SHIFTS, NEAR_END = (0.0, 0.5, 0.25, 0.75), 0.05
"""Shares of a step by which numbers are shifted, and the distance to keep from its ends. Smaller:
errors of floats carry a remainder across."""
MAX_RELATIONS = 128
"""Relations that are features. More learn noise by heart; fewer miss what tells inputs apart."""


@dataclass(frozen=True, slots=True)
class NoiseRelation:
    """A weighted sum of a few numbers of an output, or of the logarithms of their sizes."""

    places: tuple[str, ...]
    weights: tuple[float, ...]
    digits: int | None = None
    """Decimals to which the sum is rounded, to remove errors of floats; None if it is not
    rounded."""
    of_logs: bool = False

    def values(self, table: Table) -> Floats:
        """Return the sum for every output, shape (n,); NaN where some place has no number."""
        return self.weighted_sum([table.leaf(place)[0] for place in self.places])

    def weighted_sum(self, numbers: Sequence[Floats] | Floats) -> Floats:
        """Return the sums, shape (n,), of numbers given as one array for each place."""
        with np.errstate(all="ignore"):
            total = np.zeros(len(numbers[0]))
            for number, weight in zip(numbers, self.weights, strict=True):
                total = total + weight * (np.log(np.abs(number)) if self.of_logs else number)
            return total if self.digits is None else np.round(total, self.digits)

    def __str__(self) -> str:
        text = ""
        for place, weight in zip(self.places, self.weights, strict=True):
            size = "" if abs(weight) == 1 else f"{abs(weight):.12g}*"
            number = f"log(abs({place}))" if self.of_logs else place
            text += (" + " if weight > 0 else " - ") + size + number
        text = text.removeprefix(" + ")
        return text if self.digits is None else f"round({text}, {self.digits})"


@dataclass(frozen=True, slots=True)
class SharedNumbers:
    """A finding that numbers of an output use the same random numbers."""

    relation: NoiseRelation
    on_d: float
    """The relation's value on D, and on D'."""
    on_d2: float

    def __str__(self) -> str:
        who = "both" if len(self.relation.places) == 2 else "all of its numbers"
        return f"{self.relation} has no noise: {who} use the same random numbers"


def find_relations(places: list[str], numbers1: Floats, numbers2: Floats) -> list[NoiseRelation]:
    """Return relations among numbers that hold on one input and separate it from the other.

    `numbers1` and `numbers2` are the numbers at the places in outputs on D and on D', shape (n,
    places); NaN where an output has no number. Empty for fewer than two places.
    """
    if len(places) < 2:
        return []
    by_key: dict[tuple[object, ...], NoiseRelation] = {}
    with np.errstate(all="ignore"):
        for side, of_logs in itertools.product((numbers1, numbers2), (False, True)):
            columns, usable = _columns_that_vary(np.log(np.abs(side)) if of_logs else side)
            for weights in _exact_relations(usable):
                at = np.flatnonzero(weights)
                named = tuple(places[columns[k]] for k in at)
                relation = NoiseRelation(named, tuple(weights[at].tolist()), of_logs=of_logs)
                involved = [numbers[:, columns[at]] for numbers in (side, numbers1, numbers2)]
                rounded = _round_relation(relation, *involved)
                if rounded is not None:
                    by_key.setdefault((rounded.places, rounded.weights, of_logs), rounded)
    return list(by_key.values())


def find_noiseless_relation(
    places: list[str], numbers1: Floats, numbers2: Floats
) -> SharedNumbers | None:
    """Return the shortest relation without noise on either input; None if there is none.

    Parameters are those of `find_relations`.
    """
    found = []
    with np.errstate(all="ignore"):
        for relation in find_relations(places, numbers1, numbers2):
            columns = [places.index(place) for place in relation.places]
            sides = [relation.weighted_sum(side[:, columns].T) for side in (numbers1, numbers2)]
            sides = [values[np.isfinite(values)] for values in sides]
            if all(len(values) and (values == values[0]).mean() > NEARLY_ALL for values in sides):
                here, there = (float(np.median(values)) for values in sides)
                found.append(SharedNumbers(replace(relation, digits=None), here, there))
    return min(found, key=lambda shared: len(shared.relation.places), default=None)


def _columns_that_vary(side: Floats) -> tuple[Ints, Floats]:
    """Return the columns that vary, and their numbers in at most `MAX_ROWS` complete outputs.

    Ignores columns less than three quarters finite. Empty for fewer than `MIN_ROWS` outputs.
    """
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
    """Return at most `MAX_RELATIONS` exact relations, as weights of all columns, (columns,) each.

    A relation explains a column by one parallel column or, of at most `MAX_WIDTH` columns, by all
    before it that no relation explains.
    """
    n, width = numbers.shape
    if width < 2:
        return []
    x, scales = _standardise(numbers)
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


def _standardise(numbers: Floats) -> tuple[Floats, Floats]:
    """Return columns minus their means and divided by their norms, and the divisors."""
    largest = np.abs(numbers).max(axis=0)
    x = numbers / largest
    x = x - x.mean(axis=0)
    sizes = np.sqrt((x**2).sum(axis=0))
    return x / sizes, largest * sizes


def _explain_column(x: Floats, scales: Floats, by: list[int], j: int) -> Floats | None:
    """Return the weights of column j minus its regression on the columns `by`, shape (columns,).

    None if the residual is not tiny.
    """
    slopes = np.linalg.lstsq(x[:, by], x[:, j], rcond=1e-9)[0]
    usual = EXACT_RESIDUAL * np.median(np.abs(x[:, j]))
    if not np.median(np.abs(x[:, j] - x[:, by] @ slopes)) <= usual:
        return None
    weights = np.zeros(x.shape[1])
    for i, slope in zip(by, slopes.tolist(), strict=True):
        if abs(slope) * np.median(np.abs(x[:, i])) > 10 * usual:
            weight = slope * float(scales[j] / scales[i])
            weights[i] = -math.copysign(_shorten_number(abs(weight), 1e-4 * abs(weight)), weight)
    weights[j] = 1.0
    return _with_integer_weights(weights)


def _with_integer_weights(weights: Floats) -> Floats:
    """Return weights scaled to integers, by factors up to 12; else to a first weight of 1."""
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
    """Return a relation rounded to its exact decimals; None if it does not separate D from D'.

    `side` has the numbers in which the relation was found.
    """
    values = relation.weighted_sum(side.T)
    middle = float(np.median(values[np.isfinite(values)]))
    error = 20 * float(np.nanquantile(np.abs(values - middle), 0.95))
    error = max(error, 1e-15 * abs(middle), 1e-300)
    away = [np.abs(relation.weighted_sum(numbers.T) - middle) for numbers in (numbers1, numbers2)]
    away = [gaps[np.isfinite(gaps)] for gaps in away]
    if not all(map(len, away)) or min(np.mean(gaps <= error) for gaps in away) > NEARLY_ALL:
        return None
    error = max(error, 1e-4 * float(max(map(np.median, away))))
    return replace(relation, digits=math.floor(-math.log10(error)))


def _shorten_number(number: float, error: float) -> float:
    """Return the number of fewest digits within `error`; the number itself beyond 12 digits."""
    shorter = (float(f"{number:.{digits}g}") for digits in range(1, 13))
    return next((short for short in shorter if abs(short - number) <= error), number)


@dataclass(frozen=True, slots=True)
class Remainder:
    """A remainder of the number at a place, divided by ``10**-decimals``, and rounded."""

    place: str
    decimals: int
    shift: float
    """Is added before the division, to keep remainders off 0 and the divisor."""

    @property
    def step(self) -> float:
        """The divisor."""
        return float(f"1e{-self.decimals}")

    def values(self, table: Table) -> Floats:
        """Return the remainder for every output, shape (n,); NaN without a finite number."""
        with np.errstate(all="ignore"):
            remainder: Floats = np.mod(table.leaf(self.place)[0] + self.shift, self.step)
            return np.round(remainder, self.decimals + 2)

    def __str__(self) -> str:
        inner = f"({self.place} + {self.shift!r})" if self.shift else self.place
        return f"round({inner} % {self.step!r}, {self.decimals + 2})"


def find_remainders(places: list[str], numbers1: Floats, numbers2: Floats) -> list[Remainder]:
    """Return remainders that most outputs on one input leave, and few on the other.

    Parameters are those of `find_relations`. Each place has at most one, of the largest divisor.
    Empty if an input has fewer than `MIN_MULTIPLES` outputs.
    """
    if min(len(numbers1), len(numbers2)) < MIN_MULTIPLES:
        return []
    by_place: dict[str, Remainder] = {}
    with np.errstate(all="ignore"):
        for decimals in DECIMALS:
            step = float(f"1e{-decimals}")
            sides = (numbers1, numbers2), (numbers2, numbers1)
            # The first output may be an exception, and three seldom are.
            for (side, other), row in itertools.product(sides, range(3)):
                first = side[row : row + 1]
                on_side, on_other = (_are_multiples(rows - first, step) for rows in (side, other))
                multiples = np.sort(np.round((side - first) / step), axis=0)
                different = (np.diff(multiples, axis=0) > 0).sum(axis=0) + 1
                found = on_side & ~on_other & (different >= MIN_MULTIPLES)
                for at in np.flatnonzero(found).tolist():
                    share = _shift_off_ends(np.array([first[0, at], other[0, at]]) / step)
                    shift = float(f"{100 * share:g}e{-decimals - 2}")
                    by_place.setdefault(places[at], Remainder(places[at], decimals, shift))
    return list(by_place.values())


def _shift_off_ends(multiples: Floats) -> float:
    """Return a shift in [0, 1) that keeps remainders of division by 1 off 0 and 1; else 0.0."""
    for shift in SHIFTS:
        remainders = np.mod(multiples + shift, 1.0)
        if np.all((remainders > NEAR_END) & (remainders < 1 - NEAR_END)):
            return shift
    return 0.0


def _are_multiples(numbers: Floats, step: float) -> Bools:
    """Return whether most numbers of each column are multiples of a step; False without any."""
    off = np.abs(numbers - step * np.round(numbers / step))
    finite = np.isfinite(numbers)
    exceptions = (finite & (off > OFF_GRID * step)).sum(axis=0)
    most: Bools = finite.any(axis=0) & (exceptions <= (1 - MOST) * len(numbers))
    return most


KINDS["relation"] = FeatureKind(numeric(column_of_argument), lambda *_: None, discrete=True)
KINDS["remainder"] = KINDS["relation"]


def noise_trace_features(sample: Sample) -> list[Feature]:
    """Return features for relations and remainders, if `many` are asked for and D is known."""
    if not sample.many or sample.sides is None:
        return []
    related = [Feature(str(one), "relation", one) for one in find_relations(*sample.sides)]
    left = [Feature(str(one), "remainder", one) for one in find_remainders(*sample.sides)]
    return sample.most_distinguishing(related) + sample.most_distinguishing(left)
