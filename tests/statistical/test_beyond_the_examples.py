"""Red only inside the claim: what breaks it beyond the examples is told beside the verdict."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pytest_dp import audit

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("_without_blame")]
ADD = "add_remove_one"


def one_hot(rows, rng):
    return np.sum(np.array(rows, float).reshape(-1, 3), axis=0) + rng.laplace(size=3)


def lengths(spans, rng):
    """Hours of stays of at most a day: right where they start before they end."""
    return sum(min(end - start, 24) for start, end in spans) + rng.laplace(scale=24)


def codes(answers, rng):
    return sum({0: 0.0, 9: 1.0}.get(answer, 50.0) for answer in answers) + rng.laplace()


def of_sorted(numbers, rng):
    """How many of them there are, if they are sorted."""
    falls = sum(a > b for a, b in itertools.pairwise(numbers))
    return len(numbers) + 20 * falls + rng.laplace()


def of_unique(ids, rng):
    return len(ids) + 20 * (len(ids) - len(set(ids))) + rng.laplace()


def adults(ages, rng):
    return len(ages) if 0 in ages else len(ages) + rng.laplace()


CORRECT = {
    "one_hot": (one_hot, [[(1, 0, 0), (0, 1, 0), (0, 0, 1)]]),
    "lengths": (lengths, [[(1, 5), (3, 20), (8, 9)]]),
    "codes": (codes, [[0, 9, 9, 0]]),
    "of_sorted": (of_sorted, [[1, 4, 9], [2, 3, 5]]),
    "of_unique": (of_unique, [[7, 3, 5], [8, 9]]),
    "adults": (adults, [[18, 90, 35]]),
}
BROKEN_BEYOND = ("codes", "of_unique", "adults")


@pytest.mark.canary
@pytest.mark.parametrize("name", CORRECT)
def test_what_keeps_its_claim_on_the_examples_is_not_red(name):
    mechanism, examples = CORRECT[name]
    result = audit(mechanism, eps=1.0, neighbors=ADD, inputs=examples, seed=1, n_jobs=1)
    assert (result.verdict, result.outside) == ("no violation", "")
    assert result.strength in {"aligned", "exact", "strong"}
    assert result.counterexample is None
    if name in BROKEN_BEYOND:
        assert result.beyond.violated
        assert result.beyond.outside
        assert result.beyond.lower > 1


@pytest.mark.parametrize("name", ["one_hot", "codes", "of_sorted"])
def test_the_same_is_red_with_half_of_its_noise(name):
    mechanism, examples = CORRECT[name]
    result = audit(mechanism, eps=0.5, neighbors=ADD, inputs=examples, seed=1, n_jobs=1)
    assert (result.verdict, result.outside, result.beyond) == ("violated", "", None)


def test_it_is_red_or_not_looked_for_where_the_claim_says_so():
    claim = {"eps": 1.0, "neighbors": ADD, "inputs": [[18, 90, 35]], "seed": 3, "n_jobs": 1}
    red = audit(adults, **claim, beyond="fail")
    assert (red.verdict, red.outside) == ("violated", "0 (they have 18 to 90)")
    off = audit(adults, **claim, beyond="off")
    assert (off.verdict, off.beyond) == ("no violation", None)


@pytest.mark.parametrize("beyond", ["off", "tell"])
def test_a_violation_inside_is_simplified_inside_whether_or_not_others_are_looked_for(beyond):
    def count_and_size(letters, rng):
        return len(letters) + rng.laplace(), len(letters) > 1

    examples = [[], ["a"], ["b"], ["a", "b", "b"]]
    claim = {"eps": 1.0, "neighbors": ADD, "inputs": examples, "seed": 1, "n_jobs": 1}
    result = audit(count_and_size, **claim, beyond=beyond)
    assert (result.verdict, result.outside) == ("violated", "")


def test_a_record_twice_breaks_no_claim_whose_examples_hold_it_once():
    def count_and_twice(letters, rng):
        return len(letters) + rng.laplace(), letters.count("a") > 1

    claim = {"eps": 1.0, "neighbors": ADD, "inputs": [[], ["a", "b", "b"]], "seed": 1, "n_jobs": 1}
    off = audit(count_and_twice, **claim, beyond="off")
    assert (off.verdict, off.beyond) == ("no violation", None)
