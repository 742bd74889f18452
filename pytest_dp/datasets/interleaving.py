"""Orders in which many possibilities are tried."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, TypeVar

T = TypeVar("T")


def in_turn(iterables: Iterable[Iterable[T]]) -> Iterator[T]:
    """The first of each, the second of each, ..."""
    waiting: deque[Iterator[T]] = deque()
    for iterator in chain(map(iter, iterables), _popped(waiting)):
        for item in islice(iterator, 1):
            yield item
            waiting.append(iterator)


def _popped(waiting: deque[T]) -> Iterator[T]:
    while waiting:
        yield waiting.popleft()


def diagonally(left: Sequence[Any], right: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """All combinations, those of early elements ahead."""
    for total in range(len(left) + len(right) - 1):
        for at in range(max(0, total - len(right) + 1), min(total + 1, len(left))):
            yield left[at], right[total - at]
