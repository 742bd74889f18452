"""Data that keeps a constraint, declared by examples: what leaks on it is red, and nothing else."""

from __future__ import annotations

import pytest

from benchmarks.constrained import ZOO, audited

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("_verdict_only")]
FEW = ["one hot rows", "even numbers", "sorted numbers", "categories", "unique ids", "check digits"]
MECHANISMS = [
    pytest.param(twins, id=twins.name, marks=() if twins.name in FEW else pytest.mark.nightly)
    for twins in ZOO
]


@pytest.mark.parametrize("twins", MECHANISMS)
def test_what_leaks_inside_is_red(twins):
    assert audited(twins, wrong=True, seed=1, max_samples=20_000).violated


@pytest.mark.nightly
@pytest.mark.parametrize("twins", MECHANISMS)
def test_what_leaks_beyond_only_is_not(twins):
    assert not audited(twins, wrong=False, seed=1, max_samples=8_000).violated
