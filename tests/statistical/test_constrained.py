"""Data that keeps a constraint, declared by examples: what leaks on it is red, and nothing else."""

from __future__ import annotations

import pytest

from benchmarks.constrained import ZOO, audited

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("_verdict_only")]
KINDS = [
    *("one hot rows", "intervals", "even numbers", "rows that sum to 1", "dependent columns"),
    *("sorted numbers", "a frame in order", "categories", "check digits", "JSON texts"),
    *("unique ids", "nested records", "foreign keys", "optional by flag"),
]
"""One constraint of each kind; `benchmarks.constrained` audits all of them."""


@pytest.mark.parametrize("name", KINDS)
def test_what_leaks_inside_is_red_and_what_leaks_beyond_only_is_not(name):
    (twins,) = (twins for twins in ZOO if twins.name == name)
    assert audited(twins, wrong=True, seed=1, max_samples=20_000).violated
    assert not audited(twins, wrong=False, seed=1, max_samples=8_000).violated
