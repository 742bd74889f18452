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


def diagonally(first: Sequence[Any], second: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """All combinations, those of early elements ahead."""
    for total in range(len(first) + len(second) - 1):
        for at in range(max(0, total - len(second) + 1), min(total + 1, len(first))):
            yield first[at], second[total - at]
