"""Shrinking keeps what matters; explanations fit their case."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from results import FOUND

from pytest_dp.counterexample import KEPT_RANK, diagnose, in_one_sentence, simplest
from pytest_dp.outputs.event_search import RankedEvent, one_of, search
from pytest_dp.outputs.events import Between, Equals, Event, Is
from pytest_dp.outputs.feature import LEN, Feature, leaf
from pytest_dp.outputs.features import features
from pytest_dp.outputs.noise_relations import Relation
from pytest_dp.outputs.outcome import Raised
from pytest_dp.outputs.rounding import WholeOutputs
from pytest_dp.outputs.table import tabulate
from pytest_dp.privacy import ApproximateDP
from pytest_dp.readers.lattices import Remainder
from pytest_dp.statistics.event_bets import rank_for

OUTPUT = leaf("output")


def drawn(shift, scale=1.0, n=2000, seed=0):
    r = np.random.default_rng(seed)
    outputs = np.concatenate([scale * r.laplace(size=n), scale * (r.laplace(size=n) + shift)])
    return tabulate(outputs), np.arange(2 * n) < n


def found_for(event, table, first, rank):
    inside = event.mask(table)
    c1, c2 = int(np.sum(inside & first)), int(np.sum(inside & ~first))
    return RankedEvent(event, c1, c2, float(rank(np.array([c1]), np.array([c2]))[0]))


@settings(max_examples=40, deadline=None)
@given(
    st.floats(1.5, 4),
    st.sampled_from([1e-9, 1e-3, 1.0, 7.0, 1e12, 1e300]),
    st.integers(0, 5),
)
def test_simplest_keeps_its_share_of_the_rank(shift, scale, seed):
    table, first = drawn(shift, scale, seed=seed)
    rank = rank_for(ApproximateDP(0.5))(2000)
    for found in search(table, first, rank, features(table, first), limit=5):
        simple = simplest(found, table, first, rank)
        again = found_for(simple.event, table, first, rank)
        assert (simple.c1, simple.c2) == (again.c1, again.c2)
        assert simple.rank == pytest.approx(again.rank)
        if found.rank > 0:
            assert simple.rank >= KEPT_RANK * found.rank
        else:
            assert simple is found
        assert len(str(simple.event)) <= len(str(found.event)) + 1


# --- diagnosis ---


def said(condition, counts=(500, 100), runs=10_000, eps=1.0, searched=()):
    tables = [tabulate(outputs) for outputs in searched]
    return diagnose(Event((condition,)), counts, (runs, runs), ApproximateDP(eps), tables)


SOME = Between(OUTPUT, low=1.0)


def of(output):
    table = tabulate([output])
    return one_of(table, [0], WholeOutputs.of(table))


@pytest.mark.parametrize(
    ("condition", "beginning"),
    [
        (Is(OUTPUT, ("Raised", Raised("ValueError"))), "The exception itself"),
        (of(Raised("ValueError")), "The exception itself"),
        (Is(OUTPUT, ("NoneType", None)), "A missing value"),
        (of(None), "A missing value"),
        (of(math.nan), "A missing value"),
        (Equals(OUTPUT, math.nan), "A missing value"),
        (Between(LEN, low=3.0), "The length"),
        (Equals(LEN, 3.0), "The length"),
    ],
)
def test_what_kind_of_leak(condition, beginning):
    assert said(condition)[0].startswith(beginning)


def test_constant():
    (only,) = said(SOME, (10_000, 0), searched=([2.0] * 9, [0.0] * 9))
    assert "same value in all of its runs on each input" in only
    assert "same value" not in str(said(SOME, (10_000, 0), searched=([2.0] * 9, [0.0, 0.5])))


def test_never_seen():
    (only,) = said(SOME, (500, 0))
    assert only.startswith("S never came on D' in 10,000 runs:")


@pytest.mark.parametrize(("k", "words"), [(2, "half"), (3, "a third"), (7, "1/7"), (10, "a tenth")])
def test_a_multiple_of_the_claim(k, words):
    eps, runs = 0.3, 4_000_000
    c1 = 1_000_000
    c2 = round(c1 * math.exp(-k * eps))
    (only,) = said(SOME, (c1, c2), runs, eps)
    assert f"about {k} times the claim. That fits noise of {words}" in only


@pytest.mark.parametrize(
    ("counts", "runs"),
    [
        ((50, 7), 100),  # ln(50/7) = 1.97, but hardly known
        ((1_000_000, round(1_000_000 * math.exp(-1.5))), 4_000_000),
        ((1_000_000, round(1_000_000 * math.exp(-1.0))), 4_000_000),
        ((100, 100), 100),
        ((0, 5), 100),
    ],
)
def test_no_multiple_is_claimed_where_there_is_none(counts, runs):
    assert said(SOME, counts, runs) == ()


def test_what_noise_left_behind_is_named():
    def said(condition, *outputs):
        event, claim = Event((condition,)), ApproximateDP(1.0)
        return diagnose(event, (50, 0), (99, 99), claim, tuple(map(tabulate, outputs)))[0]

    two = Relation(("output['a']", "output['b']"), (1.0, -2.0), digits=6)
    shared = said(Equals(Feature(str(two), "relation", two), 1.5))
    assert shared.startswith("Two numbers of the output share their noise: it cancels out in ")
    three = Relation(("x", "y", "z"), (1.0, -1.0, -1.0), digits=6)
    shared = said(Equals(Feature(str(three), "relation", three), 1.5))
    assert shared == (
        "Three numbers of the output share their noise: it cancels out in round(x - y - z, 6). "
        "Draw new noise for each number."
    )
    grid = Remainder(1 / 3, 0.0, 4, place="output")
    assert "a grid with steps of 1 / 3, and the data shift" in said(
        Equals(Feature("", "remainder", grid), 0.1)
    )
    recurs = [7.18] * 20 + np.random.default_rng(0).laplace(size=480).tolist()
    released = said(Equals(leaf("output"), 7.18), recurs, recurs[20:])
    assert released.startswith("One output comes again and again")


def scaled_copies(data, noise):
    return {"sum": sum(data) + 3 * noise, "mean": {"of all": len(data) + noise}}


def in_an_array(data, noise):
    return np.array([len(data), sum(data), 7.0]) + noise


def multiplied(data, noise):
    return (len(data) * math.exp(noise), sum(data) * math.exp(-noise))


SHARING = {
    "a scaled copy in a dict": (scaled_copies, "3*output['mean']['of all'] - output['sum']"),
    "an array": (in_an_array, "output[0] - output[1]"),
    "a product": (multiplied, "output[0]*output[1]"),
}


@pytest.mark.parametrize(("mechanism", "relation"), SHARING.values(), ids=SHARING)
def test_shared_noise_is_named_whatever_the_event_speaks_of(mechanism, relation):
    rng = np.random.default_rng(1)
    tables = [tabulate([mechanism(d, rng.normal()) for _ in range(60)]) for d in ([3, 5], [3])]
    said = diagnose(None, (50, 0), (99, 99), ApproximateDP(1.0), tables)[0]
    assert said.startswith(f"{relation} has no noise: both use the same random numbers.")


def test_noise_that_is_not_shared_or_tells_nothing_is_no_finding():
    rng = np.random.default_rng(1)

    def said(mechanism):
        tables = [tabulate([mechanism(d) for _ in range(60)]) for d in ([3, 5], [3])]
        return " ".join(diagnose(None, (50, 0), (99, 99), ApproximateDP(1.0), tables))

    assert "has no noise" not in said(lambda d: (len(d) + rng.normal(), sum(d) + rng.normal()))
    assert "has no noise" not in said(lambda d: [noisy := len(d) + rng.normal(), 2 * noisy + 1])
    assert "has no noise" not in said(lambda d: (len(d), sum(d) + rng.normal()))


@pytest.mark.parametrize(
    ("fresh", "shown"),
    [((50, 50), "came in 40 of 50 runs on D, and in 1 of 50 on D'"), ((0, 0), "7 of 9 runs on D")],
)
def test_what_could_not_be_confirmed_is_one_sentence_with_both_inputs_and_the_event(fresh, shown):
    counts = (40, 1) if any(fresh) else (0, 0)
    example = replace(FOUND, counts=counts, runs=fresh, bet_counts=(7, 0), bet_runs=(9, 9))
    said = in_one_sentence(example)
    assert said.startswith("It was seen on D = [0] and D' = []: S = {output >= 1.0} came in ")
    assert shown in said
