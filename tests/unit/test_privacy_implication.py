"""Which guarantee is at least as strong as which other one."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from pytest_dp import PrivacyProfile, RenyiDP, TradeOff
from pytest_dp.privacy import read_guarantee
from pytest_dp.privacy.composition import implies

GIVEN = [
    *({"eps": eps, "delta": delta} for eps, delta in product((0.1, 1.0, 3.0), (0.0, 1e-6, 0.1))),
    *({"rho": rho} for rho in (0.01, 0.5, 4.0)),
    *({"mu": mu} for mu in (0.1, 1.0, 3.0)),
    {"guarantee": RenyiDP({2: 0.1})},
    {"guarantee": RenyiDP({2: 0.5, 8: 2.0})},
    {"guarantee": PrivacyProfile(lambda eps: max(0.0, 0.2 - 0.1 * (math.exp(eps) - 1)))},
    {"guarantee": TradeOff(lambda x: max(0.0, 0.9 - x))},
]
GUARANTEES = [read_guarantee(keywords) for keywords in GIVEN]
QUANTILES = np.concatenate([np.geomspace(1e-12, 0.5, 60), 1 - np.geomspace(1e-12, 0.5, 60)])


@pytest.mark.parametrize("given", GUARANTEES, ids=str)
def test_what_follows_allows_no_less(given):
    """Of any event, and of any order."""
    followed = [asked for asked in GUARANTEES if implies(given, asked)]
    assert given in followed
    for asked in followed:
        assert np.all(
            given.largest_probability(QUANTILES)
            <= asked.largest_probability(QUANTILES) * (1 + 1e-8) + 1e-12
        )
        for order in (1.5, 2.0, 8.0):
            assert given.renyi_at(order) <= asked.renyi_at(order) * (1 + 1e-6)


@pytest.mark.parametrize(
    ("given", "asked", "follows"),
    [
        ({"eps": 1.0}, {"eps": 1.0, "delta": 1e-9}, True),
        ({"eps": 1.0, "delta": 1e-9}, {"eps": 1.0}, False),
        ({"eps": 0.9, "delta": 1e-5}, {"eps": 1.0, "delta": 1e-6}, False),
        ({"eps": 1.1, "delta": 1e-9}, {"eps": 1.0, "delta": 0.1}, True),
        ({"eps": 1.0}, {"rho": 0.5}, True),
        ({"eps": 1.0}, {"rho": 0.4}, False),
        ({"rho": 0.5}, {"eps": 50.0}, False),
        ({"rho": 0.5}, {"eps": 6.0, "delta": 1e-5}, True),
        ({"mu": 1.0}, {"rho": 0.5}, True),
        ({"rho": 0.5}, {"mu": 1.0}, False),
        ({"eps": 0.5}, {"mu": 1.0}, True),
        ({"eps": 5.0}, {"mu": 1.0}, False),
        ({"rho": 0.05}, {"guarantee": RenyiDP({2: 0.1})}, True),
        ({"rho": 0.06}, {"guarantee": RenyiDP({2: 0.1})}, False),
        ({"guarantee": RenyiDP({2: 0.1})}, {"rho": 9.0}, False),
        (
            {"guarantee": RenyiDP({2: 0.1, 4: 0.3})},
            {"guarantee": RenyiDP({2: 0.2, 4: 0.25})},
            False,
        ),
        ({"auc": 0.6}, {"auc": 0.7}, True),
        ({"auc": 0.7}, {"auc": 0.6}, False),
        ({"eps": 0.1}, {"auc": 0.9}, False),
        ({"guarantee": RenyiDP({2: 0.1, 4: 0.2})}, {"guarantee": RenyiDP({2: 0.1})}, True),
        ({"guarantee": RenyiDP({2: 0.1})}, {"guarantee": RenyiDP({2: 0.1, 4: 0.2})}, False),
    ],
)
def test_between_notions(given, asked, follows):
    assert implies(read_guarantee(given), read_guarantee(asked)) == follows


def test_what_nearly_follows_does_not():
    """A trade-off function composes to within half a percent, which is no leave to lose that."""

    def pure(eps):
        return TradeOff(lambda x: max(0.0, 1 - math.exp(eps) * x, math.exp(-eps) * (1 - x)))

    asked = read_guarantee({"eps": 1.0, "delta": 1e-5})
    assert implies(pure(1.0), asked)
    assert not implies(pure(1.002), asked)
