"""Proposers of corner cases and of inputs with constants of the code; and the time they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice

from pytest_dp.datasets.relations import Pair
from pytest_dp.inputs.sources import Proposer, Tried
from pytest_dp.search.exploring import Explorer
from pytest_dp.search.observing import Clock
from pytest_dp.search.spaces import Candidate

UNSCREENED = 2
"""Pairs that are proposed though nothing new is seen of them: more find what no run shows, and
take samples from others. Chosen by hand."""
MAX_COMBINED = 40
"""Inputs with several constants that are looked at. Chosen by hand."""


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
        """Pairs with new behaviour, and a few others."""
        explorer, self._explorer = self._explorer, None
        if explorer is not None:
            yield from _pairs(explorer, lambda: explorer.space.corners(explorer.corners))


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
        """Pairs with new behaviour, and a few others."""
        explorer, self._explorer = self._explorer, None
        if explorer is not None and explorer.constants:
            space, constants = explorer.space, explorer.constants
            yield from _pairs(
                explorer,
                lambda: chain(
                    chain.from_iterable(map(space.placed, constants)),
                    (space.combined(constants, explorer.rng) for _ in range(MAX_COMBINED)),
                ),
            )


def _pairs(explorer: Explorer, candidates: Callable[[], Iterator[Candidate]]) -> Iterator[Pair]:
    """A few pairs with the first candidates in any case, then pairs around those that are new."""
    for candidate in islice(candidates(), UNSCREENED):
        pairs = (
            pair
            for pair in explorer.neighbours(candidate)
            if explorer.screen.blind or explorer.screen.rank(pair) is not None
        )
        yield from islice(pairs, 1)
    for candidate in candidates():
        if explorer.screen.blind:
            return
        yield from explorer.pairs(candidate)
