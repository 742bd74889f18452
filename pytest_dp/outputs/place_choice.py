"""Choice of the few quantities worth learning from, where an output has very many.

Where both inputs were run with the same random numbers, the quantities that differ between the two
outputs of a pair name the few that matter: all others came out as if the inputs were the same.
Else, those at which the two sides look most different on as many outputs as that is affordable for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats, Ints
from pytest_dp.outputs.leaves import NUMBER
from pytest_dp.outputs.table import Table

MAX_PLACES = 64
"""Places of an output that are all looked at. More learn noise by heart; fewer: places are chosen
by chance."""
MIN_PLACES = 32
"""Places of an output that are chosen, at least. More learn noise by heart; fewer miss the one
that tells inputs apart."""
MIN_LEADING = 16
"""Outputs on either input that are looked at, at least. Fewer: chance decides."""
ROUNDING = 1e-9
"""Relative error after a few operations. Larger: small differences are missed; smaller: rounding
makes one."""
MIN_PAIRED = 8
"""Outputs in pairs from which pairs show what differs. Fewer: chance decides; more: it is seen
later."""
MAX_NUMBERS = 1_000_000
"""Numbers that are worked through at a time. More take memory; fewer look at fewer outputs."""


@dataclass(frozen=True, slots=True)
class Places:
    """Places of an output to learn from."""

    chosen: list[str]
    all: bool = True
    """Whether there are no others."""


def choose(table: Table, on_d: Bools | None, paired: int, at_least: int = 0) -> Places:
    """Return the places of these outputs to learn from; parameters as in `informative`.

    As many as `affordable_number` says, but no fewer than `at_least`.
    """
    places = list(table.places)
    if on_d is None or len(places) <= (MIN_PLACES if paired >= MIN_PAIRED else MAX_PLACES):
        return Places(places)
    rows = leading_rows(on_d, MAX_NUMBERS // len(places))
    places, numbers, codes = table.matrix(rows)
    kinds = codes if table.levels or len(table.structures) > 1 else None
    limit = max(at_least, affordable_number(on_d))
    chosen = informative(numbers, kinds, on_d[rows], limit, paired)
    return Places([places[i] for i in chosen.tolist()], all=False)


def leading_rows(on_d: Bools, limit: int) -> Ints:
    """Return the first `limit` outputs on either input, or `MIN_LEADING` if that is more."""
    limit = max(limit, MIN_LEADING)
    return np.concatenate([np.flatnonzero(side)[:limit] for side in (on_d, ~on_d)])


def affordable_number(on_d: Bools, runs_each: int = 30) -> int:
    """Return how many quantities to choose: one for every `runs_each` outputs, within limits."""
    return int(np.clip(len(on_d) / runs_each, MIN_PLACES, MAX_PLACES))


def informative(
    numbers: Floats, codes: Ints | None, on_d: Bools, limit: int, paired: int = 0
) -> Ints:
    """Return the columns to learn from, in increasing order.

    The numbers and codes are as in `Table`, shape (n, columns); there are no codes if everything is
    a number. At most `limit` columns are chosen. So many `paired` outputs on either input, from the
    start, share their random numbers in order: of these, columns that never differ say nothing.
    """
    rows1, rows2 = np.flatnonzero(on_d), np.flatnonzero(~on_d)
    if min(paired, len(rows1), len(rows2)) < MIN_PAIRED:
        return _furthest(numbers, codes, rows1, rows2, np.arange(numbers.shape[1]), limit)
    moved = differing_columns(numbers, codes, rows1[:paired], rows2[:paired])
    return _furthest(numbers, codes, rows1, rows2, np.flatnonzero(moved), limit)


def differing_columns(numbers: Floats, codes: Ints | None, rows1: Ints, rows2: Ints) -> Bools:
    """Return which columns differ in some pair of rows by more than rounding."""
    width = numbers.shape[1]
    moved = np.zeros(width, bool)
    if not width or not len(rows1):
        return moved
    sample = np.abs(numbers[rows1[:: max(1, len(rows1) // 100)]])
    with np.errstate(all="ignore"):
        usual = np.median(np.where(np.isfinite(sample), sample, 0.0), axis=0)
    step = max(1, MAX_NUMBERS // width)
    for start in range(0, len(rows1), step):
        rows, others = rows1[start : start + step], rows2[start : start + step]
        a, b = numbers[rows], numbers[others]
        unequal = (a != b) & ~(np.isnan(a) & np.isnan(b))
        if codes is not None:
            other_kind = codes[rows] != codes[others]
            unequal |= other_kind
        at = np.flatnonzero(unequal.any(axis=0) & ~moved)
        if not len(at):
            continue
        a, b, unequal = a[:, at], b[:, at], unequal[:, at]
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= ROUNDING * (np.abs(a) + np.abs(b) + usual[at])
        near &= np.isfinite(a) & np.isfinite(b)
        if codes is not None:
            near &= ~other_kind[:, at]
        moved[at] |= (unequal & ~near).any(axis=0)
    return moved


def _furthest(
    numbers: Floats, codes: Ints | None, rows1: Ints, rows2: Ints, among: Ints, limit: int
) -> Ints:
    """Return those of some columns at which the two sides are furthest apart."""
    if len(among) <= limit:
        return among
    rows = min(len(rows1), len(rows2), max(MIN_PAIRED, MAX_NUMBERS // (2 * len(among))))
    outputs = np.concatenate([rows1[:rows], rows2[:rows]])
    kinds = None if codes is None else codes[np.ix_(outputs, among)]
    distances = gaps(numbers[np.ix_(outputs, among)], kinds)
    return np.sort(among[np.argsort(-distances, kind="stable")[:limit]])


def gaps(numbers: Floats, codes: Ints | None) -> Floats:
    """Return how many standard errors apart two samples are, for each column of two times n rows.

    The first n rows are the one sample, the others the other one. Of half-lines in either direction
    and of single values, the one that shows most counts; of categories as well.
    """
    if codes is None or np.all(codes == NUMBER):
        return _widest(numbers)
    plain = np.where(codes == NUMBER, numbers, -np.inf)
    return np.maximum(_widest(plain), _widest(codes.astype(np.float64)))


def _widest(values: Floats) -> Floats:
    rows, width = values.shape
    if not rows or not width:
        return np.zeros(width)
    columns = np.ascontiguousarray(values.T)
    columns = np.minimum(columns, np.finfo(np.float64).max)
    columns[np.isnan(columns)] = np.inf  # as one value, and none of the others
    order = np.argsort(columns, axis=1)
    ordered = np.take_along_axis(columns, order, axis=1)
    ends = np.ones((width, rows), bool)
    ends[:, :-1] = ordered[:, 1:] != ordered[:, :-1]
    # Both samples are equally large, so that each column sums to 0: one running sum does for all.
    ahead = np.cumsum(np.where(order < rows // 2, 1, -1).ravel())
    at = np.flatnonzero(ends)
    lead, below = ahead[at], at % rows + 1
    starts = np.flatnonzero(ends.ravel()[:-1]) + 1 if ends.size > 1 else np.zeros(0, int)
    starts = np.concatenate([[0], starts])
    counted = at + 1 - starts
    gained = np.diff(lead, prepend=0)
    above = rows - below
    before = lead - gained
    shown = np.maximum(np.abs(lead) / np.sqrt(below + 1.0), np.abs(gained) / np.sqrt(counted + 1.0))
    over = np.abs(before) / np.sqrt(above + counted + 1.0)
    first_of = np.flatnonzero(at // rows != np.concatenate([[-1], at[:-1] // rows]))
    widest: Floats = np.maximum.reduceat(np.maximum(shown, over), first_of)
    return widest
