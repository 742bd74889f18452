"""Search for inputs: where a claim may be broken, and on how small ones it still is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pytest_dp.claim import Promise
from pytest_dp.datasets import kind_of
from pytest_dp.datasets.relations import OfRecords, Pair
from pytest_dp.declaration import Queries, Values
from pytest_dp.inputs.sources import Checked, PairSource, Proposer
from pytest_dp.sampling.calling import Call
from pytest_dp.search.constants import constants_of
from pytest_dp.search.drawn import MutatedPairs, Sifted
from pytest_dp.search.exploring import Explorer
from pytest_dp.search.looking import Clock
from pytest_dp.search.mutation import Mutation
from pytest_dp.search.options import Options
from pytest_dp.search.proposing import Constants, Corners, Timed
from pytest_dp.search.refusing import accepted, repeats_of
from pytest_dp.search.screening import Screened
from pytest_dp.search.shrinking import counts
from pytest_dp.search.spaces import Space
from pytest_dp.search.tables import Tables
from pytest_dp.search.vectors import Vectors
from pytest_dp.settings import Settings

__all__ = ["accepted", "constants_of", "searched"]

TIME_SHARE = 0.1
"""Of max_seconds, for making inputs and looking at them."""


def searched(source: PairSource, promise: Promise, call: Call, settings: Settings) -> PairSource:
    """A source of the same pairs that goes on with what a search proposes.

    Parameters
    ----------
    source : PairSource
        Of the pairs that the claim gives, or that a strategy yields.
    promise : Promise
        With its inputs looked up.
    call : Call
        The mechanism; copies of it are run a few times.
    settings : Settings
        Of which `search` says what proposes pairs, and how.
    """
    relation = promise.relation

    def inside_claim(pair: Pair) -> bool:
        return not isinstance(promise.inputs, Queries) or counts(pair.d1, pair.d2)

    def checked(proposers: Iterable[Proposer]) -> list[Proposer]:
        return [p if relation is None else Checked(p, relation, inside_claim) for p in proposers]

    names = [one for one in settings.search if isinstance(one, str)]
    own = checked(one for one in settings.search if not isinstance(one, str))
    if not names:
        return PairSource(source.given, [*own, *source.proposers], source.generated)
    clock = Clock(TIME_SHARE * settings.max_seconds)
    space = None if source.generated else _space(promise, source)
    inside = space.inside if space else lambda data: True  # noqa: ARG005
    repeats = repeats_of(promise)

    def taken(data: Any) -> bool:
        return inside(data) and not repeats(data)

    screened = Screened(call, source.given, taken, clock, settings.seed or 0)
    made: dict[str, Proposer] = {}
    if source.generated is not None:
        made["mutation"] = MutatedPairs(source.generated, screened, settings.seed or 0)
    elif space is not None and relation is not None:
        explorer = Explorer(space, relation, screened)
        made["constants"] = Constants(explorer)
        made["patterns"] = Corners(explorer)
        made["mutation"] = Mutation(explorer)
    sifted = [Timed(Sifted(proposer, screened), clock) for proposer in source.proposers]
    chosen = [Timed(one, clock) for one in checked(made[name] for name in made if name in names)]
    return PairSource(source.given, [*own, *chosen, *sifted], source.generated)


def _space(promise: Promise, source: PairSource) -> Space | None:
    """What there is to search; None where nobody knows."""
    inputs = promise.inputs
    if any(pair.params for pair in source.given):
        return None
    if isinstance(inputs, Queries):
        return Vectors(sorted({len(pair.d1) for pair in source.given}))
    if isinstance(inputs, Values):
        return Options(inputs.options)
    alike = isinstance(inputs, list | tuple) and len({kind_of(one)[:1] for one in inputs}) == 1
    if alike and isinstance(promise.relation, OfRecords):
        return Tables(inputs, promise.relation)
    return None
