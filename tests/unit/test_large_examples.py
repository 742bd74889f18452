"""Examples of thousands of rows, of which few stand for all: others are never read one by one."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pandas as pd
import polars as pl
import pytest
from neighbours import source

from pytest_dp import add_remove_one
from pytest_dp.claiming.claim import expand
from pytest_dp.data import key, records_of
from pytest_dp.data.conversion import length, select_rows
from pytest_dp.data.record_pool import ThinPool
from pytest_dp.pairs.large import KEPT_ROWS, choose_rows

ROWS = 5_000
AGES = np.random.default_rng(0).integers(18, 91, ROWS)
INCOMES = np.random.default_rng(1).lognormal(10, 1, ROWS)
INCOMES[4_321] = np.nan
REGIONS = np.random.default_rng(2).choice(["north", "south", "west"], ROWS)
REGIONS[1_234] = "isle"
FRAME = pd.DataFrame({"age": AGES, "income": INCOMES, "region": REGIONS})
DATASETS = {
    "dicts": FRAME.to_dict("records"),
    "array": np.column_stack([AGES, INCOMES]),
    "frame": FRAME,
    "polars": pl.from_pandas(FRAME),
    "set": {int(at) for at in range(ROWS)},
}
each_dataset = pytest.mark.parametrize("data", DATASETS.values(), ids=DATASETS)


@each_dataset
def test_kept_rows_have_the_extremes_of_each_column_and_each_category(data):
    few = records_of(select_rows(data, choose_rows(data)))
    assert len(few) == KEPT_ROWS
    whole, kept = pd.DataFrame(records_of(data)), pd.DataFrame(few)
    for at in whole:
        if isinstance(whole[at][0], str):
            assert set(whole[at]) == set(kept[at])
        else:
            assert {whole[at].min(), whole[at].max()} <= set(kept[at])
            assert whole[at].isna().any() == kept[at].isna().any()


def test_a_row_of_each_type_and_an_absent_field_is_kept():
    data = [{"age": 1.5, "note": "x"} for _ in range(ROWS)]
    data[3_000] = {"age": None, "note": "x"}
    data[4_000] = {"age": 2.5}
    assert {3_000, 4_000} <= set(choose_rows(data))


@each_dataset
def test_positions_give_the_dataset_that_rows_one_by_one_give(data):
    kept = choose_rows(data)
    pool = ThinPool([data], [kept])
    positions = pool.given[0]
    read = [at for at in positions if at not in pool.gaps]
    out, records = read[17], records_of(data)
    left = [record for at, record in enumerate(records) if at != kept[17]]
    without = pool.dataset(tuple(at for at in positions if at != out))
    assert key(records_of(without)) == key(left)
    assert type(without) is type(data)
    assert pool.length(positions) == ROWS if not isinstance(data, str) else len(data)
    assert key(pool.dataset(pool.drop_gaps(positions))) == key(select_rows(data, kept))
    if not isinstance(data, set):
        twice = pool.dataset((*positions, out))
        assert key(records_of(twice)) == key([*records, records[kept[17]]])
        added = pool.add(pool.records[read[0]])
        assert added == read[0] or pool.same[added] == pool.same[read[0]]


@each_dataset
def test_pairs_of_the_whole_are_neighbours(data):
    notes = []
    of = source(inputs=[data], neighbors="add_remove_one", notes=notes)
    assert f"{KEPT_ROWS:,} rows are looked at" in notes[0]
    assert all(length(pair.d1) <= KEPT_ROWS for pair in of.given)
    relation = expand({"eps": 1.0, "inputs": [data], "neighbors": "add_remove_one"})[0]
    for pair in islice(of.wholes, 2):
        assert not relation.promise.relation.fault(pair.d1, pair.d2)
        assert length(pair.d2) == length(data) - 1
        assert pair.is_large


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "neighbors"), [("array", "replace_one"), ("frame", "replace_special")]
)
def test_where_records_are_replaced_pairs_are_of_all_rows(name, neighbors):
    data = DATASETS[name]
    if name == "frame":
        data = data.astype({"age": float})  # which can hold missing values
    of = source(inputs=[data], neighbors=neighbors)
    relation = expand({"eps": 1.0, "inputs": [data], "neighbors": neighbors})[0].promise.relation
    for pair in of.given[:2]:
        assert length(pair.d1) >= ROWS - 1
        assert not relation.fault(pair.d1, pair.d2)
        assert not of.bounds.beyond(pair)
    assert len({content for pair in of.given for content in pair.content}) > 1


def test_all_rows_of_a_unit_leave_the_whole():
    data = FRAME.assign(user=np.arange(ROWS) // 7)
    of = source(inputs=[data], neighbors=add_remove_one(unit="user"))
    pair = next(of.wholes)
    gone = set(data.user) - set(pair.d2.user)
    assert len(gone) == 1
    assert len(pair.d2) == ROWS - (data.user == gone.pop()).sum()
