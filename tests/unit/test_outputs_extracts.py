import numpy as np
import pytest

from pytest_dp.counterexample import is_constant
from pytest_dp.outputs.feature import Extract
from pytest_dp.outputs.features import all_features
from pytest_dp.outputs.hashing import hashes
from pytest_dp.outputs.paired_outputs import PairedOutputs
from pytest_dp.outputs.table import concatenate, tabulate

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
ROWS = RNG.laplace(size=(200, 300))
MIXED = [
    [None if i % 7 == row % 5 else x for i, x in enumerate(numbers[: 290 + row % 3])]
    for row, numbers in enumerate(ROWS.tolist())
]
OUTPUTS = {
    "array": ROWS,
    "lists": ROWS.tolist(),
    "bits": ROWS > 0,
    "mixed": MIXED,
    "dicts": [dict(zip(map(str, range(300)), row, strict=True)) for row in ROWS.tolist()],
}


@pytest.fixture(params=OUTPUTS)
def outputs(request):
    return OUTPUTS[request.param]


def about(outputs):
    return tuple(all_features(tabulate(outputs), np.arange(200) < 100))


def test_an_extract_has_the_columns_of_its_features_and_the_hashes(outputs):
    table, features = tabulate(outputs), about(outputs)
    extract = Extract(features)(table)
    assert len(extract) == 200
    assert extract.is_extract
    assert not table.is_extract
    for feature in features:
        for given, expected in zip(feature.columns(extract), feature.columns(table), strict=True):
            np.testing.assert_array_equal(given, expected)
    np.testing.assert_array_equal(hashes(extract), hashes(table))


def test_extracts_of_batches_are_put_together_in_order(outputs):
    extract = Extract(about(outputs))
    # Categories are numbered anew in each batch, as they appear.
    batches = [tabulate(outputs[:1]), tabulate(outputs[1:80]), tabulate(outputs[80:])]
    together, whole = concatenate(list(map(extract, batches))), extract(tabulate(outputs))
    np.testing.assert_array_equal(hashes(together), hashes(whole))
    names = {code: level for level, code in together.levels.items()} | {-1: -1, -2: -2}
    expected = {code: level for level, code in whole.levels.items()} | {-1: -1, -2: -2}
    for feature in extract.about:
        (numbers, codes), (others, kinds) = feature.columns(together), feature.columns(whole)
        np.testing.assert_array_equal(numbers, others)
        assert [names[c] for c in codes.tolist()] == [expected[c] for c in kinds.tolist()]


def test_what_is_kept_is_in_the_order_of_its_batches_whatever_it_is(outputs):
    table, kept = tabulate(outputs), PairedOutputs()
    kept.add(tabulate(outputs[:30]), tabulate(outputs[30:60]), coupled=True)
    kept.table()
    kept.add(tabulate(outputs[60:70]), tabulate(outputs[70:80]), coupled=False)
    kept.add(tabulate(outputs[80:140]), tabulate(outputs[140:]), coupled=False)
    together, on_d = kept.table()
    order = np.r_[0:30, 60:70, 80:140, 30:60, 70:80, 140:200]
    np.testing.assert_array_equal(hashes(together), hashes(table)[order])
    assert on_d.tolist() == [True] * 100 + [False] * 100
    assert (kept.pairs, kept.coupled) == (100, 30)
    kept.keep_only(list(about(outputs)))
    assert kept.table()[0].is_extract
    np.testing.assert_array_equal(hashes(kept.table()[0]), hashes(table)[order])
    np.testing.assert_array_equal(hashes(kept.examples()), hashes(table)[order])


@pytest.mark.parametrize(
    ("outputs", "constant"),
    [
        (np.ones((5, 400)), True),
        (ROWS, False),
        ([float("nan")] * 3, True),
        ([0.0, -0.0], True),
        ([[1, 2], [1, 2]], True),
        ([[1, 2], (1, 2)], False),
        ([None, None], True),
        ([], False),
    ],
)
def test_whether_outputs_are_all_the_same(outputs, constant):
    assert is_constant(tabulate(outputs)) is constant
