"""How much an output looks as if canaries had been in the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.basics.errors import ClaimError
from pytest_dp.data import describe_record, records_of
from pytest_dp.data.cells import cells_of
from pytest_dp.data.fields import fields_of
from pytest_dp.methods.membership_attacks import ASKED, Asking

MAX_NUMBERS = 1_000_000
"""Numbers that are compared at a time. More take memory; fewer take longer."""

Field = tuple[Any, Any, Any]
"""A column of the output, of the canaries and of the base."""


def canary_scores(
    score: Callable[[Any, Any], Any] | None, output: Any, canaries: Any, base: Any
) -> Floats:
    """Return the score of each canary: larger if it looks more as if it was in.

    `canaries` and `base` are datasets. Without a `score`, it depends on the output: an array of a
    canary's shape is scored by the inner product, a dataset like `base` by minus the distance of
    its closest record, and a model by how well it fits the canary. Raises ClaimError if `score`
    raises or returns no number, or if there is none and the output is none of these.
    """
    records = records_of(canaries)
    if score is not None:
        return np.array([_number(score, output, canary) for canary in records])
    answer, directions = _numbers(output), [_numbers(canary) for canary in records]
    if answer is not None and all(d is not None and d.shape == answer.shape for d in directions):
        return np.array([np.vdot(answer, direction) for direction in directions])  # type: ignore[arg-type]
    rows, sought, usual = map(cells_of, (output, canaries, base))
    if rows and sought and usual and rows.keys() == sought.keys():
        return -_closest([(rows[name], sought[name], usual[name]) for name in rows])
    if any(callable(getattr(output, name, None)) for name in ASKED):
        return np.array([_number(_fits, output, canary) for canary in records])
    raise ClaimError(
        f"one_run cannot read canaries such as {describe_record(records[0])} from outputs such as "
        f"{describe_record(output)}. Write OneRun(score=...), a function of an output and a "
        "canary that is the larger the more it looks as if the canary was in, such as minus the "
        "loss on it."
    )


def _fits(model: Any, canary: Any) -> float:
    """Return how well a model fits a record; its last field is the label if it takes none."""
    fields = fields_of(canary)
    return Asking(tuple(fields.values()), tuple(fields))(model)[0]


def _number(score: Callable[[Any, Any], Any], output: Any, canary: Any) -> float:
    try:
        value = score(output, canary)
        number = float(value)
    except Exception as error:
        raise ClaimError(
            f"score(output, canary) raised {type(error).__name__}: {error}. It was given "
            f"{describe_record(canary)}, and has to return a number."
        ) from error
    if math.isnan(number):
        raise ClaimError(
            f"score(output, canary) is not a number (NaN) for {describe_record(canary)}."
        )
    return number


def _numbers(value: Any) -> Floats | None:
    """Return an array of finite numbers; None if it is none."""
    try:
        numbers = np.asarray(value, float)
    except (TypeError, ValueError):
        return None
    return numbers if np.all(np.isfinite(numbers)) else None


def _closest(fields: Sequence[Field]) -> Floats:
    """Return the mean distance over all fields to the closest row.

    Of numbers it is in standard deviations of the base, at most 1; of all else 1 unless they agree.
    """
    rows, canaries, _ = fields[0]
    step = max(1, MAX_NUMBERS // len(rows))
    parts = [slice(at, at + step) for at in range(0, len(canaries), step)]
    closest = [np.min(np.mean([_apart(f, some) for f in fields], axis=0), axis=0) for some in parts]
    distances: Floats = np.concatenate(closest)
    return distances


def _apart(field: Field, some: slice) -> Floats:
    """Return the distances of one field, for each row and each of some canaries."""
    rows, chosen, base = field[0], field[1][some], field[2]
    if all(column.dtype.kind == "f" for column in field):
        scale = np.nanstd(base) or 1.0
        near: Floats = np.fmin(np.abs(rows[:, None] - chosen) / scale, 1.0)
        return near
    differ: Floats = (rows[:, None] != chosen).astype(float)
    return differ
