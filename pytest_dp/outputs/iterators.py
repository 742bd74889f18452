"""Iterators as outputs: their elements can be read only once, and are read when they come."""

from __future__ import annotations

import copy
from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from pytest_dp.outputs.raised import Raised

MAX_ELEMENTS = 1_000
"""Elements of an iterator that are read: there may be no end of them. More take longer; fewer miss
what comes late."""


class IteratorElements(list[Any]):
    """The elements of an iterator, in the order in which it gave them."""

    kind = "iterator"
    """Its type."""
    goes_on = False
    """Whether it had more than is read."""

    def __repr__(self) -> str:
        return f"<{self.kind} {super().__repr__()}>"


@lru_cache(maxsize=512)
def is_iterator(kind: Any) -> bool:
    """Return whether objects of this type are iterators, or views of a dictionary."""
    return issubclass(kind, Iterator | KeysView | ValuesView | ItemsView)


def read_out(output: Any) -> Any:
    """Return what an iterator gives, or any other output as it is.

    Where it raises, that stands for the rest.
    """
    kind: Any = type(output)
    if not is_iterator(kind):
        return output
    read = IteratorElements()
    read.kind = kind.__name__
    try:
        for element in islice(output, MAX_ELEMENTS + 1):
            read.append(copy.copy(element) if type(element) in (np.ndarray, list) else element)
    except (Exception, SystemExit) as error:
        read.append(Raised.of(error))
    read.goes_on = len(read) > MAX_ELEMENTS
    del read[MAX_ELEMENTS:]
    return read


def was_cut(output: Any) -> bool:
    """Return whether an output is of an iterator that had more elements than were read."""
    return isinstance(output, IteratorElements) and output.goes_on
