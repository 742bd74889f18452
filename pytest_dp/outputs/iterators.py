"""Iterators in outputs: their elements can be read only once, and are read when they come."""

from __future__ import annotations

import copy
from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from pytest_dp.outputs.outcome import Raised

MAX_DEPTH = 3
"""Levels of containers in which iterators are read out. More take longer; fewer: iterators further
down are not read."""
MAX_ELEMENTS = 1_000
"""Elements of an iterator that are read: there may be no end of them. More take longer; fewer miss
what comes late."""

_END = object()


class IteratorElements(list[Any]):
    """The elements of an iterator, in the order in which it gave them."""

    kind = "iterator"
    """Its type."""
    goes_on = False
    """Whether it had more than is read."""

    def __repr__(self) -> str:
        return f"<{self.kind} {super().__repr__()}>"


def _within(output: Any, deep: int = MAX_DEPTH) -> Iterator[Any]:
    """An output, and what stands in it in lists, tuples and dicts a few levels deep."""
    yield output
    if deep and isinstance(output, list | tuple | dict):
        for element in output.values() if isinstance(output, dict) else output:
            yield from _within(element, deep - 1)


def holds_iterator(output: Any) -> bool:
    """Return whether an output has an iterator, which can be read only once, or a dict's view."""
    kinds: Iterator[Any] = map(type, _within(output))
    return any(map(is_iterator, kinds))


@lru_cache(maxsize=512)
def is_iterator(kind: Any) -> bool:
    """Return whether objects of this type are iterators, or views of a dictionary."""
    return issubclass(kind, Iterator | KeysView | ValuesView | ItemsView)


def read_out(output: Any, deep: int = MAX_DEPTH) -> Any:
    """An output with its iterators replaced by what they give.

    Where one raises, that stands for the rest.
    """
    if type(output) in (list, tuple) and deep:
        return type(output)(read_out(element, deep - 1) for element in output)
    if type(output) is dict and deep:
        return {key: read_out(element, deep - 1) for key, element in output.items()}
    kind: Any = type(output)
    if not is_iterator(kind):
        return output
    read = IteratorElements()
    read.kind = kind.__name__
    try:
        iterator = iter(output)
        for element in islice(iterator, MAX_ELEMENTS):
            read.append(copy.copy(element) if type(element) in (np.ndarray, list) else element)
        read.goes_on = len(read) == MAX_ELEMENTS and _goes_on(iterator)
    except (Exception, SystemExit) as error:
        read.append(Raised.of(error))
    return read


def _goes_on(iterator: Iterator[Any]) -> bool:
    try:
        return next(iterator, _END) is not _END
    except (Exception, SystemExit):  # which would have been read, had it come before
        return True


def was_cut(output: Any) -> bool:
    """Return whether an iterator in an output had more elements than were read."""
    return any(isinstance(part, IteratorElements) and part.goes_on for part in _within(output))
