"""The time that a search has left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pytest_dp.basics import clocks

T = TypeVar("T")


class Clock:
    """The time that a search has left."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: clocks.Stopwatch | None = None

    @property
    def remaining(self) -> float:
        """Seconds that are left."""
        return self._seconds - (self._since.spent() if self._since is not None else 0.0)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Spend the time that passes inside; where these are nested, it counts once."""
        if self._since is not None:
            yield
            return
        self._since = clocks.Stopwatch()
        try:
            yield
        finally:
            self._seconds, self._since = self.remaining, None

    def timed(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items, which are made while the clock is running."""
        iterator, done = iter(items), object()
        while True:
            with self.running():
                item: Any = next(iterator, done)
            if item is done:
                return
            yield item
