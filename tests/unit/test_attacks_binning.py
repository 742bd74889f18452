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
from pytest_dp.betting.scores import scores
from pytest_dp.outputs.events import Between, Event
from pytest_dp.outputs.feature import leaf
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
