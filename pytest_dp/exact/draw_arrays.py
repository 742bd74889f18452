"""Arrays that hold draws: functions of numpy go to each of their elements."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_draw(value: Any) -> bool:
    """Whether something is a draw that is not known yet."""
    return getattr(type(value), "_is_draw", False)


class DrawArray(np.ndarray):
    """An array of objects, some of which are draws."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        plain = [np.asarray(each) if isinstance(each, DrawArray) else each for each in inputs]
        out = keywords.pop("out", None)
        if method != "__call__" or ufunc.nout != 1 or keywords:
            return getattr(ufunc, method)(*plain, **keywords)  # by Python's operators
        result = each(ufunc, plain)
        if out is None:
            return result
        out[0][...] = result
        return out[0]


def of_draws(values: Any) -> Any:
    """An array of objects as one of numbers, or, where it holds draws, as one that knows them."""
    if any(map(is_draw, values.flat)):
        return values.view(DrawArray)
    if not values.size:
        return values.astype(float)
    return np.array(values.tolist()).reshape(values.shape)


def each(ufunc: Any, inputs: list[Any]) -> Any:
    """A function of numpy, element by element."""
    boxes = [_array_of(each) for each in inputs]
    shape = np.broadcast_shapes(*(box.shape for box in boxes))
    wide = [np.broadcast_to(box, shape) for box in boxes]
    result = np.empty(shape, object)
    for place in np.ndindex(shape):
        result[place] = ufunc(*(each[place] for each in wide))
    return of_draws(result)


def _array_of(value: Any) -> Any:
    if not is_draw(value):
        return np.asarray(value)
    box = np.empty((), object)
    box[()] = value
    return box
