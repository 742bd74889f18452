"""How methods that search and then test spend the samples of their search."""

from __future__ import annotations

import pytest

from pytest_dp import audit


@pytest.mark.parametrize("method", ["statdp", "dpsniper"])
def test_pairs_with_an_input_that_is_rejected_are_passed_over(method):
    def total(records, rng):
        if not records:
            raise ValueError("no records")
        return len(records) + rng.laplace()

    given = {"inputs": [[1], [1, 2]], "neighbors": "add_remove_one", "n_jobs": 1}
    result = audit(total, eps=1.0, **given, max_samples=4_000, seed=1, method=method)
    assert not result.violated
    assert any("skipped" in note for note in result.notes)
