import numpy as np
import pytest

from pytest_dp.betting import additive
from pytest_dp.betting.binning import (
    ByEvent,
    ByScore,
    Reader,
    cuts_of,
    joint_counts,
)
from pytest_dp.betting.detector import with_values
from pytest_dp.betting.scores import scores
from pytest_dp.outputs.events import Between, Event
from pytest_dp.outputs.feature import leaf
from pytest_dp.outputs.paired_outputs import PairedOutputs, size_of_output
from pytest_dp.outputs.table import tabulate

pytestmark = pytest.mark.slow


def test_few_scores_are_all_told_apart():
    found = np.repeat([-1.0, 0.25, 0.5, 3.0], [50, 3, 20, 1])
    assert cuts_of(found, 24).tolist() == [-0.375, 0.375, 1.75]
    assert cuts_of(np.zeros(10), 24).tolist() == []


@pytest.mark.parametrize("n", [30, 500, 100_000])
def test_many_scores_are_cut_evenly_and_far_into_the_tails(n):
    found = np.round(np.random.default_rng(0).normal(size=n), 9)
    cuts = cuts_of(found, 24)
    assert 12 <= len(cuts) < 24
    sizes = np.bincount(np.searchsorted(cuts, found), minlength=len(cuts) + 1)
    assert 1 <= sizes.min() <= sizes.max() <= n / 5
    assert max(sizes[0], sizes[-1]) <= max(10, n / 100)


def test_joint_counts_keep_pairs_together():
    one, two = np.array([0, 2, 2, 1], np.uint8), np.array([1, 2, 0, 1], np.uint8)
    assert joint_counts(one, two, 3).tolist() == [[0, 1, 0], [0, 1, 0], [1, 0, 1]]


def test_a_reader_sees_the_same_in_batches_of_any_size():
    rng = np.random.default_rng(1)
    known = np.concatenate([rng.normal(size=500), rng.normal(1, size=500)])
    table = tabulate(known)
    model = additive.fit(table, np.arange(1000) < 500, [leaf("output")])
    low = ByEvent(Event((Between(leaf("output"), high=0.5),)))
    by_score = ByScore(model, cuts_of(scores(model, table), 24))
    read = Reader((by_score, low), keep=False)
    whole, kept = read(known)
    assert kept is None
    parts = np.concatenate([read(known[i : i + 7])[0] for i in range(0, 1000, 7)], axis=1)
    assert (parts == whole).all()
    assert (whole[1] == (known < 0.5)).all()
    assert whole[0].max() < by_score.width


def test_a_reader_without_binnings_keeps_what_it_is_told_to():
    bins, kept = Reader((), keep=True)([1.0, None])
    assert bins.shape == (0, 2)
    assert kept.raw == [1.0, None]


def test_scores_of_another_model_keep_their_ranks_and_ties():
    found, scale = np.array([0.1, 0.3, 0.1, 0.2]), np.array([4.0, 1.0, 3.0, 2.0])
    mapped = with_values(found, scale)
    assert mapped.tolist() == [2.0, 4.0, 2.0, 3.0]


def test_numbers_of_long_lists_take_more_room_than_those_of_arrays():
    lists = [[1.0] * 2_000 for _ in range(10)]
    assert size_of_output(tabulate(np.array(lists))) == 2_000
    assert size_of_output(tabulate([np.array(one) for one in lists])) == 2_000
    assert size_of_output(tabulate(lists)) == 4 * 2_000
    assert size_of_output(tabulate([[1.0, 2.0]] * 10)) == 2
    assert size_of_output(tabulate([1.0] * 10)) == 1


def test_a_table_is_made_anew_only_for_more_outputs():
    kept = PairedOutputs()
    kept.add(tabulate([1.0, 2.0]), tabulate([3.0, 4.0]), coupled=True)
    table, first = kept.table()
    assert table.numbers.tolist() == [1, 2, 3, 4]
    assert first.tolist() == [True, True, False, False]
    assert kept.table()[0] is table
    kept.add(tabulate([5.0]), tabulate([6.0]), coupled=True)
    assert kept.table()[0].numbers.tolist() == [1, 2, 5, 3, 4, 6]
