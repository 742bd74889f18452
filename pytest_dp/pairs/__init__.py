"""Neighbouring inputs: what a claim says about them, turned into pairs (D, D')."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations
from numbers import Integral
from pathlib import Path
from typing import Any

from pytest_dp.basics.errors import ClaimError
from pytest_dp.claiming.claim import Claim, Promise, fit_relation
from pytest_dp.claiming.setting_fields import is_strategy
from pytest_dp.data import describe, ends_first
from pytest_dp.data.ordering import distinct
from pytest_dp.data.relations import OfFunction, OfQueries, OfRecords, Pair, Relation
from pytest_dp.declaration import Queries, Values
from pytest_dp.pairs.deriving import (
    Derived,
    derive_pairs,
    pairs_by_function,
    split_first,
)
from pytest_dp.pairs.examples import EVERYTHING, Patterns
from pytest_dp.pairs.resolving import resolve, resolve_data, resolve_pairs, stated_pair
from pytest_dp.pairs.sources import PairSource, Proposing, mark_pairs

__all__ = ["Pair", "describe", "make_pair_source", "patterns", "resolve_promise"]


def make_pair_source(
    claim: Claim,
    seed: int,
    written: str,
    known: Sequence[Pair] = (),
    notes: list[str] | None = None,
    constants: Sequence[Any] = (),
    *,
    beyond: bool = True,
) -> PairSource:
    """Return the source of an audit's pairs (D, D'), from a claim that `resolve_promise` resolved.

    Pairs `known` to have broken the claim come first, if they have its parameters; then given
    pairs; then further pairs of the inputs. Equal seeds draw equal pairs. `written` is how errors
    name the inputs: ``"inputs='tests.dp_inputs:records'"``. Appends to `notes` which pairs are
    tried, if not all are. Strategies draw `constants` too. `beyond` is whether pairs outside of the
    claim are proposed. Raises ClaimError if inputs are no neighbours, or give no pair.
    """
    promise, params = claim.promise, claim.arguments.drawn
    known = [pair for pair in known if pair.params.keys() == params.keys()]
    drawn = is_strategy(promise.inputs) or is_strategy(promise.pairs)
    pairs = Derived([]) if drawn else _listed_or_derived(promise)
    if pairs.note and notes is not None:
        notes.append(pairs.note)
    if pairs.given and not params:
        bounds = pairs.bounds
        first = [pair for pair in known if not bounds.beyond(pair)]
        rest = mark_pairs(chain(known, pairs.rest), bounds, wanted=beyond)
        following = Proposing("the examples", lambda: rest)
        is_all = bounds is EVERYTHING and not pairs.note
        proposers = [following] * (not is_all)
        source = PairSource([*first, *pairs.given], proposers, bounds=bounds, following=rest)
        source.examples, source.wholes = pairs.examples, pairs.wholes
        return source
    # Hypothesis is loaded by now.
    from hypothesis import strategies as st

    from pytest_dp.pairs.drawing import describe_lost_features
    from pytest_dp.pairs.generated import Generated
    from pytest_dp.pairs.pair_strategies import Pairs, draw_stated_pairs, neighbours

    if is_strategy(promise.inputs):
        strategy = neighbours(promise.inputs, promise.relation, written)
    elif is_strategy(promise.pairs):
        strategy = draw_stated_pairs(promise.pairs, promise.relation)
    else:
        strategy = Pairs(st.sampled_from(pairs.given), listed=tuple(pairs.given))
    generated = Generated(strategy.with_params(params), seed, written, constants)
    lost = describe_lost_features()
    if lost and notes is not None:
        notes.append(lost)
    return PairSource([*known, *generated.pairs], [generated], generated)


def resolve_promise(
    promise: Promise, root: Path | None = None, notes: list[str] | None = None
) -> Promise:
    """Return the promise with its inputs or pairs looked up, and the relation that fits the inputs.

    Of a membership claim, the pairs become the dataset with and without each target record. A
    module that Python does not find is looked for in `root`, which is then appended to ``sys.path``
    for good. Appends to `notes` what a person should know, such as that a generator is cut off.
    Raises ClaimError if inputs or records are not found, or the relation does not fit them.
    """
    notes = [] if notes is None else notes
    if promise.games is not None:
        from pytest_dp.pairs.targets import targets_of  # needs NumPy, and pairs do not

        data = resolve_data(promise.inputs, root)
        targets = tuple(targets_of(data, promise.games.records))
        pairs = tuple((data, target.without) for target in targets)
        games = replace(promise.games, records=targets)
        return replace(promise, inputs=data, pairs=pairs, games=games)
    if promise.pairs is not None:
        return replace(promise, pairs=resolve_pairs(promise.pairs, root, notes))
    inputs = resolve(promise.inputs, root, notes)
    relation = fit_relation(promise.relation, inputs)
    return replace(promise, inputs=inputs, relation=relation)


def _listed_or_derived(promise: Promise) -> Derived:
    """Return the pairs of a claim with listed pairs, `queries`, `values` or example inputs.

    Raises ClaimError if there is no pair, or if a listed pair is not one of neighbours.
    """
    inputs, relation = promise.inputs, promise.relation
    if promise.pairs is not None:
        return Derived(
            [
                stated_pair(f"pairs[{at}]", d1, d2, relation)
                for at, (d1, d2) in enumerate(promise.pairs)
            ]
        )
    if isinstance(inputs, Queries):
        assert relation is not None  # they have a default
        patterns = _queries(inputs, relation)
        return Derived(patterns, bounds=Patterns(patterns))
    if isinstance(inputs, Values):
        return split_first(_values(inputs))
    if isinstance(relation, OfFunction):
        return pairs_by_function(inputs, relation)
    assert isinstance(relation, OfRecords)  # what else fits datasets
    return derive_pairs(inputs, relation)


def _queries(queries: Queries, relation: Relation) -> list[Pair]:
    """Return, for each length, the patterns of Table 1 of Ding et al. 2018 that are neighbours.

    If no pattern of a length is, or if answers may move by more than 1, neighbours of a vector of
    ones take their place. Raises ClaimError for an invalid length, or without any pair.
    """
    moves_by_one = isinstance(relation, OfQueries)
    pairs: dict[frozenset[tuple[int, ...]], Pair] = {}
    for length in queries.lengths:
        if not isinstance(length, Integral) or isinstance(length, bool) or length < 1:
            raise ClaimError(
                f"Invalid length {describe(length)} in {describe(queries)}. "
                "Allowed: whole numbers above 0, such as queries(5, 10)."
            )
        of_table = patterns(int(length)) if moves_by_one else ()
        fitting = [pair for two in of_table if (pair := relation.pair(*two))]
        for pair in fitting or relation.pairs([1] * int(length)):
            pairs.setdefault(frozenset((tuple(pair.d1), tuple(pair.d2))), pair)
    if not pairs:
        raise ClaimError(f"{describe(queries)} has no neighbours by {relation}: write others.")
    return list(pairs.values())


def patterns(n: int) -> Sequence[tuple[list[int], list[int]]]:
    """Return the patterns of `n` answers as pairs of lists, whose entries differ by at most 1."""
    half, rest = n // 2, n - 1
    return (
        ([1] * n, [2] + [1] * rest),  # One Above
        ([1] * n, [0] + [1] * rest),  # One Below
        ([1] * n, [2] + [0] * rest),  # One Above Rest Below
        ([1] * n, [0] + [2] * rest),  # One Below Rest Above
        ([1] * n, [0] * (n - half) + [2] * half),  # Half Half
        ([1] * n, [2] * n),  # All Above & All Below
        ([1] * n, [0] * n),  # not in the table, but in the counterexamples of the paper
        ([1] * half + [0] * (n - half), [0] * half + [1] * (n - half)),  # X Shape
    )


def _values(values: Values) -> Iterator[Pair]:
    """Return an iterator of pairs of any two values, the extreme values first.

    Raises ClaimError for fewer than two different values.
    """
    options = list(distinct(values.options))
    if len(options) < 2:
        raise ClaimError(
            f"{describe(values)} holds {'one value' if options else 'no value'}. Write at least "
            "two different ones, such as values([0, 1])."
        )
    chosen = (sorted(two) for two in combinations(ends_first(options), 2))
    return (Pair(options[a], options[b], "any two values") for a, b in chosen)
