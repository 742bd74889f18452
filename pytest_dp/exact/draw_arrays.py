"""Arrays that hold lazy draws: functions of numpy are applied to each element."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_draw(value: Any) -> bool:
    """Whether something is a lazy draw (without an import of `Lazy`, which imports this)."""
    return getattr(type(value), "_is_draw", False)


class DrawArray(np.ndarray):
    """An array of objects, some of which are draws."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        plain = [np.asarray(x) if isinstance(x, DrawArray) else x for x in inputs]
        out = keywords.pop("out", None)
        if method != "__call__" or ufunc.nout != 1 or keywords:
            return getattr(ufunc, method)(*plain, **keywords)  # by Python's operators
        result = elementwise(ufunc, plain)
        if out is None:
            return result
        out[0][...] = result
        return out[0]


def of_draws(values: Any) -> Any:
    """An array of objects as a `DrawArray` if it holds draws, else as one of numbers."""
    if any(map(is_draw, values.flat)):
        return values.view(DrawArray)
    if not values.size:
        return values.astype(float)
    return np.array(values.tolist()).reshape(values.shape)


def elementwise(ufunc: Any, inputs: list[Any]) -> Any:
    """A function of numpy, element by element."""
    arrays = np.broadcast_arrays(*map(_array_of, inputs))
    result = np.empty(arrays[0].shape, object)
    for place in np.ndindex(result.shape):
        result[place] = ufunc(*(array[place] for array in arrays))
    return of_draws(result)


def _array_of(value: Any) -> Any:
    if not is_draw(value):
        return np.asarray(value)
    array = np.empty((), object)
    array[()] = value
    return array
