"""Proposers of corner cases and of inputs with constants of the code; and the time they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from pytest_dp.datasets.relations import Pair
from pytest_dp.inputs.sources import Proposer, Tried
from pytest_dp.limits import PATIENCE
from pytest_dp.search.exploring import Explorer
from pytest_dp.search.observing import Clock
from pytest_dp.search.spaces import Candidate


class Timed:
    """Another proposer's pairs; making them takes its time from a clock."""

    def __init__(self, proposer: Proposer, clock: Clock) -> None:
        self._proposer, self._clock = proposer, clock
        self.name: str = getattr(proposer, "name", type(proposer).__name__)

    def propose(self, past: Sequence[Tried]) -> Iterator[Pair]:
        with self._clock.running():
            pairs = iter(self._proposer.propose(past))
        while True:
            with self._clock.running():
                pair = next(pairs, None)
            if pair is None:
                return
            yield pair


class Placing:
    """Pairs around candidates with new behaviour, and a few others; all are proposed once.

    ``candidates(explorer)`` gives the inputs to look at.
    """

    def __init__(
        self,
        explorer: Explorer,
        name: str,
        candidates: Callable[[Explorer], Iterator[Candidate]],
    ) -> None:
        self.name, self._candidates = name, candidates
        self._explorer: Explorer | None = explorer

    def propose(self, past: Sequence[Tried]) -> Iterator[Pair]:  # noqa: ARG002
        """A few pairs with the first candidates, then pairs around those with new behaviour."""
        explorer, self._explorer = self._explorer, None
        if explorer is None:
            return
        for candidate in islice(self._candidates(explorer), 2):
            pairs = (
                pair
                for pair in explorer.neighbours(candidate)
                if explorer.screen.blind or explorer.screen.rank(pair) is not None
            )
            yield from islice(pairs, 1)
        for candidate in self._candidates(explorer):
            if explorer.screen.blind:
                return
            yield from explorer.pairs(candidate)


def corner_cases(explorer: Explorer) -> Iterator[Candidate]:
    """Inputs at which code that knows nothing of them may still go wrong."""
    return explorer.space.corners(explorer.corners)


def with_constants(explorer: Explorer) -> Iterator[Candidate]:
    """Inputs with each constant of the code, or a value just below or above; and with several."""
    space, constants = explorer.space, explorer.constants
    for constant in constants:
        for candidate in space.placed(constant):
            yield candidate
            explorer.tried.add(constant)
    for _ in range(PATIENCE if constants else 0):
        yield space.combined(constants, explorer.rng)
