import numpy as np
import pytest

from pytest_dp.outputs.features import all_features, features
from pytest_dp.outputs.place_choice import MAX_PLACES, choose, differing_columns, informative
from pytest_dp.outputs.table import tabulate

HALF = 60
FIRST = np.arange(2 * HALF) < HALF


def test_what_differs_between_the_outputs_of_a_pair():
    rng = np.random.default_rng(2)
    same = rng.laplace(size=(HALF, 6))
    one, two = same.copy(), same.copy()
    two[:, 1] += 1e-13  # by rounding
    two[7, 2] += 0.1  # once
    one[5, 3] = two[5, 3] = np.nan
    one[5, 4], two[5, 4] = np.nan, 0.0
    one[5, 5], two[5, 5] = np.inf, 1e300
    rows = np.arange(HALF)
    moved = differing_columns(np.concatenate([one, two]), None, rows, rows + HALF)
    assert moved.tolist() == [False, False, True, False, True, True]


def test_with_shared_noise_the_columns_that_differ_are_chosen():
    rng = np.random.default_rng(3)
    noise = rng.laplace(size=(HALF, 500))
    numbers = np.concatenate([noise, noise])
    numbers[FIRST, 300] += 1e-3  # far too little to see without pairs
    assert informative(numbers, None, FIRST, MAX_PLACES, paired=HALF).tolist() == [300]
    few = np.arange(2 * HALF) % HALF < 24
    assert informative(numbers[few], None, FIRST[few], MAX_PLACES, paired=24).tolist() == [300]


@pytest.mark.parametrize("make", [np.asarray, lambda rows: rows.tolist(), "dicts"])
def test_of_thousands_of_places_the_one_that_moves_is_learned_from(make):
    rng = np.random.default_rng(5)
    noise = rng.laplace(size=(24, 3_000))
    numbers = np.concatenate([noise, noise])
    first = np.arange(48) < 24
    numbers[first, 1_234] += 1
    if make == "dicts":
        outputs = [{f"bin {i}": x for i, x in enumerate(row)} for row in numbers.tolist()]
        place = "output['bin 1234']"
    else:
        outputs, place = make(numbers), "output[1234]"
    table = tabulate(outputs)
    assert choose(table, first, 24).chosen == [place]
    found = all_features(table, first, 24)
    assert [f.text for f in found if f.kind == "leaf"] == [place]
    assert {f.kind for f in found} >= {"mean", "sum"}
    assert len(found) < 20
    assert len([f for f in features(table, first) if f.kind == "leaf"]) == MAX_PLACES // 2
