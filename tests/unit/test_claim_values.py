"""Values of guarantee=, neighbors= and method=: like names, their texts, and old keywords."""

from __future__ import annotations

import pytest

from pytest_dp import (
    ClaimError,
    RenyiDP,
    Sequential,
    TradeOff,
    add_remove_one,
)
from pytest_dp.basics.reprs import LINE_WIDTH
from pytest_dp.claiming.claim import expand
from pytest_dp.claiming.keywords import KEYWORDS
from pytest_dp.claiming.settings import Settings
from pytest_dp.records.comparing import claim_changes
from pytest_dp.records.entries import entry
from pytest_dp.records.judging import Collected, judge_claim


def coin(x):
    return max(0.0, 0.9 - x)


def test_an_unknown_keyword_is_answered_in_lines_that_can_be_read():
    with pytest.raises(ClaimError) as caught:
        expand({"epsilom": 1.0})
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("A claim has no keyword 'epsilom'. Did you mean 'eps")
    assert max(map(len, lines)) <= LINE_WIDTH
    assert all(keyword in str(caught.value) for keyword in KEYWORDS)


def of(**keywords):
    (claim,) = expand({"inputs": [[(1, 2)]], **keywords})
    return entry(claim, Settings().over(claim.effort))


@pytest.mark.parametrize(
    ("old", "new", "told", "keyword"),
    [
        (
            {"eps": 1.0, "neighbors": add_remove_one(unit=0, rows=3)},
            {"eps": 1.0, "neighbors": add_remove_one(unit=0, rows=2)},
            "neighbours neighbors=add_remove_one(unit=0, rows=3) -> "
            "neighbors=add_remove_one(unit=0, rows=2)",
            "neighbors",
        ),
        (
            {"eps": 1.0, "neighbors": "replace_one", "inputs": [[1], [2]]},
            {"eps": 1.0, "neighbors": "replace_one", "inputs": [[1]]},
            "inputs 2 examples, among them [2] -> 1 example",
            "inputs",
        ),
        (
            {"rho": 0.1, "neighbors": "replace_one"},
            {"guarantee": RenyiDP({2: 0.3}), "neighbors": "replace_one"},
            "promise rho=0.1 -> guarantee=RenyiDP({2: 0.3})",
            "guarantee",
        ),
        (
            {"guarantee": TradeOff(coin), "neighbors": "replace_one"},
            {"guarantee": TradeOff(lambda x: 0.5 - x / 2), "neighbors": "replace_one"},
            "promise guarantee=TradeOff(coin) -> guarantee=TradeOff(f)",
            "guarantee",
        ),
        (
            {"eps": 1.0, "neighbors": "replace_one"},
            {"eps": 1.0, "neighbors": "replace_one", "method": Sequential(coupled=False)},
            "coupled True -> False",
            "method",
        ),
    ],
)
def test_what_is_on_record_is_told_as_it_is_written(old, new, told, keyword):
    assert [str(change) for change in claim_changes(of(**old), of(**new))] == [told]
    told = judge_claim({"f": of(**old)}, Collected("f", of(**new), on_record="f"))
    assert keyword in told.keywords
