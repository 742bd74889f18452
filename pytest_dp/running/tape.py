"""Tapes: recordings of every draw of a run, in which draws can be replaced.

Each line of code draws from a stream of its own. So two runs on the same streams, on other inputs
or with another value for a draw, have the same noise wherever they draw in the same lines, and in
each line as long as they make the same requests there. Generators that are seeded alike within a
run give the same numbers, as they would.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_dp.running.generator_stand_ins import Instrument
from pytest_dp.running.requests import Request, Site, Source, answer_request, plain_generator, stack

Replacement = Callable[["Draw", "Draws"], Any]
"""``replacement(draw, other)``: another value for a draw; `other` are streams for this alone."""
Replaced = Callable[["Draw"], Replacement | None]
"""The replacement of a draw, if it is replaced."""


@dataclass(frozen=True, slots=True)
class Draw:
    """A draw that was made."""

    number: int
    """Of the draw, in its run."""
    request: Request
    stack: tuple[Site, ...]
    """The line that draws, and those that lead to it."""
    value: Any
    """A copy of the answer; for methods that work in place, of what they changed."""


@dataclass(frozen=True, slots=True)
class Seeded:
    """A generator that was made, or seeded, by the mechanism."""

    source: Source
    seed: tuple[Any, ...]
    """The arguments; empty if it is new each time."""
    stack: tuple[Site, ...]


class Draws:
    """Streams of random numbers, one for each line of code."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._generators: dict[tuple[Any, ...], Any] = {}

    def of(self, request: Request, where: tuple[Site, ...]) -> Any:
        """Return the next draw in a line, from the stream of this line."""
        return answer_request(self.generator(request, where), request)

    def generator(self, request: Request, where: tuple[Site, ...]) -> Any:
        """Return the stream of a line."""
        key = (request.source.name, request.source.kind, where)
        if key not in self._generators:
            # The same on every machine, wherever the files are.
            lines = [(Path(site.file).name, site.line, site.function) for site in where]
            words = hashlib.sha256(repr((self._seed, request.source.name, lines)).encode())
            self._generators[key] = plain_generator(request.source.kind, words.digest())
        return self._generators[key]


class _Seeds:
    """Where generators with a seed are in their streams, and what the first with a seed drew from.

    The first one draws from the streams of lines; a later one with an equal seed repeats it.
    """

    def __init__(self) -> None:
        self._places: dict[Source, tuple[str, int]] = {}
        self._drawn: dict[tuple[type, str, int], Any] = {}

    def start(self, source: Source, seed: tuple[Any, ...]) -> None:
        """Note that a generator begins anew with a seed; one without a seed is left alone."""
        self._places.pop(source, None)
        if seed:
            self._places[source] = repr(seed), 0

    def generator(self, source: Source, stream: Any) -> Any:
        """Return what the next draw of a generator is from: the stream, or what it repeats."""
        if source not in self._places:
            return stream
        seed, number = self._places[source]
        self._places[source] = seed, number + 1
        key = source.kind, seed, number
        if key in self._drawn:
            return copy.deepcopy(self._drawn[key])
        self._drawn[key] = copy.deepcopy(stream)
        return stream


class Tape(Instrument):
    """Answers draws from streams of the lines of code, and records them.

    Equal seeds give equal noise in equal lines. `replaced` tells the replacement of a draw, if it
    is replaced. The draws are recorded in the order in which they were made.
    """

    def __init__(self, seed: int, replaced: Replaced | None = None) -> None:
        super().__init__()
        self._streams, self._other = Draws(seed), Draws(~seed)
        self._replaced = replaced
        self._seeds = _Seeds()
        self.draws: list[Draw] = []
        self.seeded: list[Seeded] = []

    def draw(self, request: Request) -> Any:
        """Return the next number in the stream of the line that asks, or its replacement."""
        where = stack()
        stream = self._streams.generator(request, where)
        value = answer_request(self._seeds.generator(request.source, stream), request)
        number = len(self.draws)
        in_place = request.args[0] if value is None and request.args else None
        draw = Draw(number, request, where, _copy_value(in_place if value is None else value))
        replacement = None if self._replaced is None else self._replaced(draw)
        if replacement is not None:
            value = replacement(draw, self._other)
            draw = Draw(number, request, where, _copy_value(value))
        self.draws.append(draw)
        return value

    def created(self, source: Source, seed: tuple[Any, ...]) -> None:
        """Record where a generator was made or seeded."""
        self._seeds.start(source, seed)
        self.seeded.append(Seeded(source, seed, stack()))


def _copy_value(value: Any) -> Any:
    return value if isinstance(value, float | int | str | bytes | None) else copy.deepcopy(value)
