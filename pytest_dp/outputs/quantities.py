"""Numbers worked out from each output, by what is asked and a table: of its leaves, or its form.

NaN where an output has none to work with. A list or a tuple, an int or a float, float32 or float64,
which key comes first: such forms can tell two inputs apart, and are spoken about where they vary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.outputs.containers import ASPECT_TEXTS, Aspect
from pytest_dp.outputs.leaves import ABSENT, NUMBER, UNKNOWN
from pytest_dp.outputs.table import Table

FLOAT_ERROR = 2.0**-50
"""Relative error of one operation or two. Larger: small differences are missed; smaller: rounding
makes one."""

MAX_KEYS = 16
"""Keys whose presence is a feature. More learn noise by heart; fewer miss what tells
inputs apart."""
MAX_FORMS = 64
"""Types and lengths that are features. More learn noise by heart; fewer miss what tells inputs
apart."""

Form = tuple[Aspect, ...]
Observed = tuple[str, str, Any]
"""The text, the kind and the argument of a feature."""


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


def is_of_type(kind: str, table: Table) -> Floats:
    """Return 1 for outputs that are containers of a type, and 0 for others."""
    holds = np.array([structure.kind == kind for structure in table.structures], float)
    return holds[table.structure]


def has_number_type(which: tuple[str, str], table: Table) -> Floats:
    """Return 1 where the number at a place is of a type, 0 where not, NaN where there is none."""
    place, kind = which
    types, codes = table.typed(place), table.leaf(place)[1]
    wanted = np.array([name == kind for name in table.types.names], float)
    return np.where(codes == NUMBER, wanted[types], np.nan)


def has_aspect(aspect: Aspect, table: Table) -> Floats:
    """Return 1 for outputs that have an aspect, and 0 for others."""
    return _by_form(table, lambda form: aspect in form)


def has_key(which: tuple[str, str], table: Table) -> Floats:
    """Return 1 for outputs whose mapping at a place has a key, and 0 for others."""
    place, key = which
    return _by_form(table, lambda form: key in _keys(form, place))


def _forms(table: Table) -> list[Form]:
    """Return the different forms of outputs; one without aspects where it is not known."""
    return [form or () for form in table.forms.names]  # type: ignore[misc]


def _by_form(table: Table, value: Callable[[Form], float]) -> Floats:
    """Return for each output a number that depends on its form."""
    return np.array(list(map(value, _forms(table))), float)[table.forms.which]


def _keys(form: Form, place: str) -> tuple[str, ...]:
    """Return the keys of the mapping at a place, in their order; none if there is none."""
    return next((keys for at, what, keys in form if (at, what) == (place, "order")), ())


def observe_forms(table: Table) -> Iterator[Observed]:
    """Yield the aspects of forms, and of types of numbers, that vary among these outputs."""
    kinds = {structure.kind for structure in table.structures}
    if len(kinds) > 1:
        for kind in sorted(kinds - {"scalar"}):
            yield f"type(output) is {kind}", "type of the output", kind
    if len({*table.types.names} - {UNKNOWN}) > 1:
        for place in table.places:
            types = table.typed(place)[table.leaf(place)[1] == NUMBER]
            present = np.flatnonzero(np.bincount(types, minlength=1)).tolist()
            for kind in [str(table.types.names[i]) for i in present if len(present) > 1]:
                yield f"type({place}) is {kind}", "type of a number", (place, kind)
    if len(table.forms.names) > 1:
        yield from _varying_aspects(table)


def _varying_aspects(table: Table) -> Iterator[Observed]:
    weights = np.bincount(table.forms.which, minlength=len(table.forms.names)).tolist()
    counts: Counter[Aspect] = Counter()
    for form, weight in zip(_forms(table), weights, strict=True):
        counts.update(dict.fromkeys(form, weight))
    varied = [aspect for aspect, n in counts.items() if 0 < n < len(table)]
    varied.sort(key=lambda aspect: (-counts[aspect], repr(aspect)))
    for place, what, value in varied[:MAX_FORMS]:
        shown = ", ".join(value) if isinstance(value, tuple) else value
        yield ASPECT_TEXTS[what].format(place, shown), "aspect", (place, what, value)
    orders = [(place, keys) for place, what, keys in varied if what == "order"]
    pairs = {(place, key) for place, keys in orders for key in keys}
    for place, key in sorted(pairs)[:MAX_KEYS]:
        if not all(key in _keys(form, place) for form in _forms(table)):
            yield f"{key} in {place}", "key", (place, key)
