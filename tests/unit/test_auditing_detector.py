import numpy as np
import pytest

from pytest_dp.betting.detector import fit_detector
from pytest_dp.outputs.features import features
from pytest_dp.outputs.table import tabulate
from pytest_dp.privacy import ApproximateDP
from pytest_dp.statistics.event_bets import rank_for
from pytest_dp.statistics.ledger import ledger_of

CLAIM = ApproximateDP(0.1)


def detector_of(outputs, claim=CLAIM):
    table = tabulate(outputs)
    on_d = np.arange(len(table)) < len(table) // 2
    return fit_detector(table, on_d, features(table, on_d), rank_for(claim, rarest=0.0))


@pytest.mark.parametrize("seed", range(4))
def test_counts_of_outputs_that_tell_nothing_are_not_flattered(seed):
    """Six numbers of pure noise: counted through what they taught, they would gain 18 or more."""
    noise = np.random.default_rng(seed).normal(size=(600, 6))
    record = detector_of(noise)[1]
    assert max(ledger_of(CLAIM).growth(record)) < 6.0


def test_a_value_that_is_released_once_in_a_while_is_one_of_the_events():
    """It says nothing yet, and everything later."""
    rng = np.random.default_rng(7)
    outputs = rng.normal(size=4_000)
    outputs[rng.choice(2_000, 12, replace=False)] = 77.0
    detector, _ = detector_of(outputs)
    leak, other = tabulate([77.0]), tabulate([76.0])
    assert any(one.bins(leak) != one.bins(other) for one in detector.binnings[1:])
