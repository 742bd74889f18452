"""Types of outputs and the order of their keys: observations besides the leaves.

A list or a tuple, an int or a float, float32 or float64, which key comes first: all of that can
tell two inputs apart. It is spoken about only where it varies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.outputs.containers import ASPECT_TEXTS, Aspect
from pytest_dp.outputs.leaves import NUMBER, UNKNOWN
from pytest_dp.outputs.table import Table

MAX_KEYS = 16
"""Keys whose presence and position are features. More learn noise by heart; fewer miss what tells
inputs apart."""
MAX_FORMS = 64
"""Types and lengths that are features. More learn noise by heart; fewer miss what tells inputs
apart."""

Form = tuple[Aspect, ...]
Observed = tuple[str, str, Any]
"""The text, the kind and the argument of a feature."""


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


def position_of_key(which: tuple[str, str], table: Table) -> Floats:
    """Return a key's position among the keys of a mapping, from 0; NaN if it is absent."""
    place, key = which

    def position(form: Form) -> float:
        keys = _keys(form, place)
        return keys.index(key) if key in keys else np.nan

    return _by_form(table, position)


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
    for place, key in sorted(pairs)[:MAX_KEYS]:
        yield f"list({place}).index({key})", "position of a key", (place, key)
