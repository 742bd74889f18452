"""Runs of which every draw is known, and can be replaced.

Each line of code draws from a stream of its own. Two runs on the same streams, on other inputs or
with another value for one draw, so have the same noise wherever they draw in the same lines, and
in each line as long as they draw there the same.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_dp.randomness.plain import answered, plain
from pytest_dp.randomness.requests import Request, Site, Source, stack
from pytest_dp.randomness.stand_ins import Instrument

Replacement = Callable[["Draw", "Draws"], Any]
"""Makes the value of a draw anew, from the one that it would have."""
Replaced = Callable[["Draw"], Replacement | None]
"""Which draws are made anew, and how."""


@dataclass(frozen=True, slots=True)
class Draw:
    """A draw that was made.

    Attributes
    ----------
    number : int
        Of the draw, in its run.
    request : Request
    stack : tuple of Site
        The line that draws, and those that lead to it.
    value : object
        A copy of what the mechanism was given; of methods that work in place, of what was changed.
    """

    number: int
    request: Request
    stack: tuple[Site, ...]
    value: Any

    @property
    def site(self) -> Site:
        """The line that draws."""
        return self.stack[0]


@dataclass(frozen=True, slots=True)
class Seeded:
    """A generator that was made, or seeded, by the mechanism.

    Attributes
    ----------
    source : Source
    seed : tuple
        The arguments; empty if it is new each time.
    stack : tuple of Site
    """

    source: Source
    seed: tuple[Any, ...]
    stack: tuple[Site, ...]


class Draws:
    """Streams of random numbers, one for each line of code.

    Parameters
    ----------
    seed : int
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._generators: dict[tuple[Any, ...], Any] = {}

    def of(self, request: Request, where: tuple[Site, ...]) -> Any:
        """What the next draw in a line is, of a stream that only this line uses."""
        key = (request.source.name, request.source.kind, where)
        if key not in self._generators:
            # The same on every machine, wherever the files are.
            lines = [(Path(site.file).name, site.line, site.function) for site in where]
            words = hashlib.sha256(repr((self._seed, request.source.name, lines)).encode())
            self._generators[key] = plain(request.source.kind, words.digest())
        return answered(self._generators[key], request)


class Tape(Instrument):
    """Answers draws from streams of its own, and keeps them.

    Parameters
    ----------
    seed : int
        Of the streams: equal seeds give equal noise in equal lines.
    replaced : mapping of int to callable, or callable, optional
        Numbers of draws that get another value, made by ``replacement(draw, other)``; `other` are
        streams that are used for nothing else. Or what tells the replacement of a draw, if any.

    Attributes
    ----------
    draws : list of Draw
        In the order in which they were made.
    seeded : list of Seeded
    """

    def __init__(
        self, seed: int, replaced: Mapping[int, Replacement] | Replaced | None = None
    ) -> None:
        super().__init__()
        self._streams, self._other = Draws(seed), Draws(~seed)
        replaced = replaced or {}
        numbers = replaced if isinstance(replaced, Mapping) else {}
        by_number: Replaced = lambda draw: numbers.get(draw.number)  # noqa: E731
        self._replacement = by_number if isinstance(replaced, Mapping) else replaced
        self.draws: list[Draw] = []
        self.seeded: list[Seeded] = []

    def draw(self, request: Request) -> Any:
        """The next number in the stream of the line that asks, or its replacement."""
        where = stack()
        value = self._streams.of(request, where)
        number = len(self.draws)
        in_place = request.args[0] if value is None and request.args else None
        draw = Draw(number, request, where, _copied(in_place if value is None else value))
        replacement = self._replacement(draw)
        if replacement is not None:
            value = replacement(draw, self._other)
            draw = Draw(number, request, where, _copied(value))
        self.draws.append(draw)
        return value

    def created(self, source: Source, seed: tuple[Any, ...]) -> None:
        """Keep where a generator was made or seeded."""
        self.seeded.append(Seeded(source, seed, stack()))


def _copied(value: Any) -> Any:
    return value if isinstance(value, float | int | str | bytes | None) else copy.deepcopy(value)
