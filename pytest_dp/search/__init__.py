"""Proposers of pairs of inputs: where a mechanism may leak that leaks for few inputs only."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_dp.claim import Promise
from pytest_dp.datasets import kind_of
from pytest_dp.datasets.relations import OfRecords, Pair
from pytest_dp.declaration import Queries, Values
from pytest_dp.inputs.sources import Proposer
from pytest_dp.sampling.calling import Call
from pytest_dp.search.exploring import Explorer
from pytest_dp.search.mutation import Mutation
from pytest_dp.search.options import Options
from pytest_dp.search.proposing import Constants, Corners
from pytest_dp.search.spaces import Space
from pytest_dp.search.tables import Tables
from pytest_dp.search.vectors import Vectors
from pytest_dp.settings import Settings

TIME_SHARE = 0.02
"""Of max_seconds, for looking at inputs."""


def proposers(
    promise: Promise, call: Call, pairs: Sequence[Pair], settings: Settings
) -> list[Proposer]:
    """What searches for further pairs of a claim, beside those that it gives.

    Parameters
    ----------
    promise : Promise
        With its inputs looked up.
    call : Call
        The mechanism; copies of it are run a few times.
    pairs : sequence of Pair
        Those that the claim gives.
    settings : Settings
        Of which `search` says what is made.
    """
    own = [one for one in settings.search if not isinstance(one, str)]
    names = [one for one in settings.search if isinstance(one, str)]
    space = _space(promise, pairs)
    if space is None or promise.relation is None or not names:
        return own
    seconds = TIME_SHARE * settings.max_seconds
    explorer = Explorer(space, promise.relation, pairs, call, seconds, settings.seed or 0)
    made: dict[str, Proposer] = {
        "constants": Constants(explorer),
        "patterns": Corners(explorer),
        "mutation": Mutation(explorer),
    }
    return [*own, *(proposer for name, proposer in made.items() if name in names)]


def _space(promise: Promise, pairs: Sequence[Pair]) -> Space | None:
    """What there is to search; None where nobody knows."""
    inputs = promise.inputs
    if isinstance(inputs, Queries):
        return Vectors(sorted({len(pair.d1) for pair in pairs}))
    if isinstance(inputs, Values):
        return Options(inputs.options)
    alike = isinstance(inputs, list | tuple) and len({kind_of(one)[:1] for one in inputs}) == 1
    if alike and isinstance(promise.relation, OfRecords):
        return Tables(inputs, promise.relation)
    return None
