"""What a refuted claim is shown with when hardly any effort is left for fresh runs."""

from __future__ import annotations

import pytest

from pytest_dp import Sequential, audit
from pytest_dp.report.violation import violation

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("_without_blame")]

MECHANISMS = {
    "no noise": lambda d, rng: len(d),
    "hardly any": lambda d, rng: len(d) + rng.laplace(scale=0.05),
    "a label": lambda d, rng: "yes" if d and rng.random() < 0.99 else "no",
    "raises": lambda d, rng: 1 / len(d),
}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "coupled"),
    [("no noise", True), ("hardly any", False), ("a label", True), ("raises", False)],
)
def test_a_refutation_is_never_shown_with_less_than_it_says(name, coupled):
    ways = set()
    for most in (160, 280, 400, 2_000):
        result = audit(
            MECHANISMS[name],
            eps=1.0,
            pairs=[([1], [])],
            max_samples=most,
            seed=1,
            method=Sequential(coupled=coupled),
            n_jobs=1,
        )
        if not result.violated:
            continue
        found = result.counterexample
        assert found is not None, "D, D' and S are always shown"
        (c1, c2), (n1, n2) = found.bet_counts, found.bet_runs
        assert n1 == n2 <= result.bet_samples // 2
        assert c1 / n1 > 2.718 * c2 / n2
        text = " ".join(violation(result).split())
        alone = found.lower > 1.0
        ways.add(alone)
        assert ("eps >= " in text) == alone
        assert (" runs, outputs " in text) == (not alone)
    assert ways == {True, False}, "both ways were seen"


def test_events_are_as_round_as_they_can_be_without_proving_less():
    for seed in range(2):
        result = audit(
            lambda d, rng: sum(d) + rng.laplace(scale=0.5),
            eps=1.0,
            pairs=[([1, 0, 1], [1, 0])],
            seed=seed,
            n_jobs=1,
            max_seconds=600,
        )
        assert str(result.counterexample.event) in ("output < 1.0", "output >= 2.0")
        assert "about 2 times the claim" in result.counterexample.diagnosis[0]


def test_a_closer_look_leaves_the_samples_that_confirm_a_violation():
    """Pairs with shorter inputs are compared before copies are run; 20,178 samples came of that."""
    result = audit(
        lambda d, rng: len(d) + rng.laplace(scale=0.6),
        eps=1.0,
        pairs=[([1, 0, 1], [1, 0]), ([1], [])],
        max_samples=20_000,
        seed=5,
        n_jobs=1,
    )
    assert result.violated
    assert result.samples <= 20_000
