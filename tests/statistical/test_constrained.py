"""Data that keeps a constraint, declared by examples: what leaks on what they hold is red."""

from __future__ import annotations

import pytest

from benchmarks.constrained import ZOO, audited

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("_without_blame")]
FEW = ["one hot rows", "even numbers", "sorted numbers", "categories", "unique ids", "check digits"]
SOME = [twins for twins in ZOO if twins.name in FEW]


@pytest.mark.parametrize("twins", SOME, ids=lambda twins: twins.name)
def test_what_leaks_inside_is_red(twins):
    assert audited(twins, wrong=True, seed=1, max_samples=20_000).violated
