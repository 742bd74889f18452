"""Numbers worked out from the leaves of each output, by what is asked and a table.

NaN where an output has none to work with.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.outputs.leaves import ABSENT, NUMBER
from pytest_dp.outputs.table import Table

FLOAT_ERROR = 2.0**-50
"""Relative error of one operation or two. Larger: small differences are missed; smaller: rounding
makes one."""


def summary(kind: str, table: Table) -> Floats:
    """Return the sum, mean, min, max, argmin or argmax of the numbers in each output."""
    is_number = table.codes == NUMBER
    if is_number.all():
        owner, numbers, counts = table.owner, table.numbers, table.sizes
    else:
        owner, numbers = table.owner[is_number], table.numbers[is_number]
        counts = np.bincount(owner, minlength=len(table))
    summaries = np.full(len(table), np.nan)
    rows = np.flatnonzero(counts)
    if not len(rows):
        return summaries
    if kind in ("sum", "mean"):
        sums = np.bincount(owner, weights=numbers, minlength=len(table))[rows]
        summaries[rows] = sums if kind == "sum" else sums / counts[rows]
        return summaries
    starts = (np.cumsum(counts) - counts)[rows]
    reduce = np.minimum if kind in ("min", "argmin") else np.maximum
    ends = reduce.reduceat(numbers, starts)
    if kind in ("min", "max"):
        summaries[rows] = ends
        return summaries
    # As in NumPy: the first of several, and NaN is both the smallest and the largest. What is
    # equal to it but for rounding comes as often on either input as the mechanism says, its last
    # digits do not.
    with np.errstate(invalid="ignore"):
        size = np.maximum.reduceat(np.abs(numbers), starts)
        room = np.where(np.isfinite(size), FLOAT_ERROR * size, 0.0)
        close = np.abs(numbers - np.repeat(ends, counts[rows])) <= np.repeat(room, counts[rows])
    infinite = np.isinf(numbers) & (numbers == np.repeat(ends, counts[rows]))
    at = np.flatnonzero(close | infinite | np.isnan(numbers))
    at = at[np.searchsorted(at, starts)]
    leaf = at if is_number.all() else np.flatnonzero(is_number)[at]
    summaries[rows] = leaf - table.offsets[rows]
    return summaries


def lengths(_: Any, table: Table) -> Floats:
    """Return the length of each output; NaN where it has none."""
    lengths = [np.nan if s.length is None else s.length for s in table.structures]
    of_outputs: Floats = np.array(lengths, dtype=np.float64)[table.structure]
    return of_outputs


def count_category(category: Any, table: Table) -> Floats:
    """Return how many leaves are of a category."""
    owners = table.owner[table.codes == table.levels.get(category, ABSENT)]
    return np.bincount(owners, minlength=len(table)).astype(np.float64)


def difference(places: tuple[str, str], table: Table) -> tuple[Floats, Ints]:
    """Return the difference between two places, with codes: absent unless both are numbers."""
    (numbers, codes), (others, other_codes) = map(table.leaf, places)
    both = (codes == NUMBER) & (other_codes == NUMBER)
    with np.errstate(invalid="ignore", over="ignore"):
        return numbers - others, np.where(both, NUMBER, ABSENT)


def bit(which: tuple[str, int], table: Table) -> Floats:
    """Return one bit of the IEEE 754 double at a place, 0 to 63 from the lowest; NaN has none."""
    place, position = which
    numbers = table.leaf(place)[0]
    words = np.ascontiguousarray(numbers).view(np.uint64)
    bits = (words >> np.uint64(position)) & np.uint64(1)
    return np.where(np.isnan(numbers), np.nan, bits)


def lowest_bit(place: str, table: Table) -> Floats:
    """Return the largest k such that 2**k divides the number at a place; NaN for 0, inf, NaN.

    Among doubles, small numbers have finer digits than large ones, and a sum keeps only digits
    that its larger term has room for. So 1.0 plus noise is a multiple of 2**-53 or so, however
    small it comes out, while 0.0 plus noise is the noise with all of its digits: a small output
    with a digit below 2**-53 cannot come from 1.0. Ideal real-valued noise has no such trace.

    Source: Mironov, "On Significance of the Least Significant Bits For Differential Privacy",
    CCS 2012.
    """
    numbers = table.leaf(place)[0]
    fraction, exponent = np.frexp(np.where(np.isfinite(numbers), numbers, 0.0))
    digits = (fraction * 2.0**53).astype(np.int64)
    with np.errstate(divide="ignore"):
        lowest = np.log2((digits & -digits).astype(np.float64))  # exact: of a power of two
    return np.where(digits == 0, np.nan, lowest + exponent - 53)
