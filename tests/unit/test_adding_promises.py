"""A relation between neighbours and a notion of privacy are added in one place each."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest

import pytest_dp
from pytest_dp.basics.errors import ClaimError
from pytest_dp.data.neighbours import Pair, Relation
from pytest_dp.data.relations import RELATIONS
from pytest_dp.declaration import Queries
from pytest_dp.privacy.guarantees import HockeyStick, WithoutEps
from pytest_dp.privacy.regions import Region


class OnePair(Relation):
    """Vectors of which one answer rises by 1 while another falls."""

    __slots__ = ()
    name = "one_moves"
    example = "([1, 1], [2, 0])"
    of = Queries

    @property
    def required(self):
        return "one answer rises by 1 and another one falls by 1"

    def between(self, d1, d2):
        moved = sorted(np.subtract(d2, d1).tolist())
        if (moved[0], moved[-1]) != (-1, 1) or any(moved[1:-1]):
            return "others differ"
        return Pair(d1, d2, "one record moved from one count to another")

    def pairs(self, dataset, records=()):
        for up in range(len(dataset)):
            for down in range(len(dataset)):
                if up != down:
                    other = [x + (at == up) - (at == down) for at, x in enumerate(dataset)]
                    yield self.between(dataset, other)


@dataclass(frozen=True)
class TotalVariation(WithoutEps):
    """No event is more likely by more than this on one of two neighbours."""

    tv: float
    _parameter: ClassVar[str] = "tv"
    eps: None = field(default=None, init=False, repr=False, compare=False)

    @property
    def region(self):
        return Region.of_sticks(np.zeros(1), np.array([self.tv]))

    @property
    def hockey_sticks(self):
        return (HockeyStick(0.0, self.tv),)

    divergences = ()

    def at(self, value):
        return TotalVariation(min(value, 1.0))

    def delta_at(self, eps):
        return self.tv

    def renyi_at(self, order):
        return math.inf

    def largest_probability(self, q):
        return q + self.tv if isinstance(q, float) else np.minimum(q + self.tv, 1.0)

    def _shown(self, p, q):
        return p - q

    def shown_by_divergence(self, order, value):
        return 0.0

    def group(self, k):
        return TotalVariation(min(1.0, k * self.tv))

    @property
    def label(self):
        return f"tv={self.tv}"


def histogram(counts, rng, scale):
    return [count + rng.laplace(scale=scale) for count in counts]


def audited(scale, **claim):
    return pytest_dp.audit(
        histogram,
        **claim,
        inputs=pytest_dp.queries(3),
        params={"scale": scale},
        max_samples=20_000,
        seed=1,
    )


@pytest.mark.slow
def test_a_relation(monkeypatch):
    claim = {"eps": 1.0, "neighbors": "one_moves"}
    with pytest.raises(ClaimError, match="'one_query'"):
        audited(2.0, **claim)
    monkeypatch.setitem(RELATIONS, OnePair.name, OnePair)
    assert audited(2.0, **claim).verdict == "no violation"
    result = audited(1.0, **claim)  # enough if one of them moves
    assert result.violated
    moved = np.subtract(result.counterexample.d1, result.counterexample.d2)
    assert sorted(moved.tolist()) == [-1, 0, 1]


def flipped(bit, rng, keep):
    return int(bit) ^ int(rng.random() > keep)


@pytest.mark.slow
def test_a_notion_of_privacy():
    def of(keep):
        return pytest_dp.audit(
            flipped,
            guarantee=TotalVariation(0.3),
            pairs=[(0, 1)],
            params={"keep": keep},
            max_samples=40_000,
            seed=1,
        )

    assert of(0.65).verdict == "no violation"  # at the boundary
    broken = of(0.75)
    assert broken.violated
    assert "tv >= 0.4" in str(broken)
