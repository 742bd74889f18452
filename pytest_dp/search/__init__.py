"""Search for inputs: where a claim may be broken, and on how small ones it still is."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pytest_dp.claim import Promise
from pytest_dp.datasets import kind_of
from pytest_dp.datasets.relations import OfRecords, Pair
from pytest_dp.declaration import Queries, Values
from pytest_dp.inputs.sources import Bounded, Checked, PairSource, Proposer
from pytest_dp.limits import SEARCH_TIME
from pytest_dp.sampling.calling import Call
from pytest_dp.search.constants import constants_of
from pytest_dp.search.exploring import Explorer
from pytest_dp.search.from_strategies import MutatedPairs, Sifted
from pytest_dp.search.mutation import Mutation
from pytest_dp.search.observing import Clock
from pytest_dp.search.options import Options
from pytest_dp.search.proposing import Placing, Timed, corner_cases, with_constants
from pytest_dp.search.screening import SearchContext
from pytest_dp.search.shrinking import counts
from pytest_dp.search.spaces import Space
from pytest_dp.search.tables import Tables
from pytest_dp.search.vectors import Vectors
from pytest_dp.settings import Settings

__all__ = ["constants_of", "searched"]


def _checked(promise: Promise, proposers: Iterable[Proposer]) -> list[Proposer]:
    """The same, but for pairs that are no neighbours by the claim."""
    relation = promise.relation
    if relation is None:
        return list(proposers)

    def inside_claim(pair: Pair) -> bool:
        return not isinstance(promise.inputs, Queries) or counts(pair.d1, pair.d2)

    return [Checked(proposer, relation, inside_claim) for proposer in proposers]


def _exploring(explorer: Explorer) -> dict[str, Proposer]:
    """What proposes pairs of inputs that are alike, by the name of the option that asks for it."""
    return {
        "constants": Placing(explorer, "constants of the code", with_constants),
        "patterns": Placing(explorer, "corner cases", corner_cases),
        "mutation": Mutation(explorer),
    }


def searched(source: PairSource, promise: Promise, call: Call, settings: Settings) -> PairSource:
    """A source of the same pairs, followed by those that a search proposes.

    The inputs of the promise are looked up. Copies of the mechanism are run a few times.
    """
    names = [option for option in settings.search if isinstance(option, str)]
    users = _checked(promise, (option for option in settings.search if not isinstance(option, str)))
    given, generated, bounds = source.given, source.generated, source.bounds
    if not names:
        return PairSource(given, [*users, *source.proposers], generated, bounds)
    clock = Clock(SEARCH_TIME * settings.max_seconds)
    seed = settings.seed or 0
    context = SearchContext(call, given, bounds.holds, clock, seed)
    proposers: dict[str, Proposer] = {}
    untried: Callable[[], list[str]] = list
    space = None if generated else _space(promise, source)
    if generated is not None:
        proposers["mutation"] = MutatedPairs(generated, context, seed)
    elif space is not None and promise.relation is not None:
        explorer = Explorer(space, promise.relation, context)
        proposers = _exploring(explorer)
        untried = explorer.untried
    chosen = _checked(promise, (proposers[name] for name in proposers if name in names))
    wanted = settings.beyond != "off"
    bounded = [Bounded(proposer, bounds, wanted=wanted) for proposer in chosen]
    sifted = [Sifted(proposer, context) for proposer in source.proposers]
    ours: list[Proposer] = [*bounded, *sifted]
    timed = [Timed(proposer, clock) for proposer in ours]
    return PairSource(given, [*users, *timed], generated, bounds, untried)


def _space(promise: Promise, source: PairSource) -> Space | None:
    """The inputs to search; None where the claim does not say what they are."""
    inputs = promise.inputs
    if any(pair.params for pair in source.given):
        return None
    if isinstance(inputs, Queries):
        return Vectors(sorted({len(pair.d1) for pair in source.given}))
    if isinstance(inputs, Values):
        return Options(inputs.options)
    is_list = isinstance(inputs, list | tuple)
    same_kind = is_list and len({kind_of(example)[:1] for example in inputs}) == 1
    if same_kind and isinstance(promise.relation, OfRecords):
        return Tables(inputs, promise.relation)
    return None
