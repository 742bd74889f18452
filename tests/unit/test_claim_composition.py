"""`composes=`: a claim is not less than what the claims of its parts add up to."""

from __future__ import annotations

import pytest

from pytest_dp import ClaimError, RenyiDP, add_remove_one, dp_claim
from pytest_dp.claiming.claim import expand

PAIRS = [([1, 0], [1])]
EXAMPLES = {"neighbors": "add_remove_one", "inputs": [[1, 0]]}


def part(**keywords):
    @dp_claim(**{"pairs": PAIRS, **keywords})
    def mechanism(data):
        return data

    return mechanism


def claimed(composes, **keywords):
    (claim,) = expand({"pairs": PAIRS, "composes": composes, **keywords})
    return claim.promise.guarantee


def parts_of(*given):
    """Parts with these claims, each so many times."""
    return {part(**keywords): times for keywords, times in given}


@pytest.mark.parametrize(
    ("parts", "enough", "short"),
    [
        ([({"eps": 0.5}, 1), ({"eps": 0.7}, 1)], {"eps": 1.2}, {"eps": 1.1}),
        ([({"mu": 0.3}, 4)], {"mu": 0.6}, {"mu": 0.59}),
        ([({"eps": 0.1}, 1), ({"rho": 0.2}, 1)], {"rho": 0.205}, {"rho": 0.2}),
        (
            [({"guarantee": RenyiDP({8: 0.2})}, 1), ({"guarantee": RenyiDP({8: 0.3})}, 1)],
            {"guarantee": RenyiDP({8: 0.5})},
            {"guarantee": RenyiDP({8: 0.49})},
        ),
        ([({"eps": 0.1}, 100)], {"eps": 6.0, "delta": 1e-6}, {"eps": 1.0, "delta": 1e-6}),
    ],
)
def test_a_claim_is_at_least_the_sum_of_its_parts(parts, enough, short):
    parts = parts_of(*parts)
    assert claimed(parts, **enough)
    with pytest.raises(ClaimError, match=r"This mechanism claims .* adds up to .*\. Claim that"):
        claimed(parts, **short)


def test_groups_are_compared_by_what_one_unit_is_promised():
    parts = {part(eps=0.1, neighbors="add_remove_one"): 2}
    assert claimed(parts, eps=0.2, neighbors=add_remove_one(group=3)).claimed == pytest.approx(0.6)
    with pytest.raises(ClaimError, match=r"adds up to eps=0\.2\."):
        claimed(parts, eps=0.1, neighbors=add_remove_one(group=3))


def mechanism_without_a_claim(data):
    return data


@pytest.mark.parametrize(
    ("composes", "keywords", "message"),
    [
        ([mechanism_without_a_claim], {}, "mechanism_without_a_claim has no claim of its own"),
        ([], {}, "Invalid composes=.*a list of mechanisms, or a dict"),
        ([({"eps": 0.1}, 0)], {}, "Invalid composes="),
        ([{"eps": "e", "params": {"e": [0.1, 1.0]}}], {}, "mechanism has 2 claims, by its params"),
        (
            [{"eps": 0.1, "pairs": None, "neighbors": "replace_one", "inputs": [[1, 0]]}],
            {"pairs": None, **EXAMPLES},
            "mechanism has neighbors='replace_one', the whole has neighbors='add_remove_one'",
        ),
        ([{"eps": 0.1, "delta": 1e-3}], {}, "add up to no eps with delta=0"),
    ],
)
def test_what_cannot_be_composed(composes, keywords, message):
    if composes and isinstance(composes, list) and isinstance(composes[0], dict):
        composes = [part(**keywords) for keywords in composes]
    with pytest.raises(ClaimError, match=message):
        claimed(composes, **{"eps": 1.0, **keywords})


QUERIES = "tests.queries:of_the_census"
NEAR = {"neighbors": "add_remove_one", "pairs": PAIRS}


@pytest.mark.parametrize(
    ("of_part", "of_whole", "problem"),
    [
        ({"pairs": PAIRS}, {"pairs": PAIRS[::-1]}, ""),
        ({"pairs": PAIRS}, EXAMPLES, "mechanism has its pairs= only, .*write the same neigh"),
        (NEAR, EXAMPLES, ""),
        (EXAMPLES, {"pairs": [([1], [0])]}, "the whole has its pairs= only"),
        (EXAMPLES, {"pairs": [([1, 2], [])], "neighbors": add_remove_one(group=2)}, ""),
        ({"pairs": "tests.inputs:pairs"}, {"pairs": "tests.inputs:others"}, "its pairs= only"),
        ({"inputs": QUERIES}, {"inputs": QUERIES}, ""),
        ({"inputs": QUERIES}, EXAMPLES, "mechanism has inputs= by a name"),
    ],
)
def test_parts_count_for_the_neighbours_that_they_are_promised_for(of_part, of_whole, problem):
    claim = {"eps": 1.0, "composes": [dp_claim(eps=0.5, **of_part)(lambda data: data)], **of_whole}
    claim["composes"][0].__name__ = "mechanism"
    if not problem:
        assert expand(claim)
        return
    with pytest.raises(ClaimError, match=problem):
        expand(claim)
