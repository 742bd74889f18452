import numpy as np
import pytest

from pytest_dp.outputs.features import all_features, features
from pytest_dp.outputs.place_choice import MAX_PLACES, choose
from pytest_dp.outputs.table import tabulate


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
