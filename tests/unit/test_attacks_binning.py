import numpy as np
import pytest

from pytest_dp.betting import additive
from pytest_dp.betting.binning import (
    ByEvent,
    ByScore,
    Reader,
    cuts_of,
)
from pytest_dp.betting.scores import scores
from pytest_dp.outputs.events import Between, Event
from pytest_dp.outputs.feature import leaf
from pytest_dp.outputs.table import tabulate

pytestmark = pytest.mark.slow


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
