"""Proposers that place something where it may matter: corner cases, and constants of the code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice

from pytest_dp.datasets.relations import Pair
from pytest_dp.inputs.sources import Proposer, Tried
from pytest_dp.search.exploring import Explorer
from pytest_dp.search.looking import Clock
from pytest_dp.search.spaces import Found

ANYWAY = 2
"""Pairs that are proposed though nothing new is seen of them."""
MAX_COMBINED = 40
"""Inputs with several constants."""


class Timed:
    """Another proposer's pairs; making them takes its time from a clock.

    Parameters
    ----------
    proposer : Proposer
    clock : Clock
    """

    def __init__(self, proposer: Proposer, clock: Clock) -> None:
        self._proposer, self._clock = proposer, clock
        self.name: str = getattr(proposer, "name", type(proposer).__name__)

    def propose(self, past: Sequence[Tried]) -> Iterator[Pair]:
        """Its pairs."""
        with self._clock.running():
            pairs = iter(self._proposer.propose(past))
        while True:
            with self._clock.running():
                pair = next(pairs, None)
            if pair is None:
                return
            yield pair


class Corners:
    """Inputs at which code that knows nothing of them may still go wrong.

    Parameters
    ----------
    explorer : Explorer
    """

    name = "corner cases"

    def __init__(self, explorer: Explorer) -> None:
        self._explorer: Explorer | None = explorer

    def propose(self, past: Sequence[Tried]) -> Iterator[Pair]:  # noqa: ARG002
        """Pairs at which the mechanism goes new ways, and a few at others."""
        explorer, self._explorer = self._explorer, None
        if explorer is not None:
            yield from _at(explorer, lambda: explorer.space.corners(explorer.corners))


class Constants:
    """Places each constant of the code, what is just below and just above, and several at once.

    Parameters
    ----------
    explorer : Explorer
    """

    name = "constants of the code"

    def __init__(self, explorer: Explorer) -> None:
        self._explorer: Explorer | None = explorer

    def propose(self, past: Sequence[Tried]) -> Iterator[Pair]:  # noqa: ARG002
        """Pairs at which the mechanism goes new ways, and a few at others."""
        explorer, self._explorer = self._explorer, None
        if explorer is not None and explorer.constants:
            space, constants = explorer.space, explorer.constants
            yield from _at(
                explorer,
                lambda: chain(
                    (found for one in constants for found in space.placed(one)),
                    (space.combined(constants, explorer.rng) for _ in range(MAX_COMBINED)),
                ),
            )


def _at(explorer: Explorer, inputs: Callable[[], Iterator[Found]]) -> Iterator[Pair]:
    """Pairs around the inputs that go new ways; before, a few at the first ones in any case."""
    for found in islice(inputs(), ANYWAY):
        near = (
            pair
            for pair in explorer.neighbours(found)
            if explorer.screen.blind or explorer.screen.rank(pair) is not None
        )
        yield from islice(near, 1)
    for found in inputs():
        if explorer.screen.blind:
            return
        yield from explorer.visited(found)
