"""Both membership games side by side, on mechanisms whose risks are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from pytest_dp import ClaimError, membership_risk, riskiest
from pytest_dp.risks import MembershipRisk, RecordRisk

DATA = np.array([[0.0], [0.0], [0.0], [2.0]])
POPULATION = np.random.default_rng(0).normal(scale=3, size=(2_000, 1))


def noisy_sum(data, rng):
    return float(data.sum() + rng.normal())


def test_risks_are_those_of_the_noise_and_of_the_noise_with_the_data():
    """A sum with noise of 1; the traditional game adds three records of deviation 3."""
    claim = {"data": DATA, "records": [3], "population": POPULATION, "runs": 600, "seed": 1}
    found = membership_risk(noisy_sum, **claim)
    (risk,) = found.records
    spread = POPULATION.std() * math.sqrt(3)
    for (mean, error), noise in ((risk.fixed, 1.0), (risk.drawn, math.hypot(1, spread))):
        truth = scipy.stats.norm.cdf(2 / noise / math.sqrt(2))
        assert abs(mean - truth) < 4 * error
        assert 0.005 < error < 0.03
    assert found.rmsd[0] == pytest.approx(risk.fixed[0] - risk.drawn[0], abs=0.01)
    assert found == membership_risk(noisy_sum, **claim)
    assert "record 3" in str(found)


def resampled(data, rng):
    return [data[i] for i in rng.integers(len(data), size=30)]


@pytest.mark.slow
def test_tables_and_several_records_share_their_runs():
    data = [[20 + i % 5, i % 2] for i in range(20)] + [[90, 7]]
    claim = {"data": data, "population": data, "runs": 400, "seed": 1}
    found = membership_risk(resampled, **claim, records=riskiest(2))
    told = {risk.record: risk for risk in found.records}
    chance = 1 - (1 - 1 / 21) ** 30  # that it is drawn at all
    assert abs(told["record 20"].fixed[0] - (1 + chance) / 2) < 0.1
    assert all(risk.fixed[0] < 0.85 for name, risk in told.items() if name != "record 20")
    assert found.rmsd[0] < 0.2  # about 0.1: in drawn data, others stand for the record


def made(rows: list[tuple[float, float, float]]) -> MembershipRisk:
    risks = [RecordRisk(str(i), "", (a, e), (b, e)) for i, (a, b, e) in enumerate(rows)]
    return MembershipRisk(tuple(risks), 300)


def test_the_miss_rate_counts_records_at_high_risk():
    rows = [(0.9, 0.5, 0.01)] * 3 + [(0.9, 0.9, 0.01)] * 7 + [(0.6, 0.5, 0.01)] * 5
    missed = made(rows).miss_rate(0.8)
    assert (missed.missed, missed.high, missed.share) == (3, 10, 0.3)
    assert math.isnan(made(rows).miss_rate(0.95).share)


def test_bad_input_is_refused():
    for wrong, said in [
        ({"runs": 3}, "runs=3"),
        ({"records": 4}, "records=4"),
        ({"population": [1]}, "type of data="),
        ({"population": DATA[3:]}, "only the target"),
        ({"seed": "xyz"}, "seed='xyz'"),
        ({"max_seconds": "1 h"}, "max_seconds='1 h'"),
        ({"classifier": "forest"}, "classifier='forest'"),
        ({"params": {"scale": [1, 2]}}, "takes one"),
    ]:
        with pytest.raises(ClaimError, match=said):
            membership_risk(noisy_sum, **{"data": DATA, "records": [3], "runs": 8, **wrong})


def test_without_a_population_there_is_nothing_to_compare_with():
    found = membership_risk(noisy_sum, data=DATA, records=[3], runs=8, seed=1)
    with pytest.raises(ClaimError, match="population="):
        _ = found.rmsd
    assert found.records[0].drawn is None
