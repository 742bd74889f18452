"""Mechanisms exactly at their claim, with pairs that are searched; and broken behind a gate."""

from __future__ import annotations

import pytest
from boundary import most

from benchmarks.gated import GATED, SHOP
from benchmarks.planted import PLANTED
from benchmarks.type_one_searched import ALPHA, CLAIMS, trial
from pytest_dp import audit

pytestmark = pytest.mark.usefixtures("_verdict_only")
KINDS = [
    *("one coordinate", "nested, equality", "modulo 97", "string prefix", "opened by noise"),
    *("only duplicates", "overflow", "group-by key", "NaN switches the clip off"),
]
"""One gate of each kind; benchmarks audit the others."""
HIDDEN = [gated for gated in (*GATED, *PLANTED) if gated.name in KINDS]


@pytest.mark.canary
@pytest.mark.slow
@pytest.mark.parametrize(
    ("audits", "claims"), [(1, ["examples"]), pytest.param(8, CLAIMS, marks=pytest.mark.nightly)]
)
def test_searched_pairs_make_no_false_alarms(audits, claims):
    """At night, a version that alarms in three of ten audits passes one of 400 such tests.

    What can be won on any pair is computed in `test_bets_computed`. More audits are run by
    `benchmarks.type_one_searched`.
    """
    red = 0
    for name in claims:
        red += sum(trial(name, 1.0, seed, 6_000) for seed in range(audits))
        assert trial(name, 1.8, 0, 20_000), "what searched pairs alone break is red"
    assert red <= most(audits * len(claims), ALPHA)


@pytest.mark.slow
@pytest.mark.parametrize("gated", HIDDEN, ids=lambda gated: gated.name)
def test_what_leaks_behind_a_gate_only_is_found(gated):
    result = audit(gated.make(True), **gated.claim(), seed=0, n_jobs=1)
    assert result.violated or result.beyond.violated


def test_without_a_search_it_is_not():
    gated, effort = GATED[0], {"max_samples": 2_000, "seed": 0, "n_jobs": 1}
    result = audit(gated.make(True), **gated.claim(), search=(), **effort)
    assert not result.violated
    assert result.proposed == 0


def rare(purchases, rng, size, bonus):
    return (
        len(purchases)
        + bonus * any(user == "ann" for user, _ in purchases)
        + rng.laplace(size=size)
    )


@pytest.mark.usefixtures("few_pairs")
@pytest.mark.parametrize("method", ["statdp", "dpsniper"])
def test_other_auditors_look_at_the_pairs_up_front(method):
    claim = {"eps": 1.0, "neighbors": "add_remove_one", "inputs": SHOP, "vectorized": "size"}
    effort = {"method": method, "max_samples": 30_000, "seed": 1, "n_jobs": 1}
    assert audit(rare, **claim, **effort, params={"bonus": 4}).violated
    assert not audit(rare, **claim, **effort, params={"bonus": 0}).violated
