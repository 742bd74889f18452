"""Audits by betting of mechanisms that shared random numbers would break."""

from __future__ import annotations

import pytest
from boundary import COUNTS

from pytest_dp import audit


def shuffled(records, scale, rng, size):
    """Right noise, dealt in an order that depends on the data."""
    noise = rng.laplace(scale=scale, size=size)
    return len(records) + (noise if records else noise[::-1])


class Buffered:
    """Right noise, drawn ahead in large amounts, for each input by itself."""

    def __init__(self):
        self.noise = {}

    def __call__(self, records, rng):
        mine = self.noise.setdefault(len(records), [])
        if not mine:
            mine.extend(rng.laplace(size=500))
        return len(records) + mine.pop() if len(records) else len(records) + mine.pop(0)


class Late(Buffered):
    """Behaves for a while."""

    calls = 0

    def __call__(self, records, rng):
        self.calls += 1
        if self.calls < 1_000:
            return len(records) + rng.laplace()
        return super().__call__(records, rng)


@pytest.mark.usefixtures("_without_blame", "_by_samples")  # what is known needs no shared draws
@pytest.mark.parametrize(
    ("mechanism", "more", "note"),
    [
        (shuffled, {"vectorized": "size", "params": {"scale": 1.0}}, "are not shared"),
        (Buffered, {}, ""),  # runs cannot be repeated, which shows before
        (Late, {}, "started again without shared random numbers"),
    ],
)
def test_mechanisms_that_coupling_would_break_are_drawn_independently(mechanism, more, note):
    one = mechanism() if isinstance(mechanism, type) else mechanism
    common = {"alpha": 0.05, "max_samples": 6_000, "seed": 0, "n_jobs": 1}
    result = audit(one, eps=1.0, **COUNTS, **common, **more)
    assert not result.violated
    assert any(note in said for said in (*result.notes, ""))
    assert result.replayable == (mechanism is shuffled)  # no buffer served a batch
