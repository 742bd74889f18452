"""Pairs that are screened before any noise is drawn: inside the claim, and the largest first."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

from pytest_dp import audit, queries
from pytest_dp.basics import clocks
from pytest_dp.claiming.claim import Arguments, expand
from pytest_dp.claiming.settings import Settings
from pytest_dp.data.relations import AddRemoveOne, Pair, ReplaceOne
from pytest_dp.pairs import make_pair_source, resolve_promise
from pytest_dp.pairs.examples import Examples
from pytest_dp.pairs.pair_strategies import EditedPairs
from pytest_dp.pairs.screening import BATCH_PAIRS, Screening, draw_parts
from pytest_dp.proposers import widen_source
from pytest_dp.running.calling import prepare

FRAME = pd.DataFrame({"age": [18, 40, 40], "region": ["n", "s", None], "pay": [1.5, 2, np.nan]})


@pytest.mark.parametrize("examples", [[[1, 2], [5, 6, 7]], [{1, 5, 9}], [FRAME]])
def test_parts_are_neighbours_inside_the_claim(examples):
    relation = AddRemoveOne()
    bounds = Examples(examples, relation)
    for pair in islice(draw_parts(examples, relation, np.random.default_rng(0)), 100):
        assert not relation.fault(pair.d1, pair.d2)
        assert bounds.beyond(pair) == ""
        assert pair.difference == "one record removed"


DIGITS = st.integers(0, 9)
TOGETHER = st.lists(st.sampled_from([(0, 0), (1, 1)]), max_size=4)
STRATEGIES = {
    "unique": (st.lists(DIGITS, max_size=6, unique=True), lambda d: len(set(d)) == len(d)),
    "min-size": (st.lists(DIGITS, min_size=3, max_size=6), lambda d: 3 <= len(d) <= 6),
    "filter": (
        st.lists(DIGITS, max_size=6).filter(lambda d: sum(d) % 2 == 0),
        lambda d: sum(d) % 2 == 0,
    ),
    "fields-together": (TOGETHER, lambda d: all(a == b for a, b in d)),
    "sorted": (st.lists(DIGITS, max_size=6).map(sorted), lambda d: list(d) == sorted(d)),
}


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add_remove_one", "replace_one"])
@pytest.mark.parametrize(("strategy", "yields"), STRATEGIES.values(), ids=STRATEGIES)
def test_screened_pairs_of_a_strategy_are_ones_that_it_yields(strategy, yields, relation):
    relation = {"add_remove_one": AddRemoveOne(), "replace_one": ReplaceOne()}[relation]
    draws = islice(EditedPairs(strategy, relation=relation).draw_values(1), 120)
    for drawn in filter(None, draws):
        assert yields(drawn.value.d1)
        assert yields(drawn.value.d2)
        assert not relation.fault(drawn.value.d1, drawn.value.d2)


LEAKING = [
    pytest.param("min-size", "add_remove_one", id="min-size"),
    pytest.param("sorted", "add_remove_one", id="sorted"),
]


def screened(mechanism, **promise):
    """Return where the pairs of a claim come from, and how far the answer moves on them."""
    (claim,) = expand({"eps": 1.0, **promise})
    claim = replace(claim, promise=resolve_promise(claim.promise))
    call = prepare(mechanism, claim.arguments)
    source = widen_source(
        make_pair_source(claim, 1, "inputs"), claim.promise, call, Settings(seed=1)
    )
    return source, source.screener.screen()


@pytest.fixture
def _few_screened(monkeypatch):
    monkeypatch.setattr("pytest_dp.proposers.by_movement.wanted_pairs", lambda _: 150)
    monkeypatch.setattr("pytest_dp.proposers.by_movement.MAX_OUTSIDE", 20)


@pytest.mark.slow
@pytest.mark.usefixtures("_few_screened", "few_pairs")
@pytest.mark.parametrize(("name", "relation"), LEAKING)
def test_a_leak_that_a_strategy_never_shows_is_not_met(name, relation):
    strategy, yields = STRATEGIES[name]

    def leaks_elsewhere(records, rng):
        return len(records) + (0 if yields(records) else 50) + rng.laplace(scale=2.0)

    _, found = screened(leaks_elsewhere, neighbors=relation, inputs=strategy)
    assert found.largest[0].movement.loss < 1
    assert all(yields(d) for pair in found.pairs for d in pair.inputs)


def clipped_at_ten(records, rng):
    return sum(min(record, 10) for record in records) + rng.laplace(scale=10.0)


def test_the_largest_movement_comes_first_of_its_kind():
    screening = Screening(prepare(clipped_at_ten, Arguments()), 20.0)
    done, moved = screening.screen([Pair([1, n], [1]) for n in range(50)], 40)
    assert done == 40
    assert moved[0].movement.loss == pytest.approx(1.0)
    assert moved[0].pair.d1 == [1, 10]


def test_pairs_that_take_long_to_make_end_it_early():
    def made():
        for n in range(10_000):
            until = clocks.processor_seconds() + 0.02
            while clocks.processor_seconds() < until:
                pass
            yield Pair([1, n], [1])

    screening = Screening(prepare(clipped_at_ten, Arguments()), 0.3)
    done, moved = screening.screen(made(), 10_000)
    assert done == BATCH_PAIRS
    assert (screening.note, screening.cut_off) == ("", "pairs take too long to make")
    assert moved[0].pair.d1 == [1, 10]


def only_drawn_by_itself(records, rng):
    return len(records) + int(np.random.default_rng(rng).bit_generator.random_raw())


@pytest.mark.slow
def test_a_result_says_why_no_pair_was_screened():
    claim = {"eps": 1.0, "neighbors": "add_remove_one", "inputs": [[1, 2]]}
    result = audit(only_drawn_by_itself, **claim, seed=1, n_jobs=1, max_samples=400)
    assert any("no pair was run without noise, as " in note for note in result.notes)


def noisy_count(records, rng):
    return len(records) + rng.laplace(scale=1.0)


@pytest.mark.slow
def test_a_pass_on_too_few_screened_pairs_does_not_rest_on_them(monkeypatch):
    screen = Screening.screen
    few = lambda self, pairs, _, **more: screen(self, pairs, 50, **more)  # noqa: E731
    claim = {"eps": 1.0, "neighbors": "add_remove_one", "inputs": [list(range(12))]}
    settings = {"seed": 1, "n_jobs": 1, "max_samples": 20_000}
    assert audit(noisy_count, **claim, **settings).strength == "aligned"
    monkeypatch.setattr(Screening, "screen", few)
    assert audit(noisy_count, **claim, **settings).strength not in ("exact", "aligned")


def scale_falls(answers, rng):
    ordered = sorted(answers)
    scale = 1.5 if ordered[1] - ordered[0] > 333 else 5.0
    return sum(answers) + rng.laplace(scale=scale)


@pytest.mark.slow
def test_noise_that_is_smaller_behind_a_gate_is_proposed_outside_of_the_patterns():
    source, found = screened(scale_falls, inputs=queries(5), neighbors="all_queries")
    assert found.largest[0].movement.loss == pytest.approx(1.0)
    (proposer,) = (one for one in source.proposers if one.name == "movement")
    first, *_ = proposer.propose()
    assert first.beyond
    assert np.diff(sorted(first.d1))[0] > 333
