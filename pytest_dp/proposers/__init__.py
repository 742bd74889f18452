"""Search for inputs: where a claim may be broken, and on how small ones it still is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from pytest_dp.claiming.claim import Promise
from pytest_dp.claiming.settings import Settings
from pytest_dp.data.relations import Pair
from pytest_dp.declaration import Queries, Values
from pytest_dp.pairs.sources import PairSource, Proposer, check_pairs, mark_pairs, sift_proposals
from pytest_dp.proposers.by_movement import ByMovement, Clock
from pytest_dp.proposers.interesting_values import constants_of
from pytest_dp.proposers.shrinking import may_be_counts, shrink_records
from pytest_dp.registry import load
from pytest_dp.running.calling import Call

SEARCH_TIME = 0.1
"""Share of the time for looking for inputs. With more, bets have less."""
MAX_FURTHER, MAX_UNSCREENED = 4, 60
"""Other pairs of the inputs that are proposed, if pairs were screened, and if not. Fewer miss leaks
that do not move the answer."""

__all__ = ["compared_values", "shrink_records", "widen_source"]


def compared_values(call: Call, promise: Promise, settings: Settings) -> list[Any]:
    """Return constants of the mechanism's code, and texts that match its regular expressions.

    They are put into inputs. Empty if no search is on, and for claims about pairs or `values`.
    """
    if not settings.search or promise.inputs is None or isinstance(promise.inputs, Values):
        return []
    from pytest_dp.proposers.turns import matching_texts  # loads Hypothesis

    found = constants_of(call.mechanism, call.params)
    return found + matching_texts(call.mechanism, call.params, settings.seed or 0)


def widen_source(
    source: PairSource, promise: Promise, call: Call, settings: Settings
) -> PairSource:
    """Return a new source: the given pairs, then pairs that the claim's searches propose.

    Searches take turns: the user's own, pytest-dp's, and the first few pairs of each proposer of
    `source`. pytest-dp's are left out if `settings.search` names none, or if a given pair is large;
    then the proposers of `source` are not limited. Of `source`, only the given pairs, generator,
    bounds and proposers are kept.

    The new source has a screener in any case. Screener and searches run copies of the mechanism
    only when they are called. The inputs of the promise were resolved before.
    """
    relation, bounds = promise.relation, source.bounds
    if source.examples is not None:
        promise = replace(promise, inputs=list(source.examples))
    inside = may_be_counts if isinstance(promise.inputs, Queries) else None
    neighbours = partial(check_pairs, relation=relation, inside=inside)
    names = [option for option in settings.search if isinstance(option, str)]
    users = [sift_proposals(own, neighbours) for own in settings.search if not isinstance(own, str)]
    clock = Clock(SEARCH_TIME * settings.max_seconds)
    constants = partial(compared_values, call, promise, settings)
    by_movement = ByMovement(source, promise, call, clock, settings, constants)
    if not names or any(pair.is_large for pair in source.given):
        proposers = [*users, *source.proposers]
        return PairSource(source.given, proposers, source.generated, bounds, screener=by_movement)
    wanted = settings.beyond != "off"
    solving: list[Proposer] = []
    notes: list[Callable[[], list[str]]] = []
    if "symbolic" in names and not isinstance(promise.inputs, Values):
        own_clock = Clock(SEARCH_TIME * settings.max_seconds / 2)
        make = load("search", "symbolic")
        by_symbols = make(call, source.given, relation, source.generated, own_clock)
        solving.append(by_symbols)
        notes.append(by_symbols.notes)
    if "gradient" in names:
        by_gradients = load("search", "gradient")(promise, call, clock, settings.seed or 0)
        solving.append(by_gradients)
        notes.append(by_gradients.notes)
    solved = partial(mark_pairs, bounds=bounds, wanted=wanted, keep_origin=True)
    return PairSource(
        source.given,
        [
            *users,
            sift_proposals(by_movement, neighbours),
            *(
                sift_proposals(proposer, neighbours, solved, clock.count_time)
                for proposer in solving
            ),
            *(
                sift_proposals(proposer, _FirstFew(by_movement), clock.count_time)
                for proposer in source.proposers
            ),
        ],
        source.generated,
        bounds,
        lambda: [note for of in notes for note in of()],
        screener=by_movement,
    )


class _FirstFew:
    """A sieve that lets only the first pairs of all calls pass."""

    def __init__(self, by_movement: ByMovement) -> None:
        self._by_movement, self._passed = by_movement, 0

    def __call__(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Screen in the first call; yield pairs until `MAX_FURTHER` have passed in all calls.

        Where pairs could not be screened, the limit is `MAX_UNSCREENED`.
        """
        is_screened = not self._by_movement.screen().note
        for pair in pairs:
            if self._passed >= (MAX_FURTHER if is_screened else MAX_UNSCREENED):
                return
            self._passed += 1
            yield pair
